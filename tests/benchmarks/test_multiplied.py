"""A propagated object, many times."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from benchmarks.multiplied import Original, database, multiply
from benchmarks.objects import DEPLOYMENTS
from karmada.api.cluster import Cluster
from karmada.api.well_known import work_name
from karmada.api.work import ResourceBinding, Work
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.encryption import make_configuration, read_encryption
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache.entry import storage_key

ORIGINAL = Original(DEPLOYMENTS, "Deployment", "shop", "web-000000")
POLICY = "00000000-0000-0000-0000-000000000001"
TEMPLATE, BINDING, WORK = (f"{digit * 8}-1111-1111-1111-111111111111" for digit in "234")


def work(cluster: str) -> Obj:
    uid = WORK[:-1] + cluster[-1]
    labels = {"binding": BINDING, "policy": POLICY}
    return {"metadata": {"uid": uid, "labels": labels}, "spec": {"name": ORIGINAL.name, "template": TEMPLATE}}


def objects() -> dict[tuple[GVR, str, str], Obj]:
    name, labels = ORIGINAL.name, {"policy": POLICY}
    binding = {"metadata": {"uid": BINDING}, "spec": {"resource": {"name": name, "uid": TEMPLATE}}}
    works = work_name("Deployment", name, "shop")
    return {
        (DEPLOYMENTS, "shop", name): {"metadata": {"name": name, "uid": TEMPLATE, "labels": labels}},
        (ResourceBinding.gvr, "shop", f"{name}-deployment"): binding,
        (Work.gvr, "karmada-es-m1", works): work("m1"),
        (Work.gvr, "karmada-es-m2", works): work("m2"),
        (Cluster.gvr, "", "m1"): {"metadata": {"name": "m1"}, "spec": {"syncMode": "Push"}},
    }


async def opened(folder: Path) -> SqliteStore:
    store = SqliteStore(
        str(database(folder)), synced=False, encryption=read_encryption(folder / "pki" / "encryption.yaml")
    )
    await store.open()
    return store


async def filled(folder: Path) -> None:
    (folder / "pki").mkdir()
    make_configuration(folder / "pki" / "encryption.yaml", ["works.work.karmada.io"])
    store = await opened(folder)
    for (kind, namespace, name), obj in objects().items():
        await store.write(storage_key(kind.group_resource, namespace, name), orjson.dumps(obj), expected=0)
    await store.close()


def read(store: SqliteStore, kind: GVR, namespace: str, name: str) -> tuple[Obj, int]:
    found = store.peek(storage_key(kind.group_resource, namespace, name))
    assert found is not None
    obj: Obj = orjson.loads(found.value)
    return obj, found.revision


async def test_each_copy_has_names_and_identities_of_its_own_that_belong_together(tmp_path: Path) -> None:
    await filled(tmp_path)
    await multiply(tmp_path, ORIGINAL, ["web-000001", "web-000002"], pull=True)
    store = await opened(tmp_path)
    seen = set()
    for name in (ORIGINAL.name, "web-000001", "web-000002"):
        template, revision = read(store, DEPLOYMENTS, "shop", name)
        binding, _ = read(store, ResourceBinding.gvr, "shop", f"{name}-deployment")
        works = [
            read(store, Work.gvr, f"karmada-es-{cluster}", work_name("Deployment", name, "shop"))[0]
            for cluster in ("m1", "m2")
        ]
        uid = template["metadata"]["uid"]
        assert template["metadata"]["labels"] == {"policy": POLICY}
        assert binding["spec"]["resource"]["uid"] == uid
        if name != ORIGINAL.name:
            assert binding["spec"]["resource"]["resourceVersion"] == str(revision)
        for one in works:
            assert one["spec"] == {"name": name, "template": uid}
            assert one["metadata"]["labels"] == {"binding": binding["metadata"]["uid"], "policy": POLICY}
        seen |= {obj["metadata"]["uid"] for obj in (template, binding, *works)}
    assert len(seen) == 3 * 4
    cluster, _ = read(store, Cluster.gvr, "", "m1")
    assert cluster["spec"]["syncMode"] == "Pull"
    await store.close()


async def test_what_has_not_been_propagated_is_refused(tmp_path: Path) -> None:
    await filled(tmp_path)
    with pytest.raises(ValueError, match="has not been propagated"):
        await multiply(tmp_path, ORIGINAL._replace(name="other"), ["web-000001"], pull=False)
