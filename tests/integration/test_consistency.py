"""What must stay right when writes fail, race, or are delivered late."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.storage.interface import StoreUnavailable
from tests.support.custom_kinds import definition
from tests.support.eventually import eventually
from tests.support.wire import Http

SERVICES = "/api/v1/namespaces/default/services"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_a_failed_update_frees_no_address(server: ApiServer, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [{"port": 80, "nodePort": 30123}]
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
    live = (await http("POST", SERVICES, service)).json()
    live["spec"] |= {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}

    async def full(*_args: Any, **_kwargs: Any) -> int:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(server.store, "write", full)
        assert (await http("PUT", f"{SERVICES}/s", live)).code == 503
    other = {"metadata": {"name": "o"}, "spec": {"type": "NodePort", "ports": ports}}
    refused = await http("POST", SERVICES, other)
    assert "provided port is already allocated" in refused.json()["message"]


async def test_a_port_that_a_service_released_can_be_allocated(http: Http) -> None:
    ports = [{"port": 80, "nodePort": 30124}]
    made = await http("POST", SERVICES, {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}})
    live = made.json()
    live["spec"] |= {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}
    assert (await http("PUT", f"{SERVICES}/s", live)).code == 200
    again = {"metadata": {"name": "o"}, "spec": {"type": "NodePort", "ports": ports}}
    assert (await http("POST", SERVICES, again)).code == 201


async def test_a_true_that_becomes_a_one_is_a_change(http: Http) -> None:
    await http("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("example.com", "Thing"))
    path = "/apis/example.com/v1/namespaces/default/things"
    body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": True}}

    async def made() -> bool:
        return (await http("POST", path, body)).code == 201

    await eventually(made)
    merge = "application/merge-patch+json"
    changed = (await http("PATCH", f"{path}/t", {"spec": {"a": 1}}, content_type=merge)).json()
    assert changed["spec"] == {"a": 1}
    assert changed["spec"]["a"] is not True
    assert changed["metadata"]["generation"] == 2


async def test_an_eviction_with_a_precondition_is_judged_before_anything_happens(http: Http) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    live = (await http("POST", PODS, pod)).json()
    wrong = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "another"}}}
    assert (await http("POST", f"{PODS}/p/eviction", wrong)).code == 409
    assert (await http("GET", f"{PODS}/p")).json()["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
    version = {"preconditions": {"resourceVersion": live["metadata"]["resourceVersion"]}}
    right = {"metadata": {"name": "p"}, "deleteOptions": version}
    assert (await http("POST", f"{PODS}/p/eviction", right)).code == 201


async def test_a_continue_token_from_the_future_is_not_believed(http: Http) -> None:
    import base64
    import json

    for name in ("a", "b"):
        await http("POST", CONFIG_MAPS, config_map(name))
    for revision, code in ((10**9, 504), (0, 400), (-7, 400)):
        raw = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": "default/a\u0000"}).encode()
        token = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        assert (await http("GET", f"{CONFIG_MAPS}?limit=1&continue={token}")).code == code


async def test_a_snapshot_from_before_a_restart_is_the_stores(certificates: Path, tmp_path: Path) -> None:
    """An object deleted before the cache's memory begins must still be in a list of the time before."""
    storage = f"sqlite://{tmp_path}/state.db"
    config = ServerConfig(data_dir=certificates, storage=storage, port=0, controllers=False, accept_loss=True)
    server = ApiServer(config)
    await server.start()
    client = server.client()
    resource = GroupResource("", "configmaps")
    maps = next(r for r in server.registry if r.group_resource == resource).gvr
    for name in ("a", "b"):
        await client.create(maps, {"apiVersion": "v1", "kind": "ConfigMap", **config_map(name)}, "default")
    before = server.cache.revision
    await client.delete(maps, "a", "default")
    for number in range(2100):
        await server.store.write(f"other/things/x{number}", b'{"apiVersion":"v1","kind":"X","metadata":{}}', expected=0)
    await server.stop()
    again = ApiServer(config)
    await again.start()
    exact = await again.client().list(maps, "default", resource_version=str(before), resource_version_match="Exact")
    await again.stop()
    assert [obj["metadata"]["name"] for obj in exact["items"]] == ["a", "b"]


async def test_a_dry_run_of_the_same_name_costs_nobody_a_promise_of_quota(http: Http) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "3"}}}
    quotas = "/api/v1/namespaces/default/resourcequotas"
    await http("POST", quotas, quota)
    there = len((await http("GET", CONFIG_MAPS)).json()["items"])
    limit = {"configmaps": str(there + 1)}
    merge = "application/merge-patch+json"
    await http("PATCH", f"{quotas}/q", {"spec": {"hard": limit}}, content_type=merge)
    status = {"status": {"hard": limit, "used": {"configmaps": str(there)}}}
    await http("PATCH", f"{quotas}/q/status", status, content_type=merge)
    answers = await asyncio.gather(
        http("POST", CONFIG_MAPS, config_map("a")),
        http("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("a")),
        http("POST", CONFIG_MAPS, config_map("b")),
    )
    stored = [answers[0].code, answers[2].code]
    assert sorted(stored) == [201, 403]
    first = "a" if answers[0].code == 201 else "b"
    assert (await http("GET", f"{quotas}/q")).json()["status"]["used"] == limit
    assert (await http("DELETE", f"{CONFIG_MAPS}/{first}")).code == 200
    await http("PATCH", f"{quotas}/q/status", status, content_type=merge)
    assert (await http("POST", CONFIG_MAPS, config_map("c"))).code == 201
