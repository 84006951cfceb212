"""A drill: clusters fail in a rehearsal of the fleet, and what happens to every workload is measured.

Nothing is estimated: the control plane's own controllers and scheduler run, and simulated members run what they are
sent. A replica serves when its member reports it ready and the member can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterTaintPolicy
from karmada.controllers.cluster_state import is_ready
from karmada.controllers.context import Settings
from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates
from karmada.prediction.failing import DEAD_CLUSTERS
from karmada.prediction.world import World
from karmada.rehearsal.copying import BINDINGS, bindings_of, definitions_in
from karmada.rehearsal.fleet import RehearsalFleet
from karmada.rehearsal.network import State
from karmada.rehearsal.stand_ins import others_on, profile_of

_WARM_UP: Final = 90.0
_SETTLING: Final = 300.0
_CALM: Final = 120.0
"""Seconds without any change after which nothing more is expected, once the control plane knows of the failure."""


class Target(NamedTuple):
    """A resource whose copies are followed."""

    kind: str
    resource: GroupResource
    namespace: str
    name: str
    binding: str
    custom: bool = False
    """True for a custom resource, whose controller does not run in a rehearsal: it serves wherever it is."""


@dataclass(slots=True)
class Course:
    """The course of one resource through a drill; times in seconds since the failure."""

    target: Target
    before: dict[str, int]
    """Replicas that served in each cluster before."""
    after: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    """Replicas that the scheduler gives each cluster in the end."""
    least: int = 0
    downtime: float = 0.0
    """How long nothing served."""
    degraded: float = 0.0
    """How long less served than before."""
    recovered: float | None = None
    """When as much served again as before; None: not in the time of the drill."""
    problem: str = ""
    """Why it could not be scheduled."""
    timeline: list[tuple[float, int]] = field(default_factory=list)
    """How much serves from when on, each time it changes."""

    @property
    def lost(self) -> int:
        return sum(self.before.values()) - sum(self.after.values())

    @property
    def touched(self) -> bool:
        return self.degraded > 0 or self.before != self.after


@dataclass(slots=True)
class Report:
    failed: list[str]
    lasted: float
    courses: list[Course]
    notes: list[str]

    @property
    def downtime(self) -> float:
        return max((course.downtime for course in self.courses), default=0.0)


@dataclass(slots=True)
class Drill:
    world: World
    """Copied: without a control plane beneath."""
    failing: Sequence[str]
    settings: Settings
    gates: FeatureGates
    lasts: float = 1800.0
    with_failover: bool = False
    progress: Callable[[str], None] = lambda _text: None

    async def run(self, folder: Path) -> Report:
        if self.with_failover:
            self.gates.set("Failover=true")
            self.settings = replace(self.settings, enable_no_execute_taint_eviction=True)
        fleet = RehearsalFleet(folder, self.settings, self.gates)
        await fleet.start()
        try:
            await self._assemble(fleet)
            return await self._fail(fleet)
        finally:
            await fleet.stop()

    async def _assemble(self, fleet: RehearsalFleet) -> None:
        """Make the fleet in memory as it is in the world."""
        clusters, bindings = self.world.given(Cluster.gvr), bindings_of(self.world)
        for number, cluster in enumerate(clusters, 1):
            name = meta.name(cluster)
            self.progress(f"starting members: {number} of {len(clusters)}")
            inside = [*definitions_in(self.world, cluster), *others_on(cluster, bindings)]
            await fleet.add_member(profile_of(cluster), objects=inside)
            await fleet.join(name, cluster)
            if not is_ready(cluster):
                fleet.change_network(name, State.DOWN)
        await fleet.start_controllers()
        ready = {meta.name(cluster) for cluster in clusters if is_ready(cluster)}
        await fleet.run(_WARM_UP, until=lambda: ready <= _ready_members(fleet))
        self.progress(f"placing {len(bindings)} resources")
        await fleet.store((kind, obj) for kind, obj in self.world.all_given() if kind != Cluster.gvr)
        if self.with_failover and not self.world.given(ClusterTaintPolicy.gvr):
            await fleet.client.create(ClusterTaintPolicy.gvr, DEAD_CLUSTERS)
        await fleet.run(_SETTLING, until=lambda: _is_placed(fleet, bindings))
        await fleet.run(10)

    async def _fail(self, fleet: RehearsalFleet) -> Report:
        targets = await self._targets(fleet)
        courses = [Course(target, _serving(fleet, target)) for target in targets]
        watch = _Watch(fleet, courses)
        for name in self.failing:
            fleet.change_network(name, State.DOWN)
        self.progress(f"{', '.join(self.failing)} failed")
        known = self.settings.cluster_failure_threshold + 2 * self.settings.cluster_status_update_frequency
        await fleet.run(min(known, self.lasts), each=watch.look)
        await fleet.run(self.lasts - min(known, self.lasts), until=lambda: watch.is_calm(_CALM), each=watch.look)
        for course in courses:
            _conclude(fleet, course)
        return Report(list(self.failing), watch.passed, courses, self.world.notes)

    async def _targets(self, fleet: RehearsalFleet) -> list[Target]:
        custom = {definition["spec"]["group"] for definition in self.world.given(CRDS)}
        found = []
        for binding in bindings_of(self.world):
            resource = binding["spec"]["resource"]
            try:
                gvr = await fleet.client.resource(GVK.parse(resource["apiVersion"], resource["kind"]))
            except NoMatch:
                continue
            where = (resource.get("namespace") or "", resource["name"], meta.name(binding))
            found.append(Target(resource["kind"], gvr.group_resource, *where, custom=gvr.group in custom))
        return found


class _Watch:
    """Looks at what serves after every moment, and adds up."""

    def __init__(self, fleet: RehearsalFleet, courses: list[Course]) -> None:
        self._fleet = fleet
        self._courses = courses
        self._began = self._last = self._changed = fleet.clock.now()
        self._serving = {course.target: sum(course.before.values()) for course in courses}
        for course in courses:
            course.least = self._serving[course.target]
            course.timeline.append((0.0, course.least))

    @property
    def passed(self) -> float:
        return self._fleet.clock.now() - self._began

    def is_calm(self, seconds: float) -> bool:
        """Return whether nothing changed for so long, or everything is as good as before."""
        calm = self._fleet.clock.now() - self._changed >= seconds
        return calm or all(course.recovered is not None for course in self._courses)

    def look(self) -> None:
        now = self._fleet.clock.now()
        for course in self._courses:
            self._add(course, self._serving[course.target], now - self._last)
            count = sum(_serving(self._fleet, course.target).values())
            if count != self._serving[course.target]:
                self._serving[course.target], self._changed = count, now
                course.timeline.append((now - self._began, count))
            full = sum(course.before.values())
            course.least = min(course.least, count)
            if count < full:
                course.recovered = None
            elif course.recovered is None:
                course.recovered = now - self._began
        self._last = now

    @staticmethod
    def _add(course: Course, count: int, seconds: float) -> None:
        full = sum(course.before.values())
        course.downtime += seconds if full and not count else 0.0
        course.degraded += seconds if count < full else 0.0


def _serving(fleet: RehearsalFleet, target: Target) -> dict[str, int]:
    """Ready replicas by cluster; 1 where a resource without replicas is."""
    found = {}
    for name, member in fleet.members.items():
        obj = member.sim.server.cache.get(target.resource, target.namespace, target.name)
        if obj is not None and member.network.state is State.UP:
            count = 1 if target.custom else _count(obj)
            if count:
                found[name] = count
    return found


def _count(obj: Obj) -> int:
    status = obj.get("status") or {}
    if "replicas" in (obj.get("spec") or {}):
        return status.get("readyReplicas") or 0
    if obj.get("kind") == "DaemonSet":
        return status.get("numberReady") or 0
    return 1


def _conclude(fleet: RehearsalFleet, course: Course) -> None:
    course.after = _serving(fleet, course.target)
    binding = _binding(fleet, course.target)
    if binding is None:
        return
    course.wanted = {t["name"]: t.get("replicas") or 0 for t in binding["spec"].get("clusters") or ()}
    scheduled = meta.get_condition((binding.get("status") or {}).get("conditions"), "Scheduled")
    if scheduled is not None and scheduled.get("status") != "True":
        course.problem = scheduled.get("message") or scheduled.get("reason") or ""


def _binding(fleet: RehearsalFleet, target: Target) -> Obj | None:
    kind = BINDINGS[0] if target.namespace else BINDINGS[1]
    return fleet.server.cache.get(kind.gvr.group_resource, target.namespace, target.binding)


def _ready_members(fleet: RehearsalFleet) -> set[str]:
    found = ((name, fleet.server.cache.get(Cluster.gvr.group_resource, "", name)) for name in fleet.members)
    return {name for name, cluster in found if cluster is not None and is_ready(cluster)}


def _is_placed(fleet: RehearsalFleet, bindings: Iterable[Obj]) -> bool:
    """Return whether everything is healthy where the control plane wants it."""
    for binding in bindings:
        kind = next(kind for kind in BINDINGS if kind.gvk.kind == binding["kind"])
        found = fleet.server.cache.get(kind.gvr.group_resource, meta.namespace(binding), meta.name(binding))
        healthy = {
            item["clusterName"]
            for item in ((found or {}).get("status") or {}).get("aggregatedStatus") or ()
            if item.get("health") == "Healthy"
        }
        targets = {target["name"] for target in ((found or {}).get("spec") or {}).get("clusters") or ()}
        if targets - healthy:
            return False
    return True
