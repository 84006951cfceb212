"""The estimator of a member with many nodes and four times as many pods: what an estimate costs after a pod changed.

The member is that of `large-member`. The estimator is `karmada-scheduler-estimator`, in a process of its own, requested
over mutual TLS as a scheduler does it: pods are created one after the other, and after each the estimate is requested
until it shows the pod. What the estimate itself costs, without gRPC and without other processes, is CPU time of this
process.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.planes import connected
from benchmarks.processes import Meter, started, until_at_rest
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.scenarios.large_member import PODS_PER_NODE, new_object, node_object, pod_object
from benchmarks.timings import percentile
from karmada.estimator.contract import MAX_AVAILABLE_REPLICAS, ReplicasQuery, replicas_request
from karmada.estimator.kept import slim_node, slim_pod
from karmada.estimator.node_resources import NodeResourceEstimator
from karmada.estimator.snapshot import Snapshot
from karmada.kube.client.client import Client
from karmada.kube.client.grpc_library import grpc
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.pki import SERVER_USAGES, CertificateAuthority

_CLUSTER = "large"
_CHANGES, _COMPUTED, _COMPUTED_SETS = 400, 2_000, 10
_PODS = GVR("", "v1", "pods")
_ESTIMATOR, _MEMBER = "estimator", "member"
_RETRY_SOON = [(f"grpc.{name}_reconnect_backoff_ms", 100) for name in ("initial", "min", "max")]
_TOLERATED: Obj = {"tolerations": [{"operator": "Exists"}]}
_REQUIREMENTS: Obj = {"resourceRequest": {"cpu": "100m", "memory": "128Mi"}, "nodeClaim": _TOLERATED}
"""Of the same size as a pod, so that every pod takes the room of one. No kubelet reports that the nodes are ready."""
_COMPONENTS: list[Obj] = [
    {"name": name, "replicas": replicas, "replicaRequirements": {"resourceRequest": {"cpu": cpu, "memory": "1Gi"}}}
    for name, replicas, cpu in (("leader", 1, "500m"), ("workers", 3, "1"))
]


class Estimator:
    name = "estimator"
    title = f"The estimator of a member with many nodes, {PODS_PER_NODE} pods on each"
    counted = "nodes"
    sizes = Sizes(quick=200, base=500)
    foreign = False
    figures = (
        Figure(name="start, until it serves", unit="s"),
        Figure(name="estimate after a pod change: half within", unit="ms"),
        Figure(name="estimate after a pod change: 99% within", unit="ms", goals={5_000: 10}),
        Figure(name="pod created to estimate: half within", unit="ms"),
        Figure(name="computed: half within", unit="µs"),
        Figure(name="computed: 99% within", unit="µs"),
        Figure(name="sets of two components", unit="ms"),
        Figure(name="CPU of a pod change with its estimates", unit="ms"),
        Figure(name="resident", unit="MiB"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        folder = place.folder / "member"
        command = ("benchmarks.scenarios.large_member", str(folder), str(size))
        with started(*command, says="ready", log=place.folder / "member.log") as member:
            began = time.perf_counter()
            port = _free_port()
            arguments = _arguments(place.folder, folder / "admin.kubeconfig", port)
            with started(*arguments, says="Estimator", log=place.folder / "estimator.log") as process:
                async with _Requests(place.folder, port) as requests:
                    await requests.until_served()
                    serving = time.perf_counter() - began
                    await until_at_rest([process.pid])
                    meter = Meter({_ESTIMATOR: process.pid, _MEMBER: member.pid})
                    async with connected(load_config(folder / "admin.kubeconfig")) as client:
                        taken, seen = await _change_pods(client, requests, size)
                    uses = meter.use()
        computed, sets = _computed(size), _computed_sets(size)
        per_change = uses[_ESTIMATOR].cpu_seconds / len(seen) * 1e3
        figures = {
            "start, until it serves": serving,
            "estimate after a pod change: half within": percentile(taken, 0.5) * 1e3,
            "estimate after a pod change: 99% within": percentile(taken, 0.99) * 1e3,
            "pod created to estimate: half within": percentile(seen, 0.5) * 1e3,
            "computed: half within": percentile(computed, 0.5) * 1e6,
            "computed: 99% within": percentile(computed, 0.99) * 1e6,
            "sets of two components": percentile(sets, 0.5) * 1e3,
            "CPU of a pod change with its estimates": per_change,
            "resident": uses[_ESTIMATOR].resident,
        }
        costs = {
            "computed estimate, µs": figures["computed: half within"],
            "sets of two components, ms": figures["sets of two components"],
            "resident, MiB": figures["resident"],
        }
        return Measurement(figures=figures, processes=uses, costs=costs)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _arguments(folder: Path, kubeconfig: Path, port: int) -> list[str]:
    pki = folder / "pki"
    authority = CertificateAuthority.load_or_create(pki, "ca", common_name="estimators")
    for name, usages in (("server", SERVER_USAGES), ("client", ("digital signature", "client auth"))):
        pair = authority.issue(name, sans=("127.0.0.1",), usages=usages)
        (pki / f"{name}.crt").write_bytes(pair.cert_pem)
        (pki / f"{name}.key").write_bytes(pair.key_pem)
    files = {"auth-cert": "server.crt", "auth-key": "server.key", "client-ca": "ca.crt"}
    return [
        "karmada.components.scheduler_estimator", "--cluster-name", _CLUSTER, "--kubeconfig", str(kubeconfig),
        "--server-port", str(port), "--metrics-bind-address=0", "--health-probe-bind-address=0",
        *(f"--grpc-{flag}-file={pki / name}" for flag, name in files.items()),
    ]  # fmt: skip


class _Requests:
    """A client of the estimator, with a certificate."""

    def __init__(self, folder: Path, port: int) -> None:
        pki = folder / "pki"
        ca, key, certificate = ((pki / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt"))
        credentials = grpc.ssl_channel_credentials(ca, key, certificate)
        self._channel = grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, _RETRY_SOON)
        self._request = replicas_request(ReplicasQuery(_CLUSTER, _REQUIREMENTS))
        method = MAX_AVAILABLE_REPLICAS
        self._call: Callable[..., Any] = self._channel.unary_unary(
            method.path, method.request.SerializeToString, method.response.FromString
        )

    async def __aenter__(self) -> _Requests:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    async def until_served(self) -> int:
        return int((await self._call(self._request, wait_for_ready=True)).maxReplicas)

    async def estimate(self) -> tuple[int, float]:
        """How many replicas, and the time it took."""
        began = time.perf_counter()
        response = await self._call(self._request)
        return response.maxReplicas, time.perf_counter() - began


async def _change_pods(client: Client, requests: _Requests, nodes: int) -> tuple[list[float], list[float]]:
    """The first estimate that shows each new pod, and how long after its creation it does."""
    taken, seen = list[float](), list[float]()
    room, _ = await requests.estimate()
    for number in range(_CHANGES):
        pod = pod_object(nodes * PODS_PER_NODE + number, number % nodes)
        await client.create(_PODS, new_object("Pod", pod))
        began = time.perf_counter()
        now = room
        while now == room:
            now, seconds = await requests.estimate()
            await asyncio.sleep(0)
        seen.append(time.perf_counter() - began)
        taken.append(seconds)
        room = now
    return taken, seen


# in this process


def _loaded(nodes: int) -> tuple[Snapshot, NodeResourceEstimator]:
    snapshot = Snapshot()
    for number in range(nodes):
        snapshot.node_changed(None, slim_node(node_object(number)))
    for number in range(nodes * PODS_PER_NODE):
        snapshot.pod_changed(None, slim_pod(pod_object(number, number % nodes)))
    return snapshot, NodeResourceEstimator(snapshot)


def _timed(nodes: int, rounds: int, estimate: Callable[[NodeResourceEstimator], object]) -> list[float]:
    """CPU seconds of an estimate, each after a pod has changed."""
    snapshot, estimator = _loaded(nodes)
    estimate(estimator)
    found: list[float] = []
    for number in range(rounds):
        pod = slim_pod(pod_object(nodes * PODS_PER_NODE + number, number % nodes))
        snapshot.pod_changed(None, pod)
        began = time.process_time()
        estimate(estimator)
        found.append(time.process_time() - began)
        snapshot.pod_changed(pod, None)
    return found


def _computed(nodes: int) -> list[float]:
    return _timed(nodes, _COMPUTED, lambda estimator: estimator.replicas(_REQUIREMENTS, ()))


def _computed_sets(nodes: int) -> list[float]:
    return _timed(nodes, _COMPUTED_SETS, lambda estimator: estimator.sets(_COMPONENTS, "", ()))
