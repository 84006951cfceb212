"""Why a resource is in its clusters and not in the others.

The recorded result, condition and events come from the control plane; the reasons are computed here by the scheduler's
algorithm from the binding and the current clusters. Nothing is written. If the resource has no binding, the error says
why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.prediction import quarantined, scheduling
from karmada.prediction.errors import PredictionError

if TYPE_CHECKING:
    from karmada.kube.client.discovery import Mapping
    from karmada.prediction.world import World
    from karmada.scheduler.decision import Decision
    from karmada.scheduler.fitting.situation import Situation
    from karmada.scheduler.fitting.suggestions import Advice

_EVENTS = 5
_SCHEDULING = (
    "ScheduleBindingSucceed",
    "ScheduleBindingFailed",
    "DescheduleBindingSucceed",
    "EvictWorkloadFromClusterSucceed",
    "EvictWorkloadFromClusterFailed",
    "EvictionHeld",
    "EvictionCancelled",
)


class Aim(NamedTuple):
    """The question: why a resource is where it is, and, if a cluster is named, why it is not there."""

    kind: str
    name: str
    namespace: str
    cluster: str


class Found(NamedTuple):
    binding: Obj
    events: list[Obj]
    """The last of those that have to do with scheduling, oldest first."""
    need: str
    """The next step of the scheduler, in words."""
    decision: Decision | None
    """None without a placement."""
    dead: dict[str, str]
    """Clusters that were chosen and are not Ready or do not exist, with the reason."""
    left: tuple[str, ...] = ()
    """The clusters it is leaving: why, and what its copies there wait for."""
    quarantined: tuple[str, ...] = ()
    """What controllers leave alone of it because it hung them, in words."""
    advice: Advice | None = None
    """Changes that would make it fit, or go to the cluster that was named; None if it does."""


async def explain(world: World, aim: Aim, *, fresh: bool = False) -> Found:
    """Explain why a resource is where it is; PredictionError without a binding. `fresh`: as if it were new."""
    from karmada.kube.client.discovery import NoMatch
    from karmada.scheduler.request import is_fresh

    try:
        mapping = await world.mapper.named(aim.kind)
    except NoMatch:
        raise PredictionError(f'the server doesn\'t have a resource type "{aim.kind}"') from None
    binding = await binding_of(world, mapping, aim.name, aim.namespace if mapping.namespaced else "")
    spec, status = binding["spec"], binding.get("status") or {}
    clusters = await world.clusters(*([aim.cluster] if aim.cluster else ()))
    found = Found(
        binding,
        await _events(world, binding),
        "nothing: the binding has no placement",
        None,
        _dead(spec.get("clusters") or (), clusters),
        _left(world, binding, clusters),
        await quarantined.of_binding(world, binding),
    )
    if spec.get("placement") is None:
        return found
    situation = await world.situation(
        spec,
        affinity_name=status.get("schedulerObservingAffinityName") or "",
        fresh=fresh or is_fresh(spec, status),
        into=aim.cluster,
    )
    return await asyncio.to_thread(_decided, world, situation, found)  # may look for a second


def _decided(world: World, situation: Situation, found: Found) -> Found:
    decision, fleet = world.decide(situation), situation.fleet
    deleting = [fleet.names[slot] for slot in fleet.deleting.nonzero()[0].tolist()]
    need = _need(found.binding, deleting, decision, world.components)
    return found._replace(need=need, decision=decision, advice=world.advise(situation, decision))


def _left(world: World, binding: Obj, clusters: Iterable[Obj]) -> tuple[str, ...]:
    if not binding["spec"].get("gracefulEvictionTasks"):
        return ()
    import time

    from karmada.controllers.setting_metrics import read
    from karmada.prediction import evictions

    by_name = {cluster["metadata"]["name"]: cluster for cluster in clusters}
    return tuple(evictions.in_words(binding, by_name, read(world.settings), time.time()))


def _dead(targets: Iterable[Obj], clusters: Iterable[Obj]) -> dict[str, str]:
    from karmada.kube.objects import meta

    known = {cluster["metadata"]["name"]: cluster for cluster in clusters}
    found: dict[str, str] = {}
    for name in sorted(target["name"] for target in targets):
        if name not in known:
            found[name] = "the Cluster does not exist"
            continue
        ready = meta.get_condition((known[name].get("status") or {}).get("conditions"), "Ready")
        if ready is None or ready.get("status") != "True":
            condition = ready or {"reason": "Unknown", "message": "its health is not known yet"}
            found[name] = f"{condition.get('reason')}: {condition.get('message')}".rstrip(".")
    return found


async def binding_of(world: World, mapping: Mapping, name: str, namespace: str) -> Obj:
    from karmada.api.well_known import binding_name
    from karmada.api.work import ClusterResourceBinding, ResourceBinding
    from karmada.kube.objects.errors import NotFound

    if mapping.gvr.group == ResourceBinding.gvr.group and mapping.gvr.resource.endswith("bindings"):
        kind = ResourceBinding if mapping.namespaced else ClusterResourceBinding
        return {**await world.get(kind.gvr, name, namespace), "kind": kind.gvk.kind}
    kind = ResourceBinding if namespace else ClusterResourceBinding
    try:
        found = await world.get(kind.gvr, binding_name(mapping.gvk.kind, name), namespace)
    except NotFound:
        template = await world.get(mapping.gvr, name, namespace)
        template = {**template, "apiVersion": mapping.gvk.api_version, "kind": mapping.gvk.kind}
        raise PredictionError(await _missing(world, template)) from None
    return {**found, "kind": kind.gvk.kind}


async def _missing(world: World, template: Obj) -> str:
    """Return why there is a resource and no binding."""
    from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
    from karmada.api.well_known import CLAIMED_BY, binding_name, is_reserved_namespace
    from karmada.controllers.detector.policies import best
    from karmada.kube.objects import meta

    namespace, name = meta.key(template)
    where = f"{template['kind']} {namespace}/{name}" if namespace else f"{template['kind']} {name}"
    hung = await quarantined.of_template(world, template)
    if hung:
        return f"{where} is in quarantine: {'; '.join(hung)} (karmadactl quarantine release)"
    binding = binding_name(template["kind"], name)
    if is_reserved_namespace(namespace) or namespace.startswith("kube-"):
        return f'{where} is not propagated: the namespace "{namespace}" is the control plane\'s own'
    claimed = meta.labels(template).get(CLAIMED_BY)
    if claimed:
        return f"{where} is not propagated by policies: its label {CLAIMED_BY} says that {claimed} manages it"
    own = await world.objects(PropagationPolicy.gvr, namespace) if namespace else []
    wide = await world.objects(ClusterPropagationPolicy.gvr)
    for kind, policies in (("PropagationPolicy", own), ("ClusterPropagationPolicy", wide)):
        found = best(policies, template)
        if found is not None:
            return (
                f'{where} has no binding ("{binding}") yet, although the {kind} "{meta.name(found)}" selects it: '
                "look at its events, and whether the control plane's controllers run"
            )
    looked_at = f"{len(own)} PropagationPolicies in its namespace and " if namespace else ""
    return f"no policy selects {where}: {looked_at}{len(wide)} ClusterPropagationPolicies were looked at"


async def _events(world: World, binding: Obj) -> list[Obj]:
    ours = [event for event in await world.events(binding) if event.get("reason") in _SCHEDULING]
    ours.sort(key=lambda event: (event.get("lastTimestamp") or "", int(event["metadata"]["resourceVersion"])))
    return ours[-_EVENTS:]


def _need(binding: Obj, deleting: list[str], decision: Decision, components: bool) -> str:
    from karmada.kube.objects import meta
    from karmada.scheduler.request import Request
    from karmada.scheduler.service.schedule_type import ScheduleType, schedule_type_of
    from karmada.scheduler.service.triggers import is_suspended

    if meta.is_deleting(binding):
        return "nothing: it is being deleted"
    if is_suspended(binding):
        return "nothing: spec.suspension.scheduling is true"
    need = schedule_type_of(binding, Request.of(binding), deleting, components=components)
    if need is ScheduleType.NONE:
        return "nothing: its replicas are divided as specified, and stay so when clusters change"
    if is_the_same(binding, decision):
        return "nothing: scheduling it again would give the same clusters"
    return f"schedule it again ({need})"


def is_the_same(binding: Obj, decision: Decision) -> bool:
    written = scheduling.counts(binding["spec"].get("clusters") or ())
    return decision.failure is None and scheduling.counts(decision.targets) == written


# what is written


def path_of(metadata: Obj) -> str:
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata.get('name')}" if namespace else str(metadata.get("name"))


def policy_of(metadata: Obj) -> str:
    from karmada.api.well_known import CLUSTER_POLICY_NAME, POLICY_NAME, POLICY_NAMESPACE

    annotations = metadata.get("annotations") or {}
    if annotations.get(POLICY_NAME):
        return f"PropagationPolicy {annotations.get(POLICY_NAMESPACE)}/{annotations[POLICY_NAME]}"
    if annotations.get(CLUSTER_POLICY_NAME):
        return f"ClusterPropagationPolicy {annotations[CLUSTER_POLICY_NAME]}"
    return "none that is known"


def scheduled_of(status: Obj) -> str:
    from karmada.kube.objects import meta

    found = meta.get_condition(status.get("conditions"), "Scheduled")
    if found is None:
        return "not yet: no scheduler has set the condition"
    return f"{found.get('status')}, {found.get('reason')}: {found.get('message')}"


def observed(metadata: Obj, status: Obj) -> str:
    generation, observed = metadata.get("generation") or 0, status.get("schedulerObservedGeneration") or 0
    at = f", last scheduled {status['lastScheduledTime']}" if status.get("lastScheduledTime") else ""
    return f"generation {observed} of {generation}{at}"


def rebalanced(spec: Obj, status: Obj) -> str:
    """Return what became of the last request to schedule a binding afresh; empty when there was none."""
    from karmada.scheduler.request import is_fresh

    triggered = spec.get("rescheduleTriggeredAt")
    if not triggered:
        return ""
    if is_fresh(spec, status):
        return f"triggered at {triggered} and pending: it is still to be scheduled afresh"
    return f"triggered at {triggered} and done: it was scheduled since"


def as_data(found: Found) -> Obj:
    from karmada.kube.objects import meta

    binding = found.binding
    status = binding.get("status") or {}
    keys = ("type", "reason", "message", "count", "lastTimestamp")
    return {
        "resource": binding["spec"].get("resource") or {},
        "binding": {"kind": binding["kind"], "name": meta.name(binding), "namespace": meta.namespace(binding)},
        "policy": policy_of(binding["metadata"]),
        "written": {
            "clusters": binding["spec"].get("clusters") or [],
            "notReady": found.dead,
            "evicted": list(found.left),
            "quarantined": list(found.quarantined),
            "rebalance": rebalanced(binding["spec"], status),
            "condition": meta.get_condition(status.get("conditions"), "Scheduled"),
            "generation": meta.generation(binding),
            "schedulerObservedGeneration": status.get("schedulerObservedGeneration"),
            "lastScheduledTime": status.get("lastScheduledTime"),
            "events": [{key: event.get(key) for key in keys} for event in found.events],
        },
        "next": found.need,
        "now": None if found.decision is None else scheduling.as_data(found.decision, found.advice),
    }
