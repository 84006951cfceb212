"""One server behind another: ours as the front that vouches for callers, and as the backend that believes it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.callers import Caller, user_certificate
from tests.support.cases import cases
from tests.support.custom_kinds import definition
from tests.support.eventually import eventually
from tests.support.rights import grant, user
from tests.support.running import api_server
from tests.support.wire import Http

GROUP = "agg.example.com"
NAME = f"v1.{GROUP}"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GADGETS = f"/apis/{GROUP}/v1/namespaces/default/gadgets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def api_service(port: int) -> Obj:
    service = {"namespace": "default", "name": "backend", "port": port}
    spec = {"group": GROUP, "version": "v1", "service": service, "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 2000, "versionPriority": 10}  # fmt: skip
    return {"metadata": {"name": NAME}, "spec": spec}


def condition(front: ApiServer) -> tuple[str, str, str]:
    found = front.cache.get(GVR("apiregistration.k8s.io", "v1", "apiservices").group_resource, "", NAME) or {}
    for c in found.get("status", {}).get("conditions") or []:
        if c["type"] == "Available":
            return c["status"], c["reason"], c["message"]
    return "", "", ""


@pytest.fixture
async def backend(certificates: Path) -> AsyncIterator[ApiServer]:
    """A second server that serves gadgets; it trusts the same front-proxy authority as the first."""
    async with api_server(certificates) as server:
        http = Http(server)
        await http(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition(GROUP, "Gadget", shortNames=["gd"]),
        )
        await eventually(lambda: server.registry.get(GVR(GROUP, "v1", "gadgets")))
        await http.close()
        yield server


@pytest.fixture
async def front(server: ApiServer, http: Http, backend: ApiServer) -> ApiServer:
    """The first server, with an APIService that leads to the second by an ExternalName Service."""
    spec = {"type": "ExternalName", "externalName": "localhost"}
    await http("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "backend"}, "spec": spec})
    assert (await http("POST", APISERVICES, api_service(backend.port))).code == 201
    await eventually(lambda: condition(server)[0] == "True", show=lambda: condition(server))
    return server


async def test_a_backend_that_answers_is_available_and_discovered(front: ApiServer, http: Http) -> None:
    assert condition(front) == ("True", "Passed", "all checks passed")
    resources = (await http("GET", f"/apis/{GROUP}/v1")).json()["resources"]
    assert [(r["name"], r["shortNames"]) for r in resources if "/" not in r["name"]] == [("gadgets", ["gd"])]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = (await http("GET", "/apis", headers={"Accept": accept})).json()["items"]
    [group] = [g for g in groups if g["metadata"]["name"] == GROUP]
    assert group["versions"][0]["resources"][0]["resource"] == "gadgets"
    assert GROUP in [g["name"] for g in (await http("GET", "/apis")).json()["groups"]]
    assert f"apis/{GROUP}/v1" in (await http("GET", "/openapi/v3")).json()["paths"]


async def test_everything_works_through_the_front(front: ApiServer, http: Http) -> None:
    async with http.stream(f"{GADGETS}?watch=true") as response:
        assert (
            await http("POST", GADGETS, {"metadata": {"name": "a"}, "kind": "Gadget", "apiVersion": f"{GROUP}/v1"})
        ).code == 201
        event = json.loads(await response.content.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    patched = await http("PATCH", f"{GADGETS}/a", {"spec": {"n": 1}}, content_type="application/merge-patch+json")
    assert patched.json()["spec"] == {"n": 1}
    table = await http("GET", GADGETS, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert table.json()["kind"] == "Table"
    missing = await http("GET", f"{GADGETS}/b")
    assert (missing.code, missing.json()["message"]) == (404, f'gadgets.{GROUP} "b" not found')
    assert (await http("DELETE", f"{GADGETS}/a")).code == 200


async def test_the_backend_knows_the_caller_and_decides_for_itself(
    front: ApiServer, backend: ApiServer, http: Http
) -> None:
    rules: list[Obj] = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]
    inside = Http(backend)
    async with Caller(front, **user_certificate(front, "jane", "devs")) as jane:
        refused = await jane("GET", GADGETS)
        assert refused.code == 403, "the front refuses first"
        await grant(front.client(), "gadgets", rules, user("jane"))
        refused = await jane("GET", GADGETS)
        assert refused.code == 403
        assert 'User "jane" cannot list resource "gadgets"' in refused.json()["message"]
        await grant(backend.client(), "gadgets", rules, user("jane"))
        assert (await jane("GET", GADGETS)).code == 200
    await inside.close()


async def test_impersonation_is_resolved_by_the_front(front: ApiServer, backend: ApiServer, http: Http) -> None:
    answer = await http("GET", GADGETS, headers={"Impersonate-User": "joe", "Impersonate-Group": "system:masters"})
    assert answer.code == 200
    answer = await http("GET", GADGETS, headers={"Impersonate-User": "joe"})
    assert answer.code == 403


async def test_a_caller_cannot_vouch_for_himself(front: ApiServer, backend: ApiServer) -> None:
    forged = {"X-Remote-User": "evil", "X-Remote-Group": "system:masters"}
    for server in (front, backend):
        async with Caller(server, **user_certificate(server, "jane")) as jane:
            answer = await jane("GET", GADGETS, headers=forged)
            assert answer.code == 403
            assert 'User "jane"' in answer.json()["message"]
        async with Caller(server) as nobody:
            assert (await nobody("GET", GADGETS, headers=forged)).code == 403


async def test_the_front_proxy_certificate_speaks_for_others_only(backend: ApiServer) -> None:
    cert, key = (path.read_bytes() for path in backend.pki.front_proxy_client_files)
    async with Caller(backend, cert=cert, key=key) as proxy:
        named = await proxy("GET", GADGETS, headers={"X-Remote-User": "joe", "X-Remote-Group": "system:masters"})
        assert named.code == 200
        assert (await proxy("GET", "/api/v1/namespaces")).code == 401, "without a name it is nobody"


async def test_a_backend_that_stops_is_unavailable_with_503(front: ApiServer, backend: ApiServer, http: Http) -> None:
    await backend.http.stop()
    answer = await http("GET", GADGETS)
    assert answer.code == 503
    assert answer.body


@cases(
    (None, "ServiceNotFound"),
    ({"ports": [{"port": 1}]}, "ServicePortError"),
    ({"ports": [{"port": 443}]}, "EndpointsNotFound"),
)
async def test_a_backend_that_cannot_be_reached_says_why(
    service: Obj | None, reason: str, server: ApiServer, http: Http
) -> None:
    if service is not None:
        await http("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "backend"}, "spec": service})
    await http("POST", APISERVICES, api_service(443))
    await eventually(lambda: condition(server)[1] == reason, show=lambda: condition(server))
    answer = await http("GET", GADGETS)
    assert (answer.code, answer.body) == (503, b"service unavailable\n")
    assert answer.headers["Content-Type"].startswith("text/plain")


async def test_local_api_services_are_always_available(server: ApiServer, http: Http) -> None:
    for name in ("v1.", "v1.apps", "v1.rbac.authorization.k8s.io"):
        [found] = (await http("GET", f"{APISERVICES}/{name}")).json()["status"]["conditions"]
        assert (found["type"], found["status"], found["reason"], found["message"]) == (
            "Available", "True", "Local", "Local APIServices are always available",
        )  # fmt: skip


async def test_the_name_of_an_api_service_is_its_version_and_group(http: Http) -> None:
    body = api_service(443)
    body["metadata"]["name"] = "wrong"
    answer = await http("POST", APISERVICES, body)
    assert answer.code == 422
    assert "metadata.name" in answer.json()["message"]
