"""The pods of twenty members in the caches of search: how fast they come, what they weigh, and a list of all of them.

The control plane is `karmada` with its members joined and at rest before a ResourceRegistry selects their pods. The
members are API servers in a process of their own (`python -m benchmarks.scenarios.search FOLDER PODS`), whose pods are
as large as kubelets make them.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

import orjson

from benchmarks.members import member_name
from benchmarks.planes import bare_members, connected, join_all, plane_config, started_plane, until_ready
from benchmarks.processes import CONTROL_PLANE, MEMBERS, Meter, at_rest, forget_peak, memory, started, until_at_rest
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from karmada.api.search import V1ALPHA1, ResourceRegistry
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Call
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj

CLUSTERS = 20
_GOAL_SIZE = 200_000
_REST_SECONDS = 4.0
_LOOK_SECONDS = 0.02
_CACHE = "/apis/search.karmada.io/v1alpha1/search/cache/api/v1"
_LATE = "clusters whose objects are not here yet"


class Search:
    name = "search"
    title = f"The pods of {CLUSTERS} members in the caches of search"
    counted = "cached pods"
    sizes = Sizes(quick=2_000, base=20_000)
    foreign = False
    figures = (
        Figure(name="cached within", unit="s", goals={_GOAL_SIZE: 5.0}),
        Figure(name="a pod is cached in", unit="µs of CPU"),
        Figure(name="a pod takes beyond its own bytes", unit="KiB", goals={_GOAL_SIZE: 2.0}),
        Figure(name="a pod without managedFields", unit="KiB"),
        Figure(name="CPU at rest", unit="% of a core"),
        Figure(name="all of them listed within", unit="s"),
        Figure(name="the list sends", unit="MiB/s", better="higher"),
        Figure(name="memory during the list", unit="times that at rest", goals={_GOAL_SIZE: 1.3}),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        command = ("benchmarks.scenarios.search", str(place.folder / "members"), str(size // CLUSTERS))
        with (
            started(*command, says="ready", log=place.folder / "members.log") as members,
            started_plane(place) as process,
        ):
            async with connected(_uncompressed(place)) as control:
                place.progress("joining")
                async with bare_members(place.folder, CLUSTERS) as joined:
                    await join_all(control, joined)
                    await until_ready(control, [member.name for member in joined])
                await until_at_rest([process.pid])
                place.progress("caching")
                meter = Meter({CONTROL_PLANE: process.pid, MEMBERS: members.pid})
                figures = await _cached(control, process.pid, size, meter)
                place.progress("listing")
                figures |= await _listed(control, process.pid, size)
                uses = meter.use()
        costs = {
            "cached within, s": figures["cached within"],
            "CPU of control plane, s": uses[CONTROL_PLANE].cpu_seconds,
        }
        return Measurement(figures=figures, processes=uses, costs=costs)


def _uncompressed(place: Place) -> RestConfig:
    """What is compressed costs the list and its reader more than it takes to send."""
    return replace(plane_config(place.folder), disable_compression=True)


async def _cached(control: Client, pid: int, size: int, meter: Meter) -> dict[str, float]:
    before, began = memory(pid)[0], time.perf_counter()
    selectors = [{"apiVersion": "v1", "kind": "Pod"}]
    spec = {"targetCluster": {}, "resourceSelectors": selectors}
    kind = {"apiVersion": V1ALPHA1, "kind": "ResourceRegistry", "metadata": {"name": "pods"}}
    await control.create(ResourceRegistry.gvr, {**kind, "spec": spec})
    await _until_here(control)
    taken, cpu = time.perf_counter() - began, meter.cpu()[CONTROL_PLANE]
    await until_at_rest([pid])
    own = len(orjson.dumps(_stripped(pod(0, 0))))
    grown = (memory(pid)[0] - before) * 1024 / size
    return {
        "cached within": taken,
        "a pod is cached in": cpu / size * 1e6,
        "a pod takes beyond its own bytes": grown - own / 1024,
        "a pod without managedFields": own / 1024,
        "CPU at rest": 100 * await at_rest([pid], _REST_SECONDS),
    }


async def _until_here(control: Client) -> None:
    """Until a list is complete: it has a warning while it is not."""
    assert isinstance(control.transport, HttpTransport)
    late: list[str] = []
    control.transport.on_warning = late.append
    while True:
        late.clear()
        status = (await control.get(ResourceRegistry.gvr, "pods")).get("status") or {}
        if status.get("conditions"):
            await control.raw("GET", f"{_CACHE}/namespaces/none/pods")
            if not any(_LATE in text for text in late):
                return
        await asyncio.sleep(_LOOK_SECONDS)


async def _listed(control: Client, pid: int, size: int) -> dict[str, float]:
    """Read as it comes; the greatest size meanwhile is the kernel's, from now on."""
    at_rest_size = memory(pid)[0]
    forget_peak(pid)
    assert isinstance(control.transport, HttpTransport)
    began, received, items = time.perf_counter(), 0, 0
    async for piece in control.transport.stream(Call("GET", f"{_CACHE}/pods")):
        received += len(piece)
        items += piece.count(b'"resource.karmada.io/cached-from-cluster"')
    taken = time.perf_counter() - began
    assert items >= size * 0.999, f"{items} of {size} pods were listed"  # one may be cut between two pieces
    return {
        "all of them listed within": taken,
        "the list sends": received / taken / (1 << 20),
        "memory during the list": memory(pid)[2] / at_rest_size,
    }


# the members


def pod(cluster: int, number: int) -> Obj:
    """About 3 KB, a third of it managedFields."""
    app = f"app-{number // 20}"
    labels = {"app": app, "pod-template-hash": "7d4b9c6f5", "tier": ("front", "back")[number % 2]}
    fields = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in labels}}, "f:spec": {"f:containers": {}}}
    state: Obj = {".": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
    states = {"f:status": {"f:conditions": {f'k:{{"type":"{name}"}}': state for name in _CONDITIONS}}}
    node = f"node-{number % 100}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-7d4b9c6f5-{number:05x}",
            "namespace": f"team-{number % 10}",
            "uid": str(uuid.UUID(int=(cluster << 64) + number)),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            "annotations": {
                "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
                "prometheus.io/scrape": "true",
            },
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields},
                {
                    "manager": "kubelet",
                    "operation": "Update",
                    "subresource": "status",
                    "fieldsV1": {"f:status": states},
                },
            ],
        },
        "spec": {
            "nodeName": node,
            "containers": [_container(app, name) for name in ("web", "sidecar")],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{why}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for why in ("not-ready", "unreachable")
            ],
            "serviceAccountName": "default",
            "restartPolicy": "Always",
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.{cluster}.{number >> 8 & 255}.{number & 255}",
            "hostIP": f"192.168.0.{number % 100}",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {"type": name, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"} for name in _CONDITIONS
            ],
        },
    }


_CONDITIONS = ("Initialized", "Ready", "ContainersReady", "PodScheduled")


def _container(app: str, name: str) -> Obj:
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    return {
        "name": name,
        "image": f"registry.example.com/{app}/{name}:1.27",
        "env": [{"name": "MODE", "value": "production"}, {"name": "APP", "value": app}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
    }


def _stripped(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


async def _serve(folder: Path, pods: int) -> None:
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.config import ServerConfig
    from karmada.kube.server.watchcache.entry import encode_value, storage_key

    tune_garbage_collection()
    resource = GroupResource("", "pods")
    for cluster in range(CLUSTERS):
        name = member_name(cluster)
        server = ApiServer(ServerConfig(data_dir=folder / name, storage="memory://", port=0, context=name))
        await server.start()
        for number in range(pods):
            made = pod(cluster, number)
            key = storage_key(resource, made["metadata"]["namespace"], made["metadata"]["name"])
            await server.store.write(key, encode_value(made), expected=0)
    print("ready", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    import uvloop

    folder, pods = sys.argv[1:]
    uvloop.run(_serve(Path(folder), int(pods)))


if __name__ == "__main__":
    main()
