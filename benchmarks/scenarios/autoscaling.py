"""FederatedHPAs with nothing to scale: what the control plane uses to look at all of them in every sync period.

Members are simulated clusters, so that everything on the way is there: scales, pods, their metrics through the metrics
adapter. The load is such that nothing is scaled: the cost of looking is what is always paid.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec

from benchmarks.planes import Member, connected, join_all, plane_config, started_plane, until_ready
from benchmarks.processes import CONTROL_PLANE, MEMBERS, Meter, at_rest, memory, until_at_rest
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.simulated import Simulated, simulated
from karmada.api.autoscaling import FederatedHPA
from karmada.api.policy import ClusterPropagationPolicy
from karmada.kube.client.client import Client
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.client.transport import Call
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.meta import has_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.sim.fleet import Stored
from karmada.kube.sim.profile import INSTANT, NodePool, Profile

_MEMBERS = 10
_PODS = 20
"""Of each workload, the same number in each member."""
_PER_NAMESPACE = 10
_PODS_PER_NODE = 50
_PERIOD, _DEFAULT_PERIOD = 5.0, 15.0
"""A third of the default: what one period costs shows sooner."""
_FLAGS = (f"--horizontal-pod-autoscaler-sync-period={_PERIOD:g}s",)
_PERIODS = 2
_REST_SECONDS = 4.0
_AT_ONCE = 32
_DEPLOYMENTS = GVR("apps", "v1", "deployments")
_NAMESPACES = GVR("", "v1", "namespaces")
_GOAL = 500
_COUNTED = re.compile(r"^horizontal_pod_autoscaler_controller_reconciliations_total\{.*\} (\S+)$", re.MULTILINE)


class Autoscaling:
    name = "autoscaling"
    title = f"FederatedHPAs over {_MEMBERS} members, {_PODS} pods each"
    counted = "FederatedHPAs"
    sizes = Sizes(quick=10, base=50)
    foreign = False
    figures = (
        Figure(name="CPU of FederatedHPAs", unit="% of a core", goals={_GOAL: 20}),
        Figure(name="CPU without them", unit="% of a core"),
        Figure(name="one FederatedHPA", unit="ms per period"),
        Figure(name="control plane grows by", unit="MiB"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        with simulated(place) as sim, started_plane(place, *_FLAGS) as process:
            await asyncio.to_thread(_make, sim, size)
            async with connected(plane_config(place.folder)) as control:
                place.progress("joining")
                await _join(control, sim)
                place.progress("propagating")
                await _propagate(control, size)
                place.progress("waiting for rest")
                await until_at_rest([process.pid])
                place.progress("measuring")
                rest, before = await at_rest([process.pid], _REST_SECONDS), memory(process.pid)[0]
                meter = Meter({CONTROL_PLANE: process.pid, MEMBERS: sim.process.pid})
                await _autoscale(control, size)
                await asyncio.sleep(_PERIOD)
                looks = await _reconciles(control)
                busy = await at_rest([process.pid], _PERIODS * _PERIOD)
                looks = await _reconciles(control) - looks
                uses = meter.use()
        period = max(0.0, busy - rest) * _PERIODS * _PERIOD / looks * size
        figures = {
            "CPU of FederatedHPAs": 100 * period / _DEFAULT_PERIOD,
            "CPU without them": 100 * rest,
            "one FederatedHPA": 1000 * period / size,
            "control plane grows by": uses[CONTROL_PLANE].resident - before,
        }
        return Measurement(figures=figures, processes=uses, costs={"CPU of a period, s": period})


# members


def _name(number: int) -> str:
    return f"member{number}"


def _make(sim: Simulated, size: int) -> None:
    nodes = max(2, size * _PODS // _MEMBERS // _PODS_PER_NODE)
    for number in range(_MEMBERS):
        pools = (NodePool(count=nodes, cpu="64"),)
        profile = Profile(_name(number), latencies=INSTANT, pools=pools, system_pods=False)
        sim.call("POST", "/clusters", msgspec.to_builtins(Stored(profile=profile)))


async def _join(control: Client, sim: Simulated) -> None:
    for number in range(_MEMBERS):
        config = load_config(sim.kubeconfig, context=_name(number))
        async with connected(config) as client:
            await join_all(control, [Member(_name(number), client, config)])
    await until_ready(control, [_name(number) for number in range(_MEMBERS)])


# content


def _namespace(number: int) -> str:
    return f"team-{number // _PER_NAMESPACE}"


def _workload(number: int) -> Obj:
    labels = {"app": f"web-{number}"}
    container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}
    template = {
        "metadata": {"labels": labels, "annotations": {"sim.io/load": "cpu=50m"}},
        "spec": {"containers": [container]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"web-{number}", "namespace": _namespace(number)},
        "spec": {"replicas": _PODS, "selector": {"matchLabels": labels}, "template": template},
    }


def _policy() -> Obj:
    weights = [{"targetCluster": {"clusterNames": [_name(number)]}, "weight": 1} for number in range(_MEMBERS)]
    evenly = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": weights},
    }
    return {
        "apiVersion": ClusterPropagationPolicy.gvk.api_version,
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "workloads"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {"replicaScheduling": evenly},
        },
    }


def _autoscaler(number: int) -> Obj:
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "apiVersion": FederatedHPA.gvk.api_version,
        "kind": "FederatedHPA",
        "metadata": {"name": f"web-{number}", "namespace": _namespace(number)},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"web-{number}"},
            "minReplicas": 1,
            "maxReplicas": 2 * _PODS,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


async def _propagate(control: Client, size: int) -> None:
    """Until all pods run in the members and the control plane has it."""
    for name in sorted({_namespace(number) for number in range(size)}):
        await control.create(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await control.create(ClusterPropagationPolicy.gvr, _policy())
    async with _following(control, _DEPLOYMENTS) as deployments:
        await _create(control, _DEPLOYMENTS, map(_workload, range(size)))
        await deployments.until(lambda: _count(deployments, _runs) == size)


async def _autoscale(control: Client, size: int) -> None:
    """Until each was looked at once."""
    async with _following(control, FederatedHPA.gvr) as autoscalers:
        await _create(control, FederatedHPA.gvr, map(_autoscaler, range(size)))
        await autoscalers.until(lambda: _count(autoscalers, _is_active) == size)


async def _reconciles(control: Client) -> int:
    """How many there were so far: a busy machine may not have managed all of a period."""
    page, call = b"", Call("GET", "/metrics", {}, accept="text/plain, */*")
    async for piece in control.transport.stream(call):
        page += piece
    return sum(int(float(count)) for count in _COUNTED.findall(page.decode()))


def _runs(deployment: Obj) -> bool:
    return bool((deployment.get("status") or {}).get("readyReplicas") == _PODS)


def _is_active(autoscaler: Obj) -> bool:
    return has_condition((autoscaler.get("status") or {}).get("conditions"), "ScalingActive")


def _count(informer: Informer, condition: Callable[[Obj], bool]) -> int:
    return sum(map(condition, informer.list()))


async def _create(control: Client, kind: GVR, objects: Iterable[Obj]) -> None:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(obj: Obj) -> None:
        async with limit:
            await control.create(kind, obj)

    await asyncio.gather(*map(one, objects))


@asynccontextmanager
async def _following(control: Client, kind: GVR) -> AsyncIterator[Informer]:
    informer = Informer(control, kind)
    informer.start()
    try:
        await informer.wait_synced()
        yield informer
    finally:
        await informer.stop()
