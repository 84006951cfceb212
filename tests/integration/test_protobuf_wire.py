"""Bodies in protobuf, as typed Go clients send them."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.schema.protobuf import MAGIC, encode
from karmada.kube.server.app import ApiServer
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


async def test_client_go_asks_for_protobuf_and_takes_json(http: Http, server: ApiServer) -> None:
    data = encode("v1", "ConfigMap", configmap(), server.definitions)
    accept = {"Accept": f"{PROTOBUF},application/json"}
    answer = await http("POST", CONFIGMAPS, data, content_type=PROTOBUF, headers=accept)
    assert answer.headers["Content-Type"] == "application/json"
    ok(answer, 201)


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
