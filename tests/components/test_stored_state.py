"""Stores that earlier versions have written: this one opens them, finds everything as it was, and goes on.

The files are made by tests/support/stored_state.py, one for each release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from karmada.api.cluster import Cluster
from karmada.api.crds import all_kinds
from karmada.api.policy import PropagationPolicy
from karmada.api.work import ResourceBinding
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS, LEASES, SECRETS
from karmada.kube.server.watchcache.entry import encode_value, storage_key
from karmada.version import VERSION
from tests.support.eventually import eventually
from tests.support.karmada_server import served
from tests.support.stored_state import (
    MEMBER,
    WEB,
    WIDGETS,
    address_of,
    contents,
    label,
    member,
    plane_of,
    running,
    stored_states,
    unpack,
)

pytestmark = pytest.mark.parametrize("packed", stored_states(), ids=label)
PROPAGATION_POLICIES = GroupResource("policy.karmada.io", "propagationpolicies")


def test_a_stored_state_has_everything(packed: Path, tmp_path: Path) -> None:
    assert any(path.name == f"stored-state-v{VERSION}.tar.xz" for path in stored_states()), "make one: see its script"
    held = unpack(packed, tmp_path / "plane")
    kinds = {(obj["kind"], obj["apiVersion"].partition("/")[0]) for _, obj in held.values() if "kind" in obj}
    assert len([group for _, group in kinds if group.endswith("karmada.io")]) >= 20
    for kind in ("Deployment", "Secret", "Lease", "CustomResourceDefinition", "Widget", "ResourceBinding", "Work"):
        assert kind in {name for name, _ in kinds}


async def test_every_object_is_what_was_stored(packed: Path, tmp_path: Path) -> None:
    held = unpack(packed, tmp_path / "plane")
    server = plane_of(tmp_path / "plane").server
    await server.store.open()
    assert await contents(server.store) == held
    await server.store.close()


async def test_every_kind_is_served_and_resource_versions_go_on(packed: Path, tmp_path: Path) -> None:
    held = unpack(packed, tmp_path / "plane")
    async with served(plane_of(tmp_path / "plane").server) as server:
        client = server.client(user_agent="tests")
        listed: dict[str, str] = {}
        for gvr in (*(info.gvr for info in all_kinds()), DEPLOYMENTS, SECRETS, LEASES, WIDGETS):
            for obj in (await client.list_all(gvr)).items:
                listed[obj["metadata"]["uid"]] = obj["metadata"]["resourceVersion"]
        stored = {obj["metadata"]["uid"]: str(revision) for revision, obj in held.values() if "metadata" in obj}
        missing = [uid for uid in listed if uid not in stored]
        assert not missing
        assert {uid: stored[uid] for uid in listed} == listed, "starting changes nothing of these kinds"
        secret = await client.get(SECRETS, "stored", "default")
        assert secret["data"] == {"password": "aHVudGVyMg=="}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "namespace": "default"}}
        created = await client.create(CONFIG_MAPS, made)
        assert int(created["metadata"]["resourceVersion"]) > max(revision for revision, _ in held.values())


async def test_controllers_go_on_with_what_is_stored(packed: Path, tmp_path: Path) -> None:
    """The member was lost with everything in it: an empty one in its place gets what the stored Works say."""
    unpack(packed, tmp_path / "plane")
    async with member(tmp_path / "members") as server, running(plane_of(tmp_path / "plane")) as client:
        secret, spec = address_of(server)
        await client.patch(SECRETS, MEMBER, "karmada-cluster", secret)
        await client.patch(Cluster.gvr, MEMBER, "", {"spec": spec})
        there = server.client(user_agent="tests")

        async def replicas() -> dict[str, Any]:
            return {
                obj["metadata"]["name"]: obj["spec"]["replicas"] for obj in (await there.list_all(DEPLOYMENTS)).items
            }

        async def has(count: int) -> bool:
            return (await replicas()).get(WEB) == count

        await eventually(lambda: has(2), show=replicas)
        await client.patch(DEPLOYMENTS, WEB, "default", {"spec": {"replicas": 5}})
        await eventually(lambda: has(5), show=replicas)
        binding = await client.get(ResourceBinding.gvr, f"{WEB}-deployment", "default")
        assert [target["name"] for target in binding["spec"]["clusters"]] == [MEMBER]


async def test_what_a_later_version_adds_does_not_prevent_a_downgrade(packed: Path, tmp_path: Path) -> None:
    """As long as the format is the same: unknown fields are dropped with the next write, unknown kinds stay."""
    unpack(packed, tmp_path / "plane")
    server = plane_of(tmp_path / "plane").server
    await server.store.open()
    key = storage_key(PROPAGATION_POLICIES, "default", WEB)
    stored = await server.store.get(key)
    assert stored is not None
    later = orjson.loads(stored.value)
    later["spec"]["addedLater"] = {"a": 1}
    await server.store.write(key, encode_value(later), expected=stored.revision)
    unknown = storage_key(GroupResource("policy.karmada.io", "laterpolicies"), "default", "x")
    await server.store.write(unknown, encode_value({**later, "kind": "LaterPolicy"}), expected=0)
    await server.store.close()
    async with served(plane_of(tmp_path / "plane").server) as again:
        client = again.client(user_agent="tests")
        policy = await client.patch(PropagationPolicy.gvr, WEB, "default", {"metadata": {"labels": {"a": "b"}}})
        assert "addedLater" not in policy["spec"]
        assert policy["spec"]["placement"] == later["spec"]["placement"]
        assert await again.store.get(unknown) is not None
