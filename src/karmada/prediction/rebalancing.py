"""The effect of a WorkloadRebalancer: which bindings would be scheduled afresh, and how many replicas would move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.prediction import intended_binding as intended
from karmada.prediction import scheduling
from karmada.prediction.errors import PredictionError

if TYPE_CHECKING:
    from karmada.prediction.trials import Outcome
    from karmada.prediction.world import World


class Affected(NamedTuple):
    bindings: list[Obj]
    """The bindings that would be scheduled afresh."""
    notes: list[str]
    """Why it would have no effect on others."""


def is_rebalancer(obj: Obj) -> bool:
    from karmada.api.apps import WorkloadRebalancer

    return (obj.get("apiVersion"), obj.get("kind")) == (WorkloadRebalancer.gvk.api_version, WorkloadRebalancer.gvk.kind)


def listed(rebalancer: Obj) -> list[Obj]:
    """Return the workloads of a manifest; PredictionError when the control plane would not store it."""
    import msgspec

    from karmada.api.apps import WorkloadRebalancer

    try:
        WorkloadRebalancer.of(rebalancer)
    except msgspec.ValidationError as error:
        raise PredictionError(f'WorkloadRebalancer "{rebalancer["metadata"]["name"]}": {error}') from error
    workloads: list[Obj] = rebalancer["spec"]["workloads"]
    return workloads


async def named(world: World, words: Iterable[str], namespace: str) -> list[Obj]:
    """Return the workloads that were named as TYPE/NAME."""
    from karmada.kube.client.discovery import NoMatch

    found: list[Obj] = []
    for word in words:
        kind, slash, name = word.partition("/")
        if not slash or not kind or not name:
            raise PredictionError(f'"{word}" does not name a workload: give it as TYPE/NAME, such as deployment/web')
        try:
            mapping = await world.mapper.named(kind)
        except NoMatch:
            raise PredictionError(f'the server doesn\'t have a resource type "{kind}"') from None
        workload = {"apiVersion": mapping.gvk.api_version, "kind": mapping.gvk.kind, "name": name}
        found.append({**workload, "namespace": namespace} if mapping.namespaced else workload)
    return found


async def affected(world: World, workloads: Sequence[Obj]) -> Affected:
    """Return the bindings that a rebalancer with these workloads would have scheduled afresh."""
    from karmada.controllers.workload_rebalancer import BINDING_NOT_FOUND, FAILED, observed

    bindings: list[Obj] = []
    notes: list[str] = []
    for entry in observed(workloads, None):
        resource = {**entry["workload"], "metadata": entry["workload"]}
        binding = await intended.live_binding(world, resource)
        if binding is None:
            notes.append(f"{_called(resource)} has no binding: its result would be {FAILED} ({BINDING_NOT_FOUND}).")
        elif binding["spec"].get("placement") is None:
            notes.append(f"{_called(resource)} has no placement of its own: it follows what depends on it.")
        else:
            bindings.append(binding)
    unsuspended = not_suspended(bindings)
    return Affected(unsuspended.bindings, [*notes, *unsuspended.notes])


def not_suspended(bindings: Sequence[Obj]) -> Affected:
    from karmada.scheduler.service.triggers import is_suspended

    suspended = [binding["spec"]["resource"] for binding in bindings if is_suspended(binding)]
    notes = [f"{_called({**one, 'metadata': one})} would stay: its scheduling is suspended." for one in suspended]
    return Affected([binding for binding in bindings if not is_suspended(binding)], notes)


def _called(resource: Obj) -> str:
    return f"{resource['kind']} {intended.name_of(resource)}"


# output


def totals(outcomes: Iterable[Outcome]) -> list[tuple[str, int, int]]:
    """Return the name of each cluster with its replicas now and then; only of what is divided."""
    now: Counter[str] = Counter()
    then: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.divided:
            now.update(scheduling.counts(outcome.before))
            then.update(scheduling.counts(outcome.after))
    return [(name, now[name], then[name]) for name in sorted({*now, *then})]


def sums(outcomes: Sequence[Outcome]) -> list[str]:
    """Return lines with the replicas of each cluster now and then, and how many would move in all."""
    rows = [
        ["CLUSTER", "NOW", "THEN", "CHANGE"],
        *([name, str(now), str(then), f"{then - now:+d}"] for name, now, then in totals(outcomes)),
    ]
    total = sum(outcome.moves for outcome in outcomes)
    text = f"{total} {'replica' if total == 1 else 'replicas'} would move."
    return [*scheduling.table(rows), "", text] if len(rows) > 1 else [text]
