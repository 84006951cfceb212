"""The data directory of a control plane with something of everything in it, kept as a file: what later versions open.

    python -m tests.support.stored_state

makes `tests/components/data/stored-state-vVERSION.tar.xz` with this version, and beside it a backup of the same. Make
them for each release, and keep all of them. Their keys are made for them and protect nothing.
"""

from __future__ import annotations

import asyncio
import io
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import yaml

from karmada.api.cluster import Cluster
from karmada.api.crds import all_kinds
from karmada.api.policy import PropagationPolicy
from karmada.components.controlplane import ControlPlane
from karmada.controllers.context import Settings
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import CRDS, DEPLOYMENTS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.storage.dump import back_up
from karmada.kube.server.storage.interface import Store
from karmada.kube.server.storage.sqlite_reader import SqliteReader
from karmada.version import VERSION
from tests.support.custom_kinds import definition
from tests.support.eventually import eventually
from tests.support.fleet import TOKEN, deployment, encoded, new_server
from tests.support.karmada_server import served
from tests.support.running import run_server

DATA = Path(__file__).parents[1] / "components" / "data"
SAMPLES = Path(__file__).parents[1] / "api" / "data" / "kinds"
OBJECTS = "objects.json"
"""What the store held when it was closed: by key, the revision and the object."""
MEMBER, WEB = "frankfurt", "propagated"
"""Names that no sample refers to."""
WIDGETS = GVR("example.com", "v1", "widgets")
Contents = dict[str, tuple[int, Obj]]


def stored_states() -> list[Path]:
    """Of every version that has one; `format-2` is of SQLite's format before values were packed."""
    return sorted(DATA.glob("stored-state-*.tar.xz"))


def label(packed: Path) -> str:
    return packed.name.removeprefix("stored-state-").removesuffix(".tar.xz")


def backup_of(packed: Path) -> Path:
    """What `karmadactl backup` of that version made of it."""
    return packed.with_name(packed.name.replace("-state-", "-backup-").replace(".tar.xz", ".gz"))


def unpack(packed: Path, folder: Path) -> Contents:
    safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # not before Python 3.11.4
    with tarfile.open(packed) as archive:
        archive.extractall(folder, **safely)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return {key: (revision, obj) for key, (revision, obj) in orjson.loads((folder / OBJECTS).read_bytes()).items()}


async def contents(store: Store) -> Contents:
    page = await store.range("")
    return {item.key: (item.revision, orjson.loads(item.value)) for item in page.items}


def plane_of(folder: Path, storage: str = "") -> ControlPlane:
    return ControlPlane(
        ServerConfig(data_dir=folder, port=0, storage=storage), settings=Settings(cluster_success_threshold=0.0)
    )


@asynccontextmanager
async def running(plane: ControlPlane) -> AsyncIterator[Client]:
    await plane.start()
    try:
        yield plane.server.client(user_agent="kubectl")
    finally:
        await plane.stop()


def member(folder: Path) -> AbstractAsyncContextManager[ApiServer]:
    """An empty cluster that knows the token in the stored Secret."""
    return run_server(_new_member(folder))


def _new_member(folder: Path) -> ApiServer:
    folder.mkdir(exist_ok=True)
    (folder / "tokens").write_text(f'{TOKEN},admin,1,"system:masters"\n')
    return new_server(folder, MEMBER)


def address_of(server: ApiServer) -> tuple[Obj, Obj]:
    """How a member is reached: data of its Secret, and spec of its Cluster."""
    data = {"token": encoded(TOKEN), "caBundle": encoded(server.pki.ca.cert_pem)}
    return {"data": data}, {"apiEndpoint": server.url}


# What is stored


async def make(packed: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "plane")
        plane = plane_of(folder)
        async with member(Path(temporary, "members")) as there, running(plane) as client:
            await _join(client, there)
            await _propagate(client, there)
            for obj in _others():
                await client.create(await client.resource(GVK.parse(obj["apiVersion"], obj["kind"])), obj)
            await _add_widget(client)
        async with served(plane_of(folder).server) as server:
            await _add_samples(server.client(user_agent="kubectl"))
            held = await contents(server.store)
        reader = SqliteReader(folder / "state.db")
        await reader.open()
        await back_up(reader, backup_of(packed))
        await reader.close()
        _pack(folder, held, packed)


async def _join(client: Client, server: ApiServer) -> None:
    secret, spec = address_of(server)
    where = {"namespace": "karmada-cluster", "name": MEMBER}
    await client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": where, **secret})
    cluster = {"apiVersion": Cluster.gvk.api_version, "kind": "Cluster", "metadata": {"name": MEMBER}}
    await client.create(Cluster.gvr, {**cluster, "spec": {"syncMode": "Push", "secretRef": where, **spec}})


async def _propagate(client: Client, server: ApiServer) -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": WEB}
    spec = {"resourceSelectors": [selector], "placement": {"clusterAffinity": {"clusterNames": [MEMBER]}}}
    meta = {"name": WEB, "namespace": "default"}
    policy = {"apiVersion": PropagationPolicy.gvk.api_version, "kind": "PropagationPolicy", "metadata": meta}
    await client.create(PropagationPolicy.gvr, {**policy, "spec": spec})
    await client.create(DEPLOYMENTS, deployment(WEB))
    there = server.client(user_agent="tests")

    async def arrived() -> bool:
        return any(obj["metadata"]["name"] == WEB for obj in (await there.list_all(DEPLOYMENTS)).items)

    await eventually(arrived)
    status = {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2}
    await there.patch(DEPLOYMENTS, WEB, "default", {"status": status}, subresource="status")

    async def aggregated() -> Any:
        return (await client.get(DEPLOYMENTS, WEB, "default")).get("status", {}).get("readyReplicas") == 2

    await eventually(aggregated)


def _others() -> Iterator[Obj]:
    """Kinds of Kubernetes, of which some are stored encrypted."""
    name = {"name": "stored", "namespace": "default"}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": name, "data": {"password": encoded("hunter2")}}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"text": "ö\n"}}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name}
    yield {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": name, "spec": {"holderIdentity": "me"}}
    port = {"port": 80, "protocol": "TCP"}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": name, "spec": {"ports": [port], "selector": {"app": WEB}}}


async def _add_widget(client: Client) -> None:
    """By a definition of users."""
    await client.create(CRDS, definition(WIDGETS.group, "Widget"))

    name = {"name": "stored", "namespace": "default"}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": name, "spec": {"size": 3}}

    async def created() -> Obj | None:
        try:
            return await client.create(WIDGETS, widget)
        except ApiError as error:
            if error.http_code not in (404, 503):  # those mean that it is not served yet
                raise
            return None

    await eventually(created)


async def _add_samples(client: Client) -> None:
    """Every kind of Karmada, as small and as large as it can be; no controller changes them any more."""
    kinds = {info.gvk: info for info in all_kinds()}
    for path in _sample_files():
        for obj in yaml.safe_load_all(path.read_text()):
            gvr = kinds[GVK.parse(obj["apiVersion"], obj["kind"])].gvr
            made = await client.create(gvr, obj)
            if "status" in obj:
                await client.update_status(gvr, {**made, "status": obj["status"]})


def _sample_files() -> list[Path]:
    """Without those of versions in which objects are not stored."""
    return [path for path in sorted(SAMPLES.glob("*.yaml")) if not path.stem.endswith("-v1alpha1")]


def _pack(folder: Path, held: Contents, packed: Path) -> None:
    packed.parent.mkdir(parents=True, exist_ok=True)
    listing = orjson.dumps(held)
    with tarfile.open(packed, "w:xz", preset=9) as archive:
        for name in ("state.db", "pki", "admin.kubeconfig"):
            archive.add(folder / name, name)
        entry = tarfile.TarInfo(OBJECTS)
        entry.size = len(listing)
        archive.addfile(entry, io.BytesIO(listing))


def main() -> None:
    packed = DATA / f"stored-state-v{VERSION}.tar.xz"
    if packed.exists():
        sys.exit(f"{packed} exists: a version's state is made once; remove it and its backup to make them again")
    asyncio.run(make(packed))
    for path in (packed, backup_of(packed)):
        print(f"{path}: {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
