"""Changes of amounts: resources and nodes of clusters, quotas, replicas and what they request.

How much at most is worth trying is a generous bound; how much is needed is found by trying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from karmada.estimator.amounts import PODS, amount, quantity
from karmada.estimator.resources import demand_of, on_node
from karmada.kube.objects import meta
from karmada.kube.objects.quantity import ZERO, Quantity
from karmada.kube.objects.types import Obj
from karmada.scheduler.capacity import grades_of, left_over, summary_of
from karmada.scheduler.fitting import changes
from karmada.scheduler.fitting.changes import Change, Sort
from karmada.scheduler.fitting.knobs import Knob, Option, fixed
from karmada.scheduler.fitting.situation import Situation
from karmada.scheduler.fitting.steps import of_steps, steps_in
from karmada.scheduler.request import Request

_NODES = 10_000
REQUESTS = "requests."
"""The prefix that names of resources in a ResourceQuota may have."""


# what is to be placed


def _pods(request: Request, cluster: str) -> list[tuple[int, Obj]]:
    """Return numbers of Pods with what each requests: all of the workload, and what was just placed in a cluster."""
    assumed = [part for one in request.assumed.get(cluster, ()) for part in one.components]
    parts = [{"replicas": request.replicas, "replicaRequirements": request.requirements}, *request.components, *assumed]
    return [(part.get("replicas") or 0, part.get("replicaRequirements") or {}) for part in parts]


def _needed(request: Request, cluster: str) -> dict[str, Quantity]:
    """Return, by resource, more than everything together requests."""
    total: dict[str, Quantity] = {}
    for count, requirements in _pods(request, cluster):
        for name, value in (requirements.get("resourceRequest") or {}).items():
            total[name] = total.get(name, ZERO) + quantity(value) * (count + 1)
        total[PODS] = total.get(PODS, ZERO) + Quantity.of(count + 1)
    return {name: needed for name, needed in total.items() if needed > ZERO}


def _amount(make: Callable[[Quantity], Change], resource: str, limit: Quantity) -> Knob:
    """Return the knob of an amount of a resource, in steps."""
    return Knob(lambda steps: make(of_steps(resource, steps)), steps_in(resource, limit))


# clusters


def of_clusters(situation: Situation, names: Sequence[str], *, alone: bool) -> Iterator[Option]:
    if not situation.request.replicas and not situation.request.components:
        return
    for name in names:
        cluster = situation.cluster(name)
        resources = tuple(_resources(situation.request, cluster))
        estimated = (*_estimated(situation, name), *_member_quotas(situation, name))
        yield Option(Sort.ESTIMATE if estimated else Sort.RESOURCES, name, (*estimated, *resources), alone)
        nodes = _nodes(situation.request, cluster)
        if nodes is not None:
            yield Option(Sort.NODES, name, (nodes, *estimated), alone)


def _resources(request: Request, cluster: Obj) -> Iterator[Knob]:
    name = meta.name(cluster)
    summary = summary_of(cluster) or {}
    for resource, needed in _needed(request, name).items():
        had = resource in (summary.get("allocatable") or {})
        left = left_over(summary, resource) if had else ZERO
        limit = needed + (-left if left < ZERO else ZERO)
        yield _amount(partial(changes.more_resources, name, resource), resource, limit)


def _estimated(situation: Situation, cluster: str) -> Iterator[Knob]:
    for answered in situation.answers:
        reported = answered.replicas.get(cluster)
        if reported is not None:
            limit = max(situation.request.replicas, 1)
            yield Knob(partial(changes.more_estimated, cluster, answered.name, reported), limit)


def _member_quotas(situation: Situation, cluster: str) -> Iterator[Knob]:
    needed = _needed(situation.request, cluster)
    for answered in situation.answers:
        for quota in answered.quotas.get(cluster, ()):
            status = quota.get("status") or {}
            hard, used = status.get("hard") or {}, status.get("used") or {}
            for key in hard:
                resource = key.removeprefix(REQUESTS)
                if resource in needed:
                    overdrawn = quantity(used.get(key, ZERO)) - quantity(hard[key])
                    limit = needed[resource] + (overdrawn if overdrawn > ZERO else ZERO)
                    make = partial(changes.more_member_quota, answered.name, cluster, meta.name(quota), key)
                    yield _amount(make, resource, limit)


def _nodes(request: Request, cluster: Obj) -> Knob | None:
    """Return the knob for nodes of the lowest grade that is enough for each of the Pods."""
    if grades_of(cluster) is None:
        return None
    demands = [on_node(demand_of(requirements)) for count, requirements in _pods(request, meta.name(cluster)) if count]
    for model in sorted(cluster["spec"]["resourceModels"], key=lambda one: one.get("grade") or 0):
        least = {part["name"]: part["min"] for part in model["ranges"]}
        if all(
            amount(name, quantity(least.get(name, 0))) >= need for demand in demands for name, need in demand.items()
        ):
            texts = {name: str(value) for name, value in least.items()}
            limit = min(sum(count for count, _ in _pods(request, meta.name(cluster))) + 1, _NODES)
            return Knob(partial(changes.more_nodes, meta.name(cluster), model.get("grade") or 0, texts), limit)
    return None


# quotas


def of_quotas(situation: Situation) -> Iterator[Option]:
    for quota in situation.quotas:
        knobs = tuple(_quota(situation, quota))
        if knobs:
            yield Option(Sort.QUOTA, "", knobs)


def _quota(situation: Situation, quota: Obj) -> Iterator[Knob]:
    used = (quota.get("status") or {}).get("overallUsed") or {}
    overall = (quota.get("spec") or {}).get("overall") or {}
    for resource, needed in _needed(situation.request, "").items():
        if resource in overall:
            most = quantity(used.get(resource, ZERO)) + needed * max(situation.fleet.count, 1)
            yield _amount(partial(changes.more_quota, meta.name(quota), resource), resource, most)


# the workload


def of_workload(situation: Situation, *, alone: bool) -> Iterator[Option]:
    request = situation.request
    if not request.divides_replicas:
        return
    if request.previous and not request.fresh:
        yield Option(Sort.RESCHEDULING, "", (fixed(changes.reschedule()),), alone)
    if request.replicas > 1:
        fewer = Knob(lambda size: changes.fewer_replicas(request.replicas - size), request.replicas - 1)
        yield Option(Sort.REPLICAS, "", (fewer,), alone)
    for knob in () if situation.answers else _less_requested(request):
        yield Option(Sort.REQUEST, "", (knob,), alone)


def _less_requested(request: Request) -> Iterable[Knob]:
    for name, value in ((request.requirements or {}).get("resourceRequest") or {}).items():
        steps = steps_in(name, quantity(value))
        if steps > 1:
            yield Knob(partial(_request_of, name, steps), steps - 1)


def _request_of(name: str, steps: int, size: int) -> Change:
    return changes.request_less(name, of_steps(name, steps - size))
