"""Many small members: what they cost at rest, Deployments that go to all of them, and a fifth of them dead.

Members are simulated clusters with one node each, in several `karmada-sim` processes, whose use is reported apart from
the control plane's. Health checks run as often as by default. What has arrived is read from the bindings in the control
plane, so that nothing but the control plane watches a member. Half of those that die refuse connections, the others
accept them and never respond.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager

import msgspec

from benchmarks import objects
from benchmarks.objects import DEPLOYMENTS
from benchmarks.plane_metrics import read_metrics
from benchmarks.planes import connected, plane_config, started_plane
from benchmarks.processes import CLIENT, CONTROL_PLANE, Meter, cpu_seconds, memory, until_at_rest
from benchmarks.propagating import each
from benchmarks.readiness import Readiness, following
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.simulated import Simulated, simulated
from karmada.api.work import ResourceBinding
from karmada.joining.join import Joining, cluster_id_of, prepare_member, register
from karmada.kube.client.client import Client
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.sim.fleet import Stored
from karmada.kube.sim.profile import NodePool, Profile

_IN_ONE_PROCESS = 250
"""Simulated clusters."""
_DEAD_SHARE = 5
"""One in so many members dies."""
_AT_ONCE = 8
_REST_SECONDS = 20.0
"""Two rounds of health checks."""
_QUIET_SHARE = 0.25
"""Of a core: what the control plane may use, health checks included, and count as at rest before it was measured."""
_USUAL = 1.5
"""Times what it used at rest: what it may use afterwards, and count as at rest."""
_CALM_SECONDS = 300.0
_LOOK_SECONDS = 0.5
_NAMESPACE = "wide"
_FULLY_APPLIED = "FullyApplied"
_DROPPED, _QUEUE_FULL = "event_recorder_dropped_events_total{", 'cause="queue-full"'
_LONGEST_STALL = "event_loop_longest_stall_seconds"


class Wide:
    """`deployments` go to every member; those that are paused have no Pods."""

    name = "clusters.wide"
    title = "Deployments to all of many small members, a fifth of which dies"
    counted = "members"
    sizes = Sizes(quick=3, base=10)
    foreign = False
    deployments = 10
    paused = False
    figures = (
        Figure(name="all joined and Ready", unit="s"),
        Figure(name="CPU of joining, each", unit="ms"),
        Figure(name="CPU at rest", unit="% of a core", goals={1_000: 25}),
        Figure(name="writes at rest", unit="/s"),
        Figure(name="memory at rest, each member", unit="MiB", goals={1_000: 1}),
        Figure(name="all Deployments are in all members", unit="s"),
        Figure(name="Works", unit="/s", better="higher"),
        Figure(name="CPU of a Work", unit="ms"),
        Figure(name="simulators, CPU of a Work", unit="ms"),
        Figure(name="writes of a binding"),
        Figure(name="memory of a Work", unit="KiB"),
        Figure(name="Events that did not fit into their queue", goals=dict.fromkeys((10, 30, 100, 300, 1_000), 0)),
        Figure(name="the event loop's longest stall", unit="s"),
        Figure(name="CPU at rest with Deployments", unit="% of a core", goals={1_000: 25}),
        Figure(name="a new Deployment is in all members", unit="s"),
        Figure(name="the dead are known", unit="s"),
        Figure(name="living members that were not Ready", goals=dict.fromkeys((10, 30, 100, 300, 1_000), 0)),
        Figure(name="CPU at rest, a fifth dead", unit="% of a core", goals={1_000: 25}),
        Figure(name="a new Deployment is in all that live", unit="s"),
        Figure(name="simulators, CPU at rest", unit="% of a core"),
        Figure(name="simulators, memory of each member", unit="MiB"),
    )

    async def run(self, size: int, place: Place) -> Measurement:
        with _fleet(place, size) as sims, started_plane(place) as process:
            steps = _Steps(place, process.pid, sims, size, paused=self.paused)
            pids = {f"simulators {number}": sim.process.pid for number, sim in enumerate(sims)}
            meter = Meter({CONTROL_PLANE: process.pid, CLIENT: os.getpid(), **pids})
            await asyncio.gather(*(asyncio.to_thread(_make, sims, size, number) for number in range(len(sims))))
            async with connected(plane_config(place.folder)) as control, following(control) as clusters:
                await steps.join(control, clusters)
                await steps.rest(control)
                await steps.propagate(control, self.deployments)
                await steps.die(control, clusters)
            uses = meter.use()
        return Measurement(figures=steps.figures, processes=uses, costs=steps.costs())


class Thousand(Wide):
    """With 1,000 members it takes ten GiB of memory for the simulators, and half an hour of two cores.

    The Deployments are paused and so have no Pods: a hundred thousand of them would measure the simulators.
    """

    name = "clusters.thousand"
    title = "100 Deployments to all of up to 1,000 small members, a fifth of which dies"
    sizes = Sizes(quick=10, base=100, more=(10,))
    deployments = 100
    paused = True


class _Steps:
    """What is done and measured, one after the other."""

    def __init__(self, place: Place, plane: int, sims: Sequence[Simulated], size: int, *, paused: bool) -> None:
        self.figures: dict[str, float] = {}
        self._place = place
        self._plane = plane
        self._sims = sims
        self._size = size
        self._paused = paused
        self._empty = _resident([plane])
        self._sims_empty = _resident(self._sim_pids)

    @property
    def _sim_pids(self) -> list[int]:
        return [sim.process.pid for sim in self._sims]

    def costs(self) -> dict[str, float]:
        """What is given for each member, Work or binding should not grow at all."""
        return {
            "CPU of joining, s": self.figures["CPU of joining, each"] * self._size / 1e3,
            "CPU at rest, %": self.figures["CPU at rest"],
            "CPU of a Work, ms": self.figures["CPU of a Work"],
            "writes of a binding": self.figures["writes of a binding"],
            "a new Deployment, s": self.figures["a new Deployment is in all members"],
            "memory, MiB": self.figures["memory at rest, each member"] * self._size,
        }

    async def join(self, control: Client, clusters: Readiness) -> None:
        self._place.progress("joining")
        began, used = time.perf_counter(), cpu_seconds(self._plane)

        async def one(number: int) -> None:
            await _join(control, self._sims[number % len(self._sims)], _name(number))

        await each(range(self._size), one, _AT_ONCE)
        await clusters.until(lambda: len(clusters.ready) == self._size)
        self.figures["all joined and Ready"] = time.perf_counter() - began
        await self._calm()
        self.figures["CPU of joining, each"] = 1e3 * (cpu_seconds(self._plane) - used) / self._size

    async def rest(self, control: Client) -> None:
        self._place.progress("at rest")
        before, began = await _revision(control), time.perf_counter()
        plane, sims = await self._use_at_rest()
        self.figures["CPU at rest"] = plane
        self.figures["simulators, CPU at rest"] = sims
        self.figures["writes at rest"] = (await _revision(control) - before) / (time.perf_counter() - began)
        self.figures["memory at rest, each member"] = (_resident([self._plane]) - self._empty) / self._size
        grown = _resident(self._sim_pids) - self._sims_empty
        self.figures["simulators, memory of each member"] = grown / self._size

    async def propagate(self, control: Client, count: int) -> None:
        """Deployments to all members; then one more, alone."""
        self._place.progress(f"propagating {count} Deployments")
        await control.create(objects.NAMESPACES, objects.namespace(_NAMESPACE))
        await control.create(objects.POLICIES, _policy())
        await self._calm()
        resident, began = _resident([self._plane]), time.perf_counter()
        used, by_sims = cpu_seconds(self._plane), sum(map(cpu_seconds, self._sim_pids))
        async with _writes_of_bindings(control) as writes:
            names = [objects.numbered(number) for number in range(count)]
            for name in names:
                await control.create(DEPLOYMENTS, _deployment(name, self._paused))
            for name in names:
                await _until_applied(control, name, self._size)
            seconds = time.perf_counter() - began
            await self._calm()
            self.figures["writes of a binding"] = writes() / count
        works = count * self._size
        self.figures["all Deployments are in all members"] = seconds
        self.figures["Works"] = works / seconds
        self.figures["simulators, CPU of a Work"] = 1e3 * (sum(map(cpu_seconds, self._sim_pids)) - by_sims) / works
        self.figures["CPU of a Work"] = 1e3 * (cpu_seconds(self._plane) - used) / works
        self.figures["memory of a Work"] = 1024 * (_resident([self._plane]) - resident) / works
        await self._read_metrics()
        self.figures["CPU at rest with Deployments"], _ = await self._use_at_rest()
        self.figures["a new Deployment is in all members"] = await self._one_more(control, "before", self._size)

    async def _read_metrics(self) -> None:
        found = await read_metrics(plane_config(self._place.folder))
        dropped = [value for sample, value in found.items() if sample.startswith(_DROPPED) and _QUEUE_FULL in sample]
        self.figures["Events that did not fit into their queue"] = sum(dropped)
        self.figures["the event loop's longest stall"] = found.get(_LONGEST_STALL, 0.0)

    async def die(self, control: Client, clusters: Readiness) -> None:
        dead = range(0, self._size, _DEAD_SHARE)
        names = {_name(number) for number in dead}
        self._place.progress(f"{len(dead)} members die")
        began = time.perf_counter()
        await asyncio.to_thread(self._kill, dead)
        await clusters.until(lambda: not names & clusters.ready)
        self.figures["the dead are known"] = time.perf_counter() - began
        await self._calm()
        self.figures["CPU at rest, a fifth dead"], _ = await self._use_at_rest()
        alive = self._size - len(dead)
        self.figures["a new Deployment is in all that live"] = await self._one_more(control, "after", alive)
        self.figures["living members that were not Ready"] = len(clusters.lost - names)

    def _kill(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            fault = {"type": "down" if number // _DEAD_SHARE % 2 else "black-hole"}
            sim = self._sims[number % len(self._sims)]
            sim.call("POST", f"/clusters/{_name(number)}/faults", {"fault": fault})

    async def _one_more(self, control: Client, name: str, members: int) -> float:
        """Seconds until a Deployment, alone, is in so many members."""
        began = time.perf_counter()
        await control.create(DEPLOYMENTS, _deployment(name, self._paused))
        await _until_applied(control, name, members, 0.1)
        return time.perf_counter() - began

    async def _calm(self) -> None:
        """Until health checks are all that is done: events, which are written behind, are a part of what they cost."""
        at_rest = self.figures.get("CPU at rest")
        above = _QUIET_SHARE if at_rest is None else _USUAL * at_rest / 100
        await until_at_rest([self._plane], above=above, seconds=_CALM_SECONDS)

    async def _use_at_rest(self) -> tuple[float, float]:
        """Of the control plane and of the simulators, in percent of a core."""
        began, before = time.perf_counter(), (cpu_seconds(self._plane), sum(map(cpu_seconds, self._sim_pids)))
        await asyncio.sleep(_REST_SECONDS)
        after, seconds = (cpu_seconds(self._plane), sum(map(cpu_seconds, self._sim_pids))), time.perf_counter() - began
        plane, sims = (100 * (late - early) / seconds for early, late in zip(before, after, strict=True))
        return plane, sims


# members


@contextmanager
def _fleet(place: Place, size: int) -> Iterator[list[Simulated]]:
    with ExitStack() as stack:
        count = -(-size // _IN_ONE_PROCESS)
        yield [stack.enter_context(simulated(place, f"sim{number}")) for number in range(count)]


def _make(sims: Sequence[Simulated], size: int, process: int) -> None:
    """The clusters of one process."""
    for number in range(process, size, len(sims)):
        profile = Profile(_name(number), pools=(NodePool(count=1, pods=1_000),), metrics=False, system_pods=False)
        sims[process].call("POST", "/clusters", msgspec.to_builtins(Stored(profile=profile)))


def _name(number: int) -> str:
    return f"member{number}"


async def _join(control: Client, sim: Simulated, name: str) -> None:
    """As `karmadactl join` does, but for the look at all Clusters whether the name is new."""
    config = load_config(sim.kubeconfig_of(name))
    async with connected(config) as member:
        identity = await cluster_id_of(member)
        joining = Joining.to(config, name)
        await register(control, joining, identity, *await prepare_member(member, name, joining.namespace))


def _resident(pids: Sequence[int]) -> float:
    return sum(memory(pid)[0] for pid in pids)


# Deployments


def _policy() -> Obj:
    """To every cluster there is."""
    policy = objects.policy(_NAMESPACE, DEPLOYMENTS, [])
    return {**policy, "spec": {**policy["spec"], "placement": {"clusterAffinity": {}}}}


def _deployment(name: str, paused: bool) -> Obj:
    """With one Pod in each cluster, once it is not paused."""
    found = objects.deployment(name, _NAMESPACE)
    return {**found, "spec": {**found["spec"], "replicas": 1, "paused": paused}}


async def _revision(control: Client) -> int:
    """Of the store: every write raises it."""
    return int((await control.list(objects.POLICIES, limit=1))["metadata"]["resourceVersion"])


async def _until_applied(control: Client, name: str, members: int, pause: float = _LOOK_SECONDS) -> None:
    """Until the binding reports that all these members have the Deployment: one object is read now and then."""
    selector = f"metadata.name={name}-deployment"
    while True:
        found = (await control.list(ResourceBinding.gvr, _NAMESPACE, field_selector=selector))["items"]
        status = (found[0].get("status") or {}) if found else {}
        condition = get_condition(status.get("conditions"), _FULLY_APPLIED) or {}
        if condition.get("status") == "True" and len(status.get("aggregatedStatus") or ()) >= members:
            return
        await asyncio.sleep(pause)


@asynccontextmanager
async def _writes_of_bindings(control: Client) -> AsyncIterator[Callable[[], int]]:
    count = 0

    def changed(_old: Obj | None, _new: Obj | None) -> None:
        nonlocal count
        count += 1

    informer = Informer(control, ResourceBinding.gvr, _NAMESPACE, shape=METADATA)
    informer.add_handler(changed)
    informer.start()
    try:
        yield lambda: count
    finally:
        await informer.stop()
