"""Default objects of a new cluster: few syncs, and the same in every cluster of a process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from karmada.components.server import control_plane_server
from karmada.kube.kinds.rbac import aggregate
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Invalid
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.bootstrap import remembered
from karmada.kube.server.config import ServerConfig
from tests.support.running import api_server

ADDRESSED = ("Service", "Endpoints", "EndpointSlice", "ConfigMap")


@pytest.fixture(autouse=True)
def _nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_forms", {})


async def new_cluster(folder: Path, now: float = 0.0) -> dict[str, Obj]:
    """What a new control plane stores before any controller runs, by key.

    APIServices of its own kinds follow a moment later and are not among it, nor is what holds its address.
    """
    config = ServerConfig(data_dir=folder, storage="memory://", port=0, controllers=False)
    server = control_plane_server(config, FakeClock(1_700_000_000.0 + now))
    await server.start()
    stored = {item.key: orjson.loads(item.value) for item in (await server.store.range("")).items}
    await server.stop()
    return {key: obj for key, obj in stored.items() if obj["kind"] not in ADDRESSED and not follows(obj)}


def follows(obj: Obj) -> bool:
    return obj["kind"] == "APIService" and obj["spec"].get("group", "").endswith((".karmada.io", ".x-k8s.io"))


def timeless(stored: dict[str, Obj], now: float) -> dict[str, Obj]:
    """Without what differs between clusters: uids, and times, which are those of the cluster's own start."""
    found = {}
    for key, obj in stored.items():
        text = orjson.dumps(obj).replace(obj["metadata"]["uid"].encode(), b"UID")
        found[key] = orjson.loads(text.replace(rfc3339(1_700_000_000.0 + now).encode(), b"TIME"))
    return found


async def test_the_second_cluster_of_a_process_has_what_the_first_has(tmp_path: Path) -> None:
    first, second = await new_cluster(tmp_path), await new_cluster(tmp_path, 3600)
    assert timeless(first, 0) == timeless(second, 3600)
    uids = [{obj["metadata"]["uid"] for obj in cluster.values()} for cluster in (first, second)]
    assert len(uids[0]) == len(uids[1]) == len(first)
    assert not uids[0] & uids[1]


async def test_kinds_are_established_and_schemas_have_their_levels_before_any_controller_runs(tmp_path: Path) -> None:
    for cluster in (await new_cluster(tmp_path), await new_cluster(tmp_path)):
        for key, obj in cluster.items():
            conditions = {c["type"]: c["status"] for c in (obj.get("status") or {}).get("conditions") or ()}
            if "/customresourcedefinitions/" in key:
                assert conditions == {"NamesAccepted": "True", "Established": "True"}
            if "/flowschemas/" in key:
                assert conditions == {"Dangling": "False"}


async def test_aggregating_roles_have_the_rules_of_all_others_before_any_controller_runs(tmp_path: Path) -> None:
    for cluster in (await new_cluster(tmp_path), await new_cluster(tmp_path)):
        roles = {key.rpartition("/")[2]: obj for key, obj in cluster.items() if "/clusterroles/" in key}
        for name in ("view", "edit", "admin"):
            assert aggregate(roles[name], roles.values()) is None
            assert any("policy.karmada.io" in rule["apiGroups"] for rule in roles[name]["rules"])


async def test_another_version_of_kubernetes_remembers_its_own(tmp_path: Path) -> None:
    for version in ("1.36", "1.33"):
        config = ServerConfig(data_dir=tmp_path, storage="memory://", port=0, kubernetes_version=version)
        server = ApiServer(config)
        await server.start()
        await server.stop()
    versions = [version for version, _ in remembered._forms]
    assert versions.count("1.36") > 150
    assert versions.count("1.33") > 150


async def test_definitions_are_parsed_once_for_all_later_clusters(tmp_path: Path) -> None:
    clusters: list[list[Obj]] = []
    for _ in range(3):
        config = ServerConfig(data_dir=tmp_path, storage="memory://", port=0, controllers=False)
        server = control_plane_server(config)
        await server.start()
        clusters.append([entry.object() for entry in server.cache.collection(CRDS.group_resource).list()])
        await server.stop()
    _, second, third = clusters
    assert [obj["metadata"]["name"] for obj in second] == [obj["metadata"]["name"] for obj in third]
    assert len(second) > 15
    assert all(one["spec"] is other["spec"] for one, other in zip(second, third, strict=True))
    assert all(one["metadata"] != other["metadata"] for one, other in zip(second, third, strict=True))


async def test_on_a_disk_they_share_a_few_syncs(tmp_path: Path) -> None:
    server = ApiServer(ServerConfig(data_dir=tmp_path, port=0, controllers=False))
    batches: list[int] = []
    server.store.listen(lambda events: batches.append(len(events)))  # type: ignore[attr-defined]
    await server.start()
    await server.stop()
    assert sum(batches) > 180
    assert len([size for size in batches if size]) < 40


async def test_a_service_whose_address_another_server_has_just_taken_for_it_is_waited_for(tmp_path: Path) -> None:
    async with api_server(tmp_path, controllers=False) as server:
        services, spec = GVR("", "v1", "services"), {"ports": [{"port": 443}]}

        def wanted(name: str, **more: str) -> Obj:
            meta = {"name": name, "namespace": "default"}
            return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {**spec, **more}}

        waiting = asyncio.create_task(server._defaults.ensure([wanted("own", clusterIP="10.96.0.1")]))
        await asyncio.sleep(0)
        await server.client().create(services, wanted("own"))  # as if by another server
        await waiting
        with pytest.raises(Invalid, match="already allocated"):
            await _with_little_patience(server, wanted("other", clusterIP="10.96.0.1"))


async def _with_little_patience(server: ApiServer, wanted: Obj) -> None:
    clock = FakeClock()
    ensuring = asyncio.create_task(replace(server._defaults, clock=clock).ensure([wanted]))
    while not ensuring.done():
        await clock.advance(60)
    await ensuring
