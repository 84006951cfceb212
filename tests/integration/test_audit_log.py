"""The audit log: a line for every answer, with who, what and how it ended; by policy also stages and bodies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from karmada.kube.client.transport import WatchEvent
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.audit.config import AuditConfig
from karmada.kube.server.audit.policy import parse_policy
from karmada.kube.server.config import ServerConfig
from tests.support.callers import Caller, user_certificate
from tests.support.cases import cases
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


MAPS, SECRETS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets"


@asynccontextmanager
async def audited(
    certificates: Path, log: Path, *rules: Obj, anonymous: bool = True, **more: Any
) -> AsyncIterator[tuple[Http, ApiServer]]:
    policy = parse_policy({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more})
    config = ServerConfig(
        data_dir=certificates,
        storage="memory://",
        port=0,
        controllers=False,
        anonymous=anonymous,
        audit=AuditConfig(policy=policy, log_path=log),
    )
    server = ApiServer(config)
    await server.start()
    http = Http(server)
    try:
        yield http, server
    finally:
        await http.close()
        await server.stop()


def events(log: Path, *, in_process: bool = False) -> list[Obj]:
    """Of requests that came over the network, or of those that did not."""
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [event for event in found if bool(event["sourceIPs"]) is not in_process]


def config_map(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}


async def test_bodies_are_recorded_by_level(certificates: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    rules: list[Obj] = [
        {"level": "RequestResponse", "verbs": ["create"], "resources": [{"resources": ["configmaps"]}]},
        {"level": "Request", "verbs": ["patch"]},
        {"level": "None"},
    ]
    async with audited(certificates, log, *rules, omitStages=["RequestReceived"], omitManagedFields=True) as (http, _):
        assert (await http("POST", MAPS, config_map("m"))).code == 201
        patch = {"data": {"a": "2"}}
        await http("PATCH", f"{MAPS}/m", patch, content_type="application/merge-patch+json")
        await http("GET", f"{MAPS}/m")
    created, patched = events(log)
    assert created["level"] == "RequestResponse"
    assert created["requestObject"] == config_map("m")
    assert created["responseObject"]["metadata"]["uid"]
    assert "managedFields" not in created["responseObject"]["metadata"]
    assert (patched["level"], patched["requestObject"]) == ("Request", patch)
    assert "responseObject" not in patched


async def test_a_refusal_is_recorded_with_its_status(certificates: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with audited(certificates, log, {"level": "RequestResponse"}, omitStages=["RequestReceived"]) as (http, _):
        await http("GET", f"{MAPS}/none")
        await http("POST", MAPS, b"{")
    missing, broken = events(log)
    assert missing["responseStatus"] == {
        "metadata": {}, "status": "Failure", "reason": "NotFound", "code": 404,
        "message": 'configmaps "none" not found', "details": {"name": "none", "kind": "configmaps"},
    }  # fmt: skip
    assert missing["responseObject"]["kind"] == "Status"
    assert broken["responseStatus"]["code"] == 400
    assert "requestObject" not in broken


async def test_every_stage_is_an_event_with_the_same_id(certificates: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    rules: list[Obj] = [{"level": "Metadata", "verbs": ["watch", "get"]}, {"level": "None"}]
    async with audited(certificates, log, *rules) as (http, _):
        async with http.stream(f"{MAPS}?watch=true&timeoutSeconds=1") as response:
            await response.read()
        await http("GET", f"{MAPS}/none")
        metrics = (await http("GET", "/metrics")).body.decode()
        assert "apiserver_audit_event_total" in metrics
        assert 'apiserver_audit_error_total{plugin="log"} 0' in metrics
    stages = [(event["verb"], event["stage"]) for event in events(log)][:5]
    assert stages == [
        ("watch", "RequestReceived"), ("watch", "ResponseStarted"), ("watch", "ResponseComplete"),
        ("get", "RequestReceived"), ("get", "ResponseComplete"),
    ]  # fmt: skip
    assert len({event["auditID"] for event in events(log)[:3]}) == 1
    assert "responseStatus" not in events(log)[0]


@cases(
    ({"Authorization": "Bearer hush"}, "Authentication failed, attempted: bearer"),
    ({"Authorization": "Basic aHVzaDpodXNo"}, "Authentication failed, attempted: basic"),
    ({}, "Authentication failed, no credentials provided"),
)
async def test_a_sender_that_is_not_authenticated_is_one_event_without_credentials(
    headers: dict[str, str], attempted: str, certificates: Path, tmp_path: Path
) -> None:
    log = tmp_path / "audit.log"
    stages = ["RequestReceived", "ResponseStarted"]
    everything: Obj = {"level": "RequestResponse"}
    async with audited(certificates, log, everything, omitStages=stages, anonymous=False) as (http, _):
        assert (await http("POST", SECRETS, config_map("m"), headers=headers, anonymous=True)).code == 401
    [event] = events(log)
    assert (event["stage"], event["user"], event["verb"]) == ("ResponseStarted", {}, "create")
    assert event["responseStatus"] == {"metadata": {}, "code": 401, "message": attempted}
    assert "requestObject" not in event
    assert "hush" not in log.read_text()
    assert "aHVz" not in log.read_text()


async def test_requests_in_process_are_events_with_stages_and_bodies(certificates: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    rules: list[Obj] = [
        {"level": "RequestResponse", "users": ["system:karmada-scheduler"]},
        {"level": "None"},
    ]
    async with audited(certificates, log, *rules, omitManagedFields=True) as (_, server):
        client = server.client(user_agent="karmada-scheduler")
        await client.create(CONFIG_MAPS, config_map("m"), namespace="default", field_manager="me")
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "none", "default")
        stream = cast(AsyncGenerator[WatchEvent, None], await client.watch(CONFIG_MAPS, "default"))
        async with aclosing(stream):
            await anext(stream)
        await server.client().get(CONFIG_MAPS, "m", "default")
    made = [(e["verb"], e["stage"], e.get("responseStatus", {}).get("code")) for e in events(log, in_process=True)]
    assert made == [
        ("create", "RequestReceived", None), ("create", "ResponseComplete", 201),
        ("get", "RequestReceived", None), ("get", "ResponseComplete", 404),
        ("watch", "RequestReceived", None), ("watch", "ResponseStarted", 200), ("watch", "ResponseComplete", 200),
    ]  # fmt: skip
    created = events(log, in_process=True)[1]
    assert created["requestURI"] == f"{MAPS}?fieldManager=me"
    assert created["requestObject"]["data"] == {"a": "1"}
    assert created["responseObject"]["metadata"]["uid"]


async def test_nothing_of_a_secret_is_in_an_event_whatever_the_policy_says(certificates: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with audited(certificates, log, {"level": "RequestResponse"}) as (http, _):
        secret = {"metadata": {"name": "s"}, "stringData": {"p": "hush-1"}}
        assert (await http("POST", SECRETS, secret)).code == 201
        await http(
            "PATCH", f"{SECRETS}/s", {"stringData": {"p": "hush-2"}}, content_type="application/merge-patch+json"
        )
        await http("GET", SECRETS)
        await http("POST", SECRETS, b'{"hush-3')
        await http("POST", SECRETS, {"metadata": {"name": "t"}, "type": "hush-4", "data": {"p": "hush-5"}})
        review = {"spec": {"token": "hush-6"}}
        assert (await http("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)).code == 201
        account = {"metadata": {"name": "robot"}}
        await http("POST", "/api/v1/namespaces/default/serviceaccounts", account)
        answer = await http("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
        token = answer.json()["status"]["token"]
        await http("GET", "/api", headers={"Authorization": f"Bearer {token}"}, anonymous=True)
    assert "hush" not in log.read_text()
    assert "aHVzaC" not in log.read_text()
    assert token not in log.read_text()
    assert len(events(log)) >= 16


async def test_a_header_that_is_no_text_is_recorded(certificates: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    rule: Obj = {"level": "Metadata"}
    async with audited(certificates, log, rule, omitStages=["RequestReceived"]) as (http, server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=http.anonymous_tls)
        head = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\nUser-Agent: caf\xe9\r\n"
        writer.write(head + b"Audit-Id: " + b"i" * 200 + b"\r\n\r\n")
        assert b"200 OK" in await reader.read()
        writer.close()
    [event] = events(log)
    assert event["userAgent"] == "caf?"
    assert event["auditID"] == "i" * 64
