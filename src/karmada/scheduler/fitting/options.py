"""Which changes are worth trying when a resource does not fit: by what refused which cluster, and what is short.

A fleet may have thousands of clusters, so of each sort only a few are tried: those with the fewest obstacles first,
then the best of every region, then by capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from karmada.api.taints import is_tolerated
from karmada.api.well_known import NO_EXECUTE, NO_SCHEDULE
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.scheduler.decision import Attempt, Decision
from karmada.scheduler.filters import workload_affinity
from karmada.scheduler.filters.builtin import (
    PROPERTIES,
    ApiEnablement,
    ClusterAffinity,
    ClusterEviction,
    SpreadConstraint,
    TaintToleration,
)
from karmada.scheduler.fitting import capacity_options
from karmada.scheduler.fitting.admission import admit
from karmada.scheduler.fitting.changes import (
    Change,
    Sort,
    enable_api,
    end_eviction,
    locate,
    move_peers,
    spread,
    tolerate,
)
from karmada.scheduler.fitting.judge import Judge
from karmada.scheduler.fitting.knobs import Knob, Option, distinct, fixed
from karmada.scheduler.fitting.situation import Situation

ADMITTED, GROWN = 32, 8
"""As many clusters are tried for each sort of change: a change that is made or not takes one trial, an amount many."""
ATTEMPTS = 3
"""Groups of clusters that are looked at."""
TOGETHER = 8
"""As many clusters may have to be admitted at once; the least promising are left out again if they are not needed."""
_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)


@dataclass(frozen=True, slots=True)
class Refused:
    """A cluster that filters refuse."""

    attempt: Attempt
    name: str
    filters: tuple[str, ...]


def options(situation: Situation, decision: Decision, judge: Judge) -> list[Option]:
    """Return the changes that are worth trying, the cheapest first."""
    found: list[Option] = []
    attempts = decision.attempts[:ATTEMPTS]
    open_to_some = any(len(attempt.candidates.slots) for attempt in attempts)
    for attempt in attempts:
        refused = _refused(situation, attempt, judge)
        found += _by_filter(situation, refused)
        names = [one.name for one in refused]
        for alone, clusters in ((True, _candidates(situation, attempt)), (False, names)):
            found += capacity_options.of_clusters(situation, clusters[:GROWN], alone=alone)
    found += _spread(situation, alone=open_to_some)
    found += capacity_options.of_quotas(situation)
    found += capacity_options.of_workload(situation, alone=open_to_some)
    return list(distinct(sorted(found, key=lambda option: (option.sort, not option.alone))))


def _candidates(situation: Situation, attempt: Attempt) -> list[str]:
    """Return the clusters that passed the filters, best first."""
    ranking, candidates = attempt.ranking, attempt.candidates
    names: list[str] = (
        candidates.fleet.named[candidates.slots].tolist()
        if ranking is None
        else ranking.names(np.arange(len(ranking.slots)))
    )
    return _mixed(situation, [name for name in names if situation.into in ("", name)])


def _mixed(situation: Situation, names: Sequence[str]) -> list[str]:
    """Return the first of every region first, then the second of each, and so on."""
    places: dict[str, int] = {}
    order: list[tuple[int, str]] = []
    for name in names:
        region = (situation.cluster(name).get("spec") or {}).get("region") or ""
        places[region] = places.get(region, 0) + 1
        order.append((places[region], name))
    return [name for _, name in sorted(order, key=lambda entry: entry[0])]


# spread constraints


def _spread(situation: Situation, *, alone: bool) -> Iterator[Option]:
    if situation.request.plan.spread_ignored:
        return
    for place, constraint in enumerate(situation.placement["spreadConstraints"]):
        by = constraint.get("spreadByField") or f"label {constraint.get('spreadByLabel')}"
        least, most = constraint.get("minGroups") or 0, constraint.get("maxGroups") or 0
        if least > 1:
            fewer = partial(_spread_by, place, by, "minGroups", least, -1)
            yield Option(Sort.SPREAD, "", (Knob(fewer, least - 1),), alone)
        if 0 < most < situation.fleet.count:
            more = partial(_spread_by, place, by, "maxGroups", most, 1)
            yield Option(Sort.SPREAD, "", (Knob(more, situation.fleet.count - most),), alone)


def _spread_by(place: int, by: str, bound: str, had: int, sign: int, size: int) -> Change:
    return spread(place, by, bound, had + sign * size)


# clusters that are refused


def _refused(situation: Situation, attempt: Attempt, judge: Judge) -> list[Refused]:
    """Return the clusters that filters refuse, the most promising first."""
    found = {
        name: Refused(attempt, name, tuple(filters))
        for name, filters in attempt.candidates.obstacles()
        if situation.into in ("", name)
    }
    if not found:
        return []
    slots = np.array([situation.fleet.slots[name] for name in found], np.int64)
    room = dict(zip(found, judge.estimate(situation, slots).tolist(), strict=True))
    by_room = sorted(found, key=lambda name: (-room[name], name))
    return sorted((found[name] for name in _mixed(situation, by_room)), key=lambda one: len(one.filters))


def _by_filter(situation: Situation, refused: Sequence[Refused]) -> Iterator[Option]:
    for filter_name, (sort, make) in _MAKERS.items():
        made = (
            Option(sort, one.name, knobs, alone=len(one.filters) == 1)
            for one in refused
            if filter_name in one.filters
            for knobs in make(situation, one)
        )
        found = list(islice(distinct(made), ADMITTED))
        yield from found
        together = [option for option in found if option.alone][:TOGETHER]
        if len(together) > 1:
            yield Option(sort, "", tuple(knob for option in together for knob in option.knobs), alone=False)


def _tolerate(situation: Situation, one: Refused) -> Iterator[tuple[Knob, ...]]:
    taints = (situation.cluster(one.name).get("spec") or {}).get("taints") or ()
    tolerations = situation.request.plan.tolerations
    yield tuple(
        fixed(tolerate(taint))
        for taint in taints
        if taint.get("effect") in _EFFECTS and not is_tolerated(taint, tolerations)
    )


def _admit(situation: Situation, one: Refused) -> Iterator[tuple[Knob, ...]]:
    found = admit(situation.placement, situation.cluster(one.name), one.attempt.index)
    if found is not None:
        yield (fixed(found),)


def _locate(situation: Situation, one: Refused) -> Iterator[tuple[Knob, ...]]:
    """Yield changes to a value that other clusters have, and to a new one."""
    spec = situation.cluster(one.name).get("spec") or {}
    fields = [PROPERTIES[by] for by in situation.request.plan.fields if by in PROPERTIES]
    missing = [field for field in fields if not spec.get(field)]
    for value in (partial(_known_value, situation), _new_value):
        yield tuple(fixed(locate(one.name, field, value(field))) for field in missing)


def _known_value(situation: Situation, field: str) -> str:
    for slot in situation.fleet.by_name.tolist():
        here = (situation.fleet.cluster(slot).get("spec") or {}).get(field)
        if here:
            return str(here[0] if isinstance(here, list) else here)
    return _new_value(field)


def _new_value(field: str) -> str:
    return f"another-{field.removesuffix('s')}"


def _enable(situation: Situation, one: Refused) -> Iterator[tuple[Knob, ...]]:
    resource = situation.request.resource
    yield (fixed(enable_api(one.name, resource.get("apiVersion") or "", resource.get("kind") or "")),)


def _end_eviction(_situation: Situation, one: Refused) -> Iterator[tuple[Knob, ...]]:
    yield (fixed(end_eviction(one.name)),)


def _apart(situation: Situation, one: Refused) -> Iterator[tuple[Knob, ...]]:
    yield from _peers(situation, one, workload_affinity.ANTI_AFFINITY, there=False)


def _together(situation: Situation, one: Refused) -> Iterator[tuple[Knob, ...]]:
    yield from _peers(situation, one, workload_affinity.AFFINITY, there=True)


def _peers(situation: Situation, one: Refused, which: str, *, there: bool) -> Iterator[tuple[Knob, ...]]:
    """Yield the change that moves the members of its group that are in the wrong place."""
    request = situation.request
    if request.peers is None:
        return
    try:
        members: list[tuple[Obj, set[str]]] = list(workload_affinity.members(request, request.peers, which))
    except (workload_affinity.NotComparable, workload_affinity.NotListed):
        return
    wrong = [meta.name(binding) for binding, clusters in members if clusters and (one.name in clusters) is not there]
    if wrong:
        yield (fixed(move_peers(one.name, wrong, there=there)),)


_Make = Callable[[Situation, Refused], Iterator[tuple[Knob, ...]]]
_MAKERS: dict[str, tuple[Sort, _Make]] = {
    TaintToleration.name: (Sort.TOLERATION, _tolerate),
    ClusterAffinity.name: (Sort.AFFINITY, _admit),
    SpreadConstraint.name: (Sort.LOCATION, _locate),
    ApiEnablement.name: (Sort.API, _enable),
    ClusterEviction.name: (Sort.EVICTION, _end_eviction),
    workload_affinity.WorkloadAntiAffinity.name: (Sort.PEER, _apart),
    workload_affinity.WorkloadAffinity.name: (Sort.PEER, _together),
}
