"""The audit log: a line for every answer, with who, what and how it ended, and nothing of what was said."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.audit.config import AuditConfig
from tests.support.callers import Caller, user_certificate
from tests.support.eventually import eventually
from tests.support.running import api_server
from tests.support.wire import Http

PATH = "/api/v1/namespaces/default/secrets"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
async def server(certificates: Path, log: Path) -> AsyncIterator[ApiServer]:
    async with api_server(certificates, audit=AuditConfig(log_path=log)) as server:
        yield server


def lines(log: Path) -> list[Obj]:
    """Of requests that came over the network."""
    return [event for event in every_line(log) if event["sourceIPs"]]


def every_line(log: Path) -> list[Obj]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_a_line_says_who_did_what_and_how_it_ended(http: Http, log: Path) -> None:
    answer = await http("POST", f"{PATH}?fieldManager=me", {"metadata": {"name": "s"}, "stringData": {"p": "hush"}})
    [line] = lines(log)
    assert (line["kind"], line["apiVersion"], line["level"]) == ("Event", "audit.k8s.io/v1", "Metadata")
    assert line["stage"] == "ResponseComplete"
    assert line["auditID"] == answer.headers["Audit-Id"]
    assert line["requestURI"] == f"{PATH}?fieldManager=me"
    assert line["verb"] == "create"
    assert line["user"]["groups"] == ["system:masters", "system:authenticated"]
    assert line["sourceIPs"] == ["127.0.0.1"]
    assert line["userAgent"] == "tests/1"
    assert line["objectRef"] == {"resource": "secrets", "namespace": "default", "apiVersion": "v1"}
    assert line["responseStatus"]["code"] == 201
    assert line["annotations"]["authorization.k8s.io/decision"] == "allow"
    assert parse_time(line["requestReceivedTimestamp"]) <= parse_time(line["stageTimestamp"])
    assert "hush" not in json.dumps(lines(log))
    assert mode(log) == 0o600


async def test_refusals_are_in_it_with_their_decision(server: ApiServer, http: Http, log: Path) -> None:
    async with Caller(server, **user_certificate(server, "jane")) as jane:
        assert (await jane("GET", PATH)).code == 403
        assert (await jane("GET", PATH, headers={"Impersonate-User": "joe"})).code == 403
    assert (await http("GET", PATH, headers={"Authorization": "Bearer wrong"}, anonymous=True)).code == 401
    assert (await http("DELETE", "/api/v1/namespaces/default")).code == 403
    refused, impersonating, unknown, protected = lines(log)
    assert refused["annotations"] == {"authorization.k8s.io/decision": "forbid"}
    assert refused["user"]["username"] == "jane"
    assert (impersonating["responseStatus"]["code"], impersonating["user"]["username"]) == (403, "jane")
    assert (unknown["responseStatus"]["code"], unknown["user"], unknown["stage"]) == (401, {}, "ResponseStarted")
    assert unknown["responseStatus"]["message"] == "Authentication failed, attempted: bearer"
    assert protected["responseStatus"]["code"] == 403
    assert protected["annotations"] == {"authorization.k8s.io/decision": "allow"}, (
        "admission refused, not the authorizer"
    )


async def test_requests_of_the_servers_own_controllers_are_in_it_under_their_names(http: Http, log: Path) -> None:
    assert (await http("POST", "/api/v1/namespaces", {"metadata": {"name": "fresh"}})).code == 201

    def made() -> Obj | None:
        def is_it(event: Obj) -> bool:
            reference = event.get("objectRef", {})
            return (event["verb"], reference.get("resource"), reference.get("namespace")) == (
                "create", "serviceaccounts", "fresh",
            )  # fmt: skip

        return next(filter(is_it, every_line(log)), None)

    await eventually(made)
    event = made()
    assert event is not None
    assert event["user"] == {
        "username": "system:kube-controller-manager",
        "groups": ["system:masters", "system:authenticated"],
    }
    assert event["userAgent"].startswith("kube-controller-manager")
    assert (event["sourceIPs"], event["responseStatus"]["code"]) == ([], 201)
    assert event["annotations"]["authorization.k8s.io/decision"] == "allow"


async def test_impersonation_shows_both(http: Http, log: Path) -> None:
    await http("GET", "/api", headers={"Impersonate-User": "jane"})
    [line] = lines(log)
    assert "system:masters" in line["user"]["groups"]
    assert line["impersonatedUser"]["username"] == "jane"


async def test_a_watch_is_in_it_when_it_ends(http: Http, log: Path) -> None:
    async with http.stream(f"{PATH}?watch=true&timeoutSeconds=1") as response:
        await response.read()
    [line] = lines(log)
    assert (line["verb"], line["responseStatus"]["code"]) == ("watch", 200)
    assert parse_time(line["stageTimestamp"]) - parse_time(line["requestReceivedTimestamp"]) > 0.5


async def test_names_and_subresources_are_in_the_reference(http: Http, log: Path) -> None:
    await http("GET", "/apis/apps/v1/namespaces/default/deployments/web/scale")
    [line] = lines(log)
    assert line["objectRef"] == {
        "resource": "deployments", "namespace": "default", "name": "web", "apiGroup": "apps", "apiVersion": "v1",
        "subresource": "scale",
    }  # fmt: skip
    assert line["responseStatus"]["code"] == 404
