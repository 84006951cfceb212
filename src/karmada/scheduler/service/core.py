"""What the schedulers of both sorts of bindings share: the fleet as it is now, and how decisions are made on it.

The fleet follows the clusters' informer: changes are gathered and taken over when the next decision begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from karmada.api.cluster import Cluster
from karmada.api.work import ResourceBinding
from karmada.controllers.context import Context
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of
from karmada.scheduler.algorithm import Profile, schedule, schedule_remotely
from karmada.scheduler.decision import Decision
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.estimators.protocol import LocalEstimator, RemoteEstimator
from karmada.scheduler.filters.workload_affinity import AFFINITY, ANTI_AFFINITY, newest
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.plugins import EVERYTHING, builtin, discover, estimators_of, profile_of
from karmada.scheduler.request import Assumption, Request
from karmada.scheduler.service.assumptions import Assumptions
from karmada.scheduler.service.triggers import DEFAULT_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The flags of a scheduler."""

    name: str = DEFAULT_NAME
    plugins: tuple[str, ...] = (EVERYTHING,)
    propagate_empty: bool = False


class Core:
    def __init__(self, context: Context, options: Options, remote: Sequence[RemoteEstimator] = ()) -> None:
        self.options = options
        self.gates = context.gates
        self.components = context.gates.enabled("MultiplePodTemplatesScheduling")
        registry = discover(builtin(workload_affinity=context.gates.enabled("WorkloadAffinity")))
        self.profile: Profile = profile_of(
            registry, options.plugins, components=self.components, propagate_empty=options.propagate_empty
        )
        own = estimators_of(registry, options.plugins)
        models = context.gates.enabled("CustomizedClusterResourceModeling")
        self._local: list[LocalEstimator] = [
            GeneralEstimator(models=models),
            *(one for one in own if isinstance(one, LocalEstimator)),
        ]
        self._remote = [*remote, *(one for one in own if not isinstance(one, LocalEstimator))]
        self._clusters = context.informers.of(Cluster.gvr)
        self._clusters.add_handler(self._cluster_changed)
        self._changes: dict[str, Obj | None] = {}
        self._fleet = Fleet()
        self.peers = Peers(context) if context.gates.enabled("WorkloadAffinity") else None
        self.assumptions = (
            Assumptions(context.clock) if context.gates.enabled("SchedulingOvercommitProtection") else None
        )

    def _cluster_changed(self, old: Obj | None, new: Obj | None) -> None:
        cluster = new or old
        assert cluster is not None
        self._changes[cluster["metadata"]["name"]] = new

    @property
    def fleet(self) -> Fleet:
        if self._changes:
            changes, self._changes = self._changes, {}
            self._fleet = self._fleet.updated(changes)
        return self._fleet

    def deleting(self) -> list[str]:
        """The clusters that are on their way out."""
        fleet = self.fleet
        return [fleet.names[slot] for slot in fleet.deleting.nonzero()[0].tolist()]

    def request(self, binding: Obj) -> Request:
        assumed: Mapping[str, Sequence[Assumption]] = (
            self.assumptions.by_cluster() if self.assumptions is not None else {}
        )
        return Request.of(binding, peers=self.peers, assumed=assumed)

    async def decide(self, request: Request) -> Decision:
        if self._remote:
            return await schedule_remotely(request, self.fleet, self._local, self._remote, self.profile)
        return schedule(request, self.fleet, self._local, self.profile)


def _index(which: str) -> dict[str, object]:
    def by_group(binding: Obj) -> Iterable[str]:
        group = ((binding.get("spec") or {}).get("workloadAffinityGroups") or {}).get(which)
        return (group,) if group else ()

    return {which: by_group}


_INDEXES = {**_index(AFFINITY), **_index(ANTI_AFFINITY)}


class Peers:
    """Bindings by their groups; what was just written counts before the informer shows it."""

    def __init__(self, context: Context) -> None:
        self._bindings = context.informers.of(ResourceBinding.gvr, indexes=_INDEXES)  # type: ignore[arg-type]
        self._bindings.add_handler(self._changed)
        self._written: dict[Key, Obj] = {}

    def note(self, binding: Obj) -> None:
        self._written[key_of(binding)] = binding

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        known = self._written.get(key_of(new or old or {}))
        if known is None:
            return
        if new is None or newest(new, known) is new:
            del self._written[key_of(known)]

    def affinity(self, group: str) -> Iterable[Obj]:
        return self._of(AFFINITY, group)

    def anti_affinity(self, group: str) -> Iterable[Obj]:
        return self._of(ANTI_AFFINITY, group)

    def _of(self, which: str, group: str) -> list[Obj]:
        listed = self._bindings.by_index(which, group)
        return [newest(binding, self._written.get(key_of(binding))) for binding in listed]
