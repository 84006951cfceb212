"""Every kind of Karmada, written and read back through the server: nothing that was written is lost or changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from karmada.api.crds import all_kinds
from karmada.api.kind import KindInfo
from karmada.api.schema import kind_schema
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from tests.support.karmada_server import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

DATA = Path(__file__).parent.parent / "api" / "data" / "kinds"
KINDS = {info.gvk: info for info in all_kinds()}
OLDER_FORMS = {
    "spec.placement.replicaScheduling.dynamicWeight",
    "spec.failover.applicationMigrationPolicy",
    "spec.template",
}
"""Fields that are moved elsewhere as soon as they are written (docs/compatibility.md)."""
LOST = {"spec.behavior.scaleDown.tolerance", "spec.behavior.scaleUp.tolerance"}
"""Fields that Karmada drops as well."""
METRICS = "spec.metrics."
REFUSED = {
    f"{METRICS}external",
    *(f"{METRICS}{kind}.target.value" for kind in ("resource", "containerResource", "pods")),
    *(f"{METRICS}{kind}.target.averageUtilization" for kind in ("object", "pods")),
}
"""Fields that admission lets nobody use."""
MOVED = {"spec.zone"}
"""A Cluster's zone becomes its zones."""


def manifests() -> list[Obj]:
    return [obj for path in sorted(DATA.glob("*.yaml")) for obj in yaml.safe_load_all(path.read_text())]


def kind_of(manifest: Obj) -> KindInfo:
    return KINDS[GVK.parse(manifest["apiVersion"], manifest["kind"])]


def label(manifest: Obj) -> str:
    return f"{manifest['kind']}.{manifest['apiVersion']}/{manifest['metadata']['name']}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with serving(tmp_path_factory.mktemp("data")) as server:
        yield server.client(user_agent="tests")


@pytest.mark.parametrize("manifest", manifests(), ids=label)
async def test_what_is_written_is_read_back(client: Client, manifest: Obj) -> None:
    gvr = kind_of(manifest).gvr
    name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
    await client.create(gvr, manifest)
    stored = await client.get(gvr, name, namespace)
    assert missing(body(manifest), body(stored)) == []
    assert stored["metadata"]["generation"] == 1
    if "status" in manifest:
        assert "status" not in stored or not stored["status"].get("conditions"), "a new object has no status"
        await client.update_status(gvr, {**stored, "status": manifest["status"]})
        stored = await client.get(gvr, name, namespace)
        assert stored["status"] == manifest["status"]
        assert stored["metadata"]["generation"] == 1
    again = await client.update(gvr, stored)
    assert again["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"], "nothing was left to fill in"
    typed = kind_of(manifest).type.of(stored).to_obj()
    again = await client.update(gvr, {**typed, "metadata": stored["metadata"]})
    assert missing(body(stored), body(again)) == [], "the typed view loses nothing but defaults"
    await leave(client, manifest)


async def leave(client: Client, manifest: Obj) -> None:
    """Deletion needs finalizers to go, which controllers would see to."""
    gvr = kind_of(manifest).gvr
    name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
    await client.patch(gvr, name, namespace, {"metadata": {"finalizers": None}})
    await client.delete(gvr, name, namespace)
    with pytest.raises(ApiError):
        await client.get(gvr, name, namespace)


def body(obj: Obj) -> Obj:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def missing(wanted: Any, found: Any, path: str = "") -> list[str]:
    """Where `found` does not have what `wanted` has; it may have more."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [
            at
            for key, value in wanted.items()
            for at in (missing(value, found[key], f"{path}.{key}") if key in found else [f"{path}.{key} is gone"])
        ]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [at for i, pair in enumerate(zip(wanted, found, strict=True)) for at in missing(*pair, f"{path}[{i}]")]
    return [] if wanted == found else [f"{path}: {wanted!r} became {found!r}"]


@pytest.mark.parametrize("info", KINDS.values(), ids=lambda info: f"{info.gvk.kind}.{info.gvk.api_version}")
async def test_each_kind_has_a_minimal_manifest_and_full_ones_with_every_field(info: KindInfo) -> None:
    mine = [manifest for manifest in manifests() if kind_of(manifest) is info]
    assert "minimal" in [manifest["metadata"]["name"] for manifest in mine]
    written = {path for manifest in mine for path in fields(manifest)}
    untried = [path for path in schema_fields(kind_schema(info.type)) if path not in written]
    known = OLDER_FORMS | LOST | REFUSED | MOVED
    assert [path for path in untried if not any(path == k or path.startswith(f"{k}.") for k in known)] == []


def fields(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            at = f"{path}.{key}" if path else key
            yield at
            yield from fields(inner, at)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, path)


def schema_fields(schema: Obj, path: str = "") -> Iterator[str]:
    for key, inner in (schema.get("properties") or {}).items():
        if path or key not in ("apiVersion", "kind", "metadata"):
            at = f"{path}.{key}" if path else key
            yield at
            yield from schema_fields(inner, at)
    if "items" in schema:
        yield from schema_fields(schema["items"], path)
