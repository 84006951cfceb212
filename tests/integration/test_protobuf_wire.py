"""Bodies and answers in protobuf, as typed Go clients send and prefer them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from karmada.kube.objects.gvk import GVK
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.decode import normalize
from karmada.kube.schema.protobuf import MAGIC, decode, encode, envelope
from karmada.kube.schema.protowire import chunks
from karmada.kube.server.app import ApiServer
from karmada.kube.server.http.protobuf_form import ProtobufForm
from tests.integration.samples import (
    CONFIGMAPS,
    CORE,
    DEPLOYMENTS,
    PODS,
    PROTOBUF,
    configmap,
    deployment,
    ok,
    pod,
    refused,
    revision,
)
from tests.integration.streams import served
from tests.support.custom_kinds import definition
from tests.support.eventually import LIMIT
from tests.support.wire import Http

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BODIES: list[tuple[str, str, str, Any]] = [
    (CONFIGMAPS, "v1", "ConfigMap", configmap("x")),
    (DEPLOYMENTS, "apps/v1", "Deployment", deployment("x")),
    (PODS, "v1", "Pod", pod("x")),
    ("/api/v1/namespaces", "v1", "Namespace", {"metadata": {"name": "x"}}),
    (f"{CORE}/services", "v1", "Service", {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}),
    (f"{CORE}/secrets", "v1", "Secret", {"metadata": {"name": "x"}, "data": {"a": "eA=="}}),
    (
        LEASES,
        "coordination.k8s.io/v1",
        "Lease",
        {"metadata": {"name": "x"}, "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.123456Z"}},
    ),
]


@pytest.mark.parametrize(("path", "version", "kind", "body"), BODIES, ids=[kind for _, _, kind, _ in BODIES])
async def test_a_protobuf_body_makes_the_same_object_as_json(
    http: Http, server: ApiServer, path: str, version: str, kind: str, body: Any
) -> None:
    json_made = ok(await http("POST", f"{path}?dryRun=All", body), 201)
    data = encode(version, kind, body, server.definitions)
    made = ok(await http("POST", path, data, content_type=PROTOBUF), 201)
    varying = {"clusterIP", "clusterIPs", "volumes"}
    for part in made.keys() - {"metadata"}:
        if isinstance(made[part], dict):
            for key in made[part].keys() - varying - {"containers"}:
                assert made[part][key] == json_made[part][key], (part, key)
    updated = encode(
        version, kind, {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}, server.definitions
    )
    changed = ok(await http("PUT", f"{path}/x", updated, content_type=PROTOBUF))
    assert changed["metadata"]["labels"]["a"] == "b"
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]


CLIENT_GO = {"Accept": f"{PROTOBUF},application/json"}


async def test_client_go_writes_and_reads_protobuf(http: Http, server: ApiServer) -> None:
    data = encode("v1", "ConfigMap", configmap(), server.definitions)
    made = await http("POST", CONFIGMAPS, data, content_type=PROTOBUF, headers=CLIENT_GO)
    assert (made.code, made.headers["Content-Type"]) == (201, PROTOBUF)
    name = decode(made.body, server.definitions)[2]["metadata"]["name"]
    read = await http("GET", f"{CONFIGMAPS}/{name}", headers=CLIENT_GO)
    assert decode(read.body, server.definitions)[2] == ok(await http("GET", f"{CONFIGMAPS}/{name}"))
    gone = await http("DELETE", f"{CONFIGMAPS}/{name}", headers=CLIENT_GO)
    _, kind, status = decode(gone.body, server.definitions)
    assert (gone.headers["Content-Type"], kind, status["status"]) == (PROTOBUF, "Status", "Success")


@pytest.mark.parametrize(("path", "version", "kind", "body"), BODIES, ids=[kind for _, _, kind, _ in BODIES])
async def test_a_list_in_protobuf_has_the_objects_of_the_list_in_json(
    http: Http, server: ApiServer, path: str, version: str, kind: str, body: Any
) -> None:
    ok(await http("POST", path, body), 201)
    query = f"{path}?fieldSelector=metadata.name%3Dx"
    answer = await http("GET", query, headers=CLIENT_GO)
    listed = ok(await http("GET", query))
    decoded = decode(answer.body, server.definitions)[2]
    assert (decoded["apiVersion"], decoded["kind"]) == (version, f"{kind}List")
    node = server.definitions.node_for(GVK.parse(version, f"{kind}List"))
    assert node is not None
    normalize(node, decoded)
    assert decoded["items"] == listed["items"]
    assert len(decoded["items"]) == 1
    assert decoded["metadata"]["resourceVersion"]


async def test_pages_of_a_list_in_protobuf_have_tokens(http: Http, server: ApiServer) -> None:
    for name in ("a", "b", "c"):
        ok(await http("POST", CONFIGMAPS, {"metadata": {"name": name, "labels": {"page": "d"}}}), 201)
    query = f"{CONFIGMAPS}?limit=2&labelSelector=page"
    first = decode((await http("GET", query, headers=CLIENT_GO)).body, server.definitions)[2]
    token = first["metadata"]["continue"]
    second = decode((await http("GET", f"{query}&continue={token}", headers=CLIENT_GO)).body, server.definitions)[2]
    assert [obj["metadata"]["name"] for obj in first["items"] + second["items"]] == ["a", "b", "c"]


async def read_event(content: aiohttp.StreamReader, server: ApiServer) -> tuple[str, Any]:
    """One frame: four bytes of length and a WatchEvent without an envelope, whose object is a body."""
    size = int.from_bytes(await content.readexactly(4), "big")
    fields = dict(chunks(await content.readexactly(size)))
    [(_, body)] = chunks(fields[2])
    return fields[1].decode(), decode(body, server.definitions)[2]


async def test_a_watch_in_protobuf_frames_each_event_by_its_length(http: Http, server: ApiServer) -> None:
    ok(await http("POST", CONFIGMAPS, {"metadata": {"name": "w", "labels": {"seen": "1"}}, "data": {"a": "b"}}), 201)
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with asyncio.timeout(LIMIT), http.stream(f"{CONFIGMAPS}?{query}&labelSelector=seen", CLIENT_GO) as response:
        assert response.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
        kind, obj = await read_event(response.content, server)
        assert (kind, obj["metadata"]["name"], obj["data"]) == ("ADDED", "w", {"a": "b"})
        kind, obj = await read_event(response.content, server)
        assert (kind, obj["metadata"]["annotations"]) == ("BOOKMARK", {"k8s.io/initial-events-end": "true"})
        changed = ok(await http("PUT", f"{CONFIGMAPS}/w", {"metadata": {"name": "w", "labels": {"seen": "1"}}}))
        assert await read_event(response.content, server) == ("MODIFIED", changed)
        await http("DELETE", f"{CONFIGMAPS}/w")
        kind, obj = await read_event(response.content, server)
        assert (kind, obj["metadata"]["name"]) == ("DELETED", "w")


async def test_a_change_is_encoded_once_for_all_who_watch_in_protobuf(
    http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    event = ProtobufForm.event

    def counted(form: ProtobufForm, kind: str, obj: Any) -> bytes:
        encoded.append(obj["metadata"]["name"])
        return event(form, kind, obj)

    monkeypatch.setattr(ProtobufForm, "event", counted)
    path = f"{CONFIGMAPS}?watch=1&resourceVersion={server.cache.revision}"
    async with AsyncExitStack() as stack, asyncio.timeout(LIMIT):
        watches = [await stack.enter_async_context(http.stream(path, CLIENT_GO)) for _ in range(3)]
        ok(await http("POST", CONFIGMAPS, {"metadata": {"name": "once"}}), 201)
        for response in watches:
            assert (await read_event(response.content, server))[0] == "ADDED"
    assert encoded == ["once"]


async def test_an_error_in_a_protobuf_watch_is_a_status(
    http: Http, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada.kube.server.handlers.reads.FRESHNESS_SECONDS", 0.05)
    query = "watch=1&resourceVersion=99999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with asyncio.timeout(LIMIT), http.stream(f"{CONFIGMAPS}?{query}", CLIENT_GO) as response:
        kind, status = await read_event(response.content, server)
    assert (kind, status["kind"], status["code"]) == ("ERROR", "Status", 504)


async def test_metadata_comes_as_protobuf_also_of_custom_resources(http: Http, server: ApiServer) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    ok(await http("POST", crds, definition("example.com", "Gadget")), 201)
    path = "/apis/example.com/v1/namespaces/default/gadgets"
    await served(http, path)
    body = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g", "labels": {"a": "b"}}}
    made = ok(await http("POST", path, body), 201)
    form = f"{PROTOBUF};as=PartialObjectMetadata{{}};g=meta.k8s.io;v=v1"
    one = await http("GET", f"{path}/g", headers={"Accept": form.format("")})
    assert one.headers["Content-Type"] == PROTOBUF
    assert metadata_of(one.body) == made["metadata"]
    listed = await http("GET", path, headers={"Accept": form.format("List")})
    fields = dict(chunks(listed.body, 4))
    assert dict(chunks(fields[1])) == {1: b"meta.k8s.io/v1", 2: b"PartialObjectMetadataList"}
    assert [number for number, _ in chunks(fields[2])] == [1, 2]
    refused_one = await http("GET", f"{path}/g", headers={"Accept": PROTOBUF})
    assert (refused_one.code, refused_one.headers["Content-Type"]) == (406, PROTOBUF)
    fallback = await http("GET", f"{path}/g", headers=CLIENT_GO)
    assert fallback.json()["kind"] == "Gadget"


def metadata_of(body: bytes) -> Any:
    """The metadata of a PartialObjectMetadata, whose field has the place of any kind's metadata."""
    fields = dict(chunks(body, 4))
    assert dict(chunks(fields[1]))[2] == b"PartialObjectMetadata"
    return decode(envelope("v1", "ConfigMap", fields[2]), Definitions.load())[2]["metadata"]


async def test_a_scale_is_read_as_protobuf(http: Http, server: ApiServer) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    answer = await http("GET", f"{DEPLOYMENTS}/web/scale", headers=CLIENT_GO)
    assert decode(answer.body, server.definitions)[1] == "Scale"


async def test_a_scale_and_an_eviction_come_as_protobuf(http: Http, server: ApiServer) -> None:
    ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    scale = encode(
        "autoscaling/v1", "Scale", {"metadata": {"name": "web"}, "spec": {"replicas": 4}}, server.definitions
    )
    ok(await http("PUT", f"{DEPLOYMENTS}/web/scale", scale, content_type=PROTOBUF))
    assert ok(await http("GET", f"{DEPLOYMENTS}/web"))["spec"]["replicas"] == 4
    ok(await http("POST", PODS, pod()), 201)
    eviction = encode("policy/v1", "Eviction", {"metadata": {"name": "p"}}, server.definitions)
    ok(await http("POST", f"{PODS}/p/eviction", eviction, content_type=PROTOBUF), 201)
    assert (await http("GET", f"{PODS}/p")).code == 404


async def test_a_message_of_another_kind_is_refused(http: Http, server: ApiServer) -> None:
    before = await revision(http)
    data = encode("v1", "Secret", {"metadata": {"name": "x"}}, server.definitions)
    refused(await http("POST", CONFIGMAPS, data, content_type=PROTOBUF), 400, "BadRequest", "cannot be handled as a")
    data = encode("apps/v1", "Deployment", deployment(), server.definitions)
    refused(await http("POST", CONFIGMAPS, data, content_type=PROTOBUF), 400, "BadRequest")
    assert await revision(http) == before


async def test_a_message_nobody_knows_is_unsupported(http: Http) -> None:
    type_meta = b"\x0a\x0d\x0a\x02v9\x12\x07Unknown"
    body = MAGIC + type_meta
    refused(await http("POST", CONFIGMAPS, body, content_type=PROTOBUF), 415, "UnsupportedMediaType")
