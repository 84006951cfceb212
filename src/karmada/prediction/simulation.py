"""Where resources would be scheduled: with policies that do not exist yet, or with clusters that fail or are cordoned.

The binding is computed here by the same rules as in the control plane: which policy applies, its defaults, the replicas
and their requirements, and then the scheduler's algorithm. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.prediction import intended_binding as intended
from karmada.prediction import rebalancing, scheduling
from karmada.prediction.errors import PredictionError
from karmada.prediction.failing import Failover, failover_of
from karmada.prediction.trials import Fleet, Outcome, Trial, changed, check, decide

if TYPE_CHECKING:
    from karmada.kube.client.client import Client

_POLICY_GROUP = "policy.karmada.io/"


class Simulation(NamedTuple):
    outcomes: list[Outcome]
    notes: list[str]
    """On what is not among the outcomes."""
    quotas: Mapping[str, Sequence[Obj]] = {}
    """The federated quotas by namespace."""


class NothingSelected(PredictionError):
    """The policies select nothing that exists."""


class Given(NamedTuple):
    """Manifests by what they are for a simulation."""

    resources: list[Obj]
    policies: list[Obj]
    rebalanced: list[Obj]
    """The workloads of WorkloadRebalancers."""


def sorted_out(objects: Iterable[Obj]) -> Given:
    """Manifests by what they are; PredictionError for one without a name."""
    given = Given([], [], [])
    for obj in objects:
        if not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
            raise PredictionError(f"{obj['kind']} without a name")
        if obj["kind"] in intended.POLICY_KINDS and obj["apiVersion"].startswith(_POLICY_GROUP):
            given.policies.append(obj)
        elif rebalancing.is_rebalancer(obj):
            given.rebalanced.extend(rebalancing.listed(obj))
        else:
            given.resources.append(obj)
    return given


async def simulate(
    client: Client,
    scheduler: scheduling.Scheduler,
    given: Given,
    trial: Trial,
    namespace: str,
    names: Sequence[str] = (),
) -> Simulation:
    """`namespace` is that of manifests without one; `names` are resources that would be rebalanced, as TYPE/NAME."""
    found = await _predict(client, scheduler, given, trial, namespace, names)
    spaces = {outcome.namespace for outcome in found.outcomes}
    return found._replace(quotas={space: await scheduler.quotas(client, space) for space in spaces})


async def _predict(
    client: Client, scheduler: scheduling.Scheduler, given: Given, trial: Trial, namespace: str, names: Sequence[str]
) -> Simulation:
    from karmada.api.cluster import Cluster

    policies = [await intended.admitted(policy, namespace) for policy in given.policies]
    await scheduler.follow(client)
    clusters = (await client.list_all(Cluster.gvr)).items
    check(clusters, trial.failing | trial.cordoned)
    failover = await failover_of(client, scheduler.gates, assumed=trial.with_failover)
    clusters = [changed(cluster, trial, failover) for cluster in clusters]
    if not given.resources and not policies:
        workloads = [*given.rebalanced, *await rebalancing.named(client, names, namespace)]
        return await _of_bindings(client, scheduler, clusters, failover, trial, workloads)
    resources = [await _placed(client, obj, namespace) for obj in given.resources]
    if not resources:
        resources = await _selected(client, policies)
    if not resources:
        raise NothingSelected("no resource in the given files, and none that their policies select")
    live = intended.LivePolicies(client)
    found = [await _outcome(client, scheduler, one, policies, live, clusters, failover, trial) for one in resources]
    return Simulation(found, [])


async def _placed(client: Client, obj: Obj, namespace: str) -> Obj:
    """With a namespace, if it lives in one."""
    from karmada.kube.client.discovery import NoMatch
    from karmada.kube.objects.gvk import GVK

    try:
        mapping = await client.mapper.mapping(GVK.parse(obj["apiVersion"], obj["kind"]))
    except NoMatch:
        raise PredictionError(f'no matches for kind "{obj["kind"]}" in version "{obj["apiVersion"]}"') from None
    if not mapping.namespaced or obj["metadata"].get("namespace"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


async def _selected(client: Client, policies: Sequence[Obj]) -> list[Obj]:
    """What is there of the resources that policies select."""
    from karmada.api.matching import selector_priority
    from karmada.kube.client.discovery import NoMatch
    from karmada.kube.objects.gvk import GVK

    found: dict[str, Obj] = {}
    for policy in policies:
        space = policy["metadata"].get("namespace", "")
        for selector in policy["spec"].get("resourceSelectors") or ():
            gvk = GVK.parse(selector["apiVersion"], selector["kind"])
            try:
                mapping = await client.mapper.mapping(gvk)
            except NoMatch:
                continue
            where = (space or selector.get("namespace") or "") if mapping.namespaced else ""
            for obj in (await client.list_all(mapping.gvr, where)).items:
                template = {**obj, "apiVersion": gvk.api_version, "kind": gvk.kind}
                if selector_priority(selector, template):
                    found[obj["metadata"]["uid"]] = template
    return list(found.values())


async def _outcome(
    client: Client,
    scheduler: scheduling.Scheduler,
    resource: Obj,
    policies: Sequence[Obj],
    live: intended.LivePolicies,
    clusters: Sequence[Obj],
    failover: Failover,
    trial: Trial,
) -> Outcome:
    notes: list[str] = []
    policy = await live.policy_for(resource, policies, notes)
    binding = await intended.live_binding(client, resource)
    claim = intended.claimed_by_another(binding, policy) if binding is not None else ""
    notes += [claim] if claim else []
    uid = ((binding or {}).get("spec") or {}).get("resource", {}).get("uid") or resource["metadata"].get("uid", "")
    spec = await intended.binding_spec(scheduler, resource, policy, uid=uid, replicas=trial.replicas)
    spec = await intended.with_replica_policy(client, resource, spec)
    others = await scheduler.others(client, resource["metadata"].get("namespace", ""))
    state, estimates = Fleet(clusters, failover, others), await scheduler.estimates(client, spec)
    return decide(scheduler, resource, intended.title(policy), spec, binding, state, trial, notes, estimates)


async def _of_bindings(
    client: Client,
    scheduler: scheduling.Scheduler,
    clusters: Sequence[Obj],
    failover: Failover,
    trial: Trial,
    workloads: Sequence[Obj],
) -> Simulation:
    """Of the bindings of these workloads, or of all."""
    needs_all = not workloads or scheduler.gates.enabled("WorkloadAffinity")
    everything = await _all_bindings(client) if needs_all else []
    if workloads:
        bindings, notes = await rebalancing.affected(client, workloads)
    elif trial.rebalance:
        bindings, notes = rebalancing.not_suspended(_with_placement(everything))
    else:
        bindings, notes = _with_placement(everything), []
    if not bindings and not notes:
        raise PredictionError("there are no bindings: give resources and policies with -f")
    state = Fleet(clusters, failover, everything if scheduler.gates.enabled("WorkloadAffinity") else ())
    return Simulation([await _of_binding(client, scheduler, binding, state, trial) for binding in bindings], notes)


async def _all_bindings(client: Client) -> list[Obj]:
    from karmada.api.work import ClusterResourceBinding, ResourceBinding

    kinds = (ResourceBinding.gvr, ClusterResourceBinding.gvr)
    return [binding for kind in kinds for binding in (await client.list_all(kind)).items]


def _with_placement(bindings: Iterable[Obj]) -> list[Obj]:
    return [one for one in bindings if one["spec"].get("placement") is not None and one["spec"].get("resource")]


async def _of_binding(
    client: Client, scheduler: scheduling.Scheduler, binding: Obj, state: Fleet, trial: Trial
) -> Outcome:
    spec = binding["spec"]
    if trial.replicas is not None and spec.get("replicas"):
        spec = {**spec, "replicas": trial.replicas}
    resource = {**spec["resource"], "metadata": spec["resource"]}
    estimates = await scheduler.estimates(client, spec)
    return decide(scheduler, resource, "its binding", spec, binding, state, trial, [], estimates)
