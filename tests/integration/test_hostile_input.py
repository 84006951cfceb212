"""What an anonymous client, or one with few rights, cannot do to the server."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually
from tests.support.wire import Http

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def overlay(group: str, plural: str, kind: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, x"}},
        "spec": {"group": group, "scope": "Cluster", "names": {"plural": plural, "kind": kind}, "versions": [version]},
    }


async def test_a_definition_cannot_lie_over_a_built_in_resource(server: ApiServer, http: Http) -> None:
    before = len((await http("GET", ROLES)).json()["items"])
    crd = overlay("rbac.authorization.k8s.io", "clusterroles", "ClusterRole")
    assert (await http("POST", CRDS, crd)).code == 201
    path = f"{CRDS}/clusterroles.rbac.authorization.k8s.io"

    async def conditions() -> dict[str, str]:
        found = (await http("GET", path)).json()["status"]["conditions"] or ()
        return {condition["type"]: f"{condition['status']}/{condition['reason']}" for condition in found}

    async def judged() -> str:
        return (await conditions()).get("NamesAccepted", "")

    assert (await eventually(judged)).startswith("False/")
    forced = {"status": {"conditions": [{"type": "Established", "status": "True", "reason": "x", "message": "x"}]}}
    await http("PATCH", f"{path}/status", forced, content_type="application/merge-patch+json")
    assert (await http("GET", "/apis/rbac.authorization.k8s.io/v2/clusterroles")).code == 404
    await http("DELETE", path)
    await eventually(lambda: server.cache.collection(_crds()).get("", crd["metadata"]["name"]) is None)
    assert len((await http("GET", ROLES)).json()["items"]) == before


def _crds() -> Any:
    from karmada.kube.objects.gvk import GroupResource

    return GroupResource("apiextensions.k8s.io", "customresourcedefinitions")


@cases("[", "{a: ", "- ")
async def test_yaml_nested_without_end_is_refused(opening: str, http: Http) -> None:
    body = (opening * 40_000).encode()
    answer = await http("POST", "/api/v1/namespaces/default/configmaps", body, content_type="application/yaml")
    assert answer.code == 400
    assert (await http("GET", "/healthz")).body == b"ok"


async def test_yaml_with_a_million_values_is_refused_soon(http: Http) -> None:
    body = b"data:\n" + b"".join(b"  k%d: v\n" % n for n in range(200_000))
    answer = await http("POST", "/api/v1/namespaces/default/configmaps", body, content_type="application/yaml")
    assert (answer.code, "too many values" in answer.json()["message"]) == (400, True)


async def test_json_nested_too_deeply_is_refused_and_poisons_no_list(http: Http) -> None:
    crd = overlay("example.com", "deeps", "Deep")
    crd["metadata"].pop("annotations")
    await http("POST", CRDS, crd)
    path = "/apis/example.com/v2/deeps"

    async def served() -> bool:
        return (await http("GET", path)).code == 200

    await eventually(served)

    def deep(levels: int) -> bytes:
        head = b'{"apiVersion":"example.com/v2","kind":"Deep","metadata":{"name":"d%d"},"spec":' % levels
        return head + b'{"a":' * levels + b"1" + b"}" * levels + b"}"

    codes = {levels: (await http("POST", path, deep(levels))).code for levels in (100, 248, 1000)}
    assert codes[100] == 201
    assert codes[248] == codes[1000] == 400
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    assert (await http("GET", path, headers=table)).code == 200
    assert (await http("GET", f"{path}?pretty=true")).code == 200


async def test_a_body_is_not_read_from_somebody_without_rights(server: ApiServer) -> None:
    """The refusal comes at once, though the body never does."""
    http = Http(server)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=http.anonymous_tls)
    writer.write(b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
    async with asyncio.timeout(LIMIT):
        assert b" 403 " in await reader.readline()
    writer.close()
    await http.close()


async def test_a_watch_shows_only_the_name_it_was_allowed_for(http: Http) -> None:
    base = "/api/v1/watch/namespaces/default/configmaps/mine"
    answer = await http("GET", f"{base}?fieldSelector=metadata.name%3Dtheirs&timeoutSeconds=1")
    assert answer.code == 400


async def test_unauthenticated_clients_choose_no_labels_of_metrics(http: Http) -> None:
    await http("GET", "/apis/example.org/v1/strangely-named-things", anonymous=True)
    await http("GET", "/apis/example.org/v1/unknown-to-anybody")
    text = (await http("GET", "/metrics")).body
    assert b"strangely-named" not in text
    assert b"unknown-to-anybody" not in text
    assert b'verb="OTHER"' in text


async def test_an_encoded_slash_is_a_slash(http: Http) -> None:
    """Authorisation and every server behind this one must split a path at the same places."""
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    await http("POST", "/api/v1/namespaces/default/pods", pod)
    answer = await http("GET", "/api/v1/namespaces/default/pods/p%2Fstatus")
    assert (answer.code, answer.json()["kind"]) == (200, "Pod")


@cases(
    ("/api/v1/pods?resourceVersion=" + "9" * 5000, {}),
    ("/api/v1/pods", {"Authorization": "Bearer a." + base64.urlsafe_b64encode(b'{"iss":[]}').decode() + ".c"}),
)
async def test_nonsense_is_the_clients_fault(path: str, headers: dict[str, str], http: Http) -> None:
    answer = await http("GET", path, headers=headers, anonymous=bool(headers))
    assert answer.code in (400, 401)
    assert json.loads(answer.body)["kind"] == "Status"
