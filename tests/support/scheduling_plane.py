"""A control plane with a scheduler, clusters that are nothing but objects, and bindings as the detector makes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.controllers.context import Context, Settings
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock, FakeClock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Manager
from karmada.scheduler.estimators.protocol import Estimator
from karmada.scheduler.service.core import Options
from karmada.scheduler.service.scheduler import BindingScheduler, scheduler_parts
from tests.support.control_plane import ControlPlane, assemble, running
from tests.support.scheduling_cases import KINDS

BINDINGS = ResourceBinding.gvr
CLUSTER_BINDINGS = ClusterResourceBinding.gvr
MARKED = {well_known.POLICY_ID: "some-id"}
_STILL = 40


class Scheduling:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.client = plane.client
        self.managers = [plane.manager]

    @property
    def clock(self) -> FakeClock:
        assert isinstance(self.plane.clock, FakeClock)
        return self.plane.clock

    @property
    def scheduler(self) -> BindingScheduler:
        """Of ResourceBindings."""
        found = self.plane.manager.controllers["default-scheduler-resourcebindings"].reconciler
        assert isinstance(found, BindingScheduler)
        return found

    def sample(self, name: str, **labels: str) -> float:
        """A sample of the scheduler's metrics; 0 for none."""
        registry = CollectorRegistry()
        registry.register(self.scheduler.metrics)
        return registry.get_sample_value(name, labels) or 0.0

    def intercept_writes(self, before: Callable[[Any], Awaitable[Any] | None]) -> Callable[[], None]:
        """Call `before` before every write of the scheduler; it may raise. Returns a function that ends this."""
        transport: Any = self.scheduler._client.transport
        call = transport.call

        async def intercepted(request: Any) -> Any:
            if request.method == "PATCH":
                doing = before(request)
                if doing is not None:
                    await doing
            return await call(request)

        transport.call = intercepted

        def end() -> None:
            transport.call = call

        return end

    # waiting

    async def rest(self) -> None:
        """Wait until the scheduler is idle, without advancing the clock."""
        still = 0
        while still < _STILL:
            await asyncio.sleep(0)
            idle = all(c.queue.idle for manager in self.managers for c in manager.controllers.values())
            still = still + 1 if idle else 0

    async def wait(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await self.rest()

    def delays(self, name: str, namespace: str = "default") -> float | None:
        """Seconds until a binding is tried again; None if it is not."""
        kind = "resourcebindings" if namespace else "clusterresourcebindings"
        queue = self.plane.manager.controllers[f"default-scheduler-{kind}"].queue
        due = {key.name: moment for lane in queue._lanes.values() for key, moment in lane.due.items()}
        return None if name not in due else round(due[name] - self.clock.monotonic(), 6)

    # clusters

    async def cluster(
        self, name: str, *, pods: int | None = None, labels: Mapping[str, str] | None = None, **spec: Any
    ) -> None:
        """One that serves Deployments and ConfigMaps; with room for so many Pods."""
        head = {"apiVersion": Cluster.gvk.api_version, "kind": "Cluster"}
        metadata = {"name": name, "labels": dict(labels or {}), "finalizers": ["test/stay"]}
        await self.client.create(Cluster.gvr, {**head, "metadata": metadata, "spec": {"syncMode": "Push", **spec}})
        await self.report(name, pods)

    async def clusters(self, *names: str, pods: int | None = None) -> None:
        for name in names:
            await self.cluster(name, pods=pods)
        await self.rest()

    async def report(self, name: str, pods: int | None) -> None:
        """Report the resource summary of a cluster."""
        status: Obj = {"apiEnablements": list(KINDS)}
        if pods is not None:
            status["resourceSummary"] = {"allocatable": {"pods": str(pods)}}
        await self.client.patch(Cluster.gvr, name, "", {"status": status}, subresource="status")
        await self.rest()

    async def change_cluster(self, name: str, patch: Obj) -> None:
        await self.client.patch(Cluster.gvr, name, "", patch)
        await self.rest()

    async def label(self, name: str, **labels: str) -> None:
        await self.change_cluster(name, {"metadata": {"labels": labels}})

    async def delete_cluster(self, name: str) -> None:
        """It stays with a deletionTimestamp."""
        await self.client.delete(Cluster.gvr, name)
        await self.rest()

    # bindings

    async def bind(self, name: str, spec: Obj, *, namespace: str = "default", labels: Obj | None = None) -> Obj:
        """A binding with this spec; cluster-wide without a namespace."""
        kind = ResourceBinding if namespace else ClusterResourceBinding
        metadata: Obj = {"name": name, "labels": MARKED if labels is None else labels}
        if namespace:
            metadata["namespace"] = namespace
        head = {"apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind}
        await self.client.create(kind.gvr, {**head, "metadata": metadata, "spec": spec})
        await self.rest()
        return await self.get(name, namespace)

    async def get(self, name: str, namespace: str = "default") -> Obj:
        return await self.client.get(BINDINGS if namespace else CLUSTER_BINDINGS, name, namespace)

    async def find(self, name: str, namespace: str = "default") -> Obj | None:
        try:
            return await self.get(name, namespace)
        except NotFound:
            return None

    async def change(self, name: str, spec: Obj, namespace: str = "default") -> Obj:
        gvr = BINDINGS if namespace else CLUSTER_BINDINGS
        await self.client.patch(gvr, name, namespace, {"spec": spec})
        await self.rest()
        return await self.get(name, namespace)

    async def set_status(self, name: str, status: Obj, namespace: str = "default") -> None:
        gvr = BINDINGS if namespace else CLUSTER_BINDINGS
        await self.client.patch(gvr, name, namespace, {"status": status}, subresource="status")
        await self.rest()

    async def targets(self, name: str, namespace: str = "default") -> dict[str, int]:
        return targets(await self.get(name, namespace))

    async def condition(self, name: str, namespace: str = "default") -> tuple[str, str, str] | None:
        return condition(await self.get(name, namespace))

    async def version(self, name: str, namespace: str = "default") -> str:
        return meta.resource_version(await self.get(name, namespace))

    async def events(self, name: str, namespace: str = "default") -> list[tuple[str, str, str]]:
        return await self.plane.events(name, namespace)

    async def namespace(self, name: str) -> None:
        await self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    # further schedulers

    @asynccontextmanager
    async def another(self, options: Options | None = None) -> AsyncIterator[Manager]:
        """As another process would run one, which begins with what it finds."""
        gates = self.plane.context.gates
        manager = assemble(self.plane.server, lambda context: scheduler_parts(context, options), gates=gates).manager
        async with manager:
            self.managers.append(manager)
            await self.rest()
            yield manager
            self.managers.remove(manager)


def targets(binding: Obj) -> dict[str, int]:
    return {target["name"]: target.get("replicas", 0) for target in binding["spec"].get("clusters") or ()}


def condition(binding: Obj) -> tuple[str, str, str] | None:
    found = meta.get_condition((binding.get("status") or {}).get("conditions"), "Scheduled")
    return None if found is None else (found["status"], found["reason"], found["message"])


@asynccontextmanager
async def scheduling(
    folder: Path,
    *,
    gates: str = "",
    options: Options | None = None,
    estimators: Sequence[Estimator] = (),
    clock: Clock | None = None,
    settings: Settings | None = None,
    scheduler: bool = True,
    no_execute_policies: bool = False,
    as_one: bool = False,
    more: Callable[[Context], Sequence[Reconciler]] = lambda _context: (),
) -> AsyncIterator[Scheduling]:
    """`gates` as on a command line; `scheduler`: whether one runs; `as_one`: in the server's own process."""

    def parts(context: Context) -> list[Reconciler]:
        if gates:
            context.gates.set(gates)
        return [*(scheduler_parts(context, options, estimators) if scheduler else ()), *more(context)]

    async with running(
        folder, parts, clock=clock, settings=settings, no_execute_policies=no_execute_policies, as_one=as_one
    ) as plane:
        yield Scheduling(plane)


def incoming(plane: Scheduling, event: str) -> float:
    return plane.sample("karmada_scheduler_queue_incoming_bindings_total", event=event)
