"""Where resources would be scheduled: with policies that do not exist yet, or with clusters that fail or are cordoned.

The binding is computed here by the same rules as in the control plane: which policy applies, its defaults, the replicas
and their requirements, and then the scheduler's algorithm. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.prediction import intended_binding as intended
from karmada.prediction import rebalancing
from karmada.prediction.errors import PredictionError
from karmada.prediction.failing import Failover
from karmada.prediction.trials import Outcome, Trial, begin, decide
from karmada.prediction.world import World

_POLICY_GROUP = "policy.karmada.io/"


class Simulation(NamedTuple):
    outcomes: list[Outcome]
    notes: list[str]
    """On what is not among the outcomes."""


class NothingSelected(PredictionError):
    """The policies select nothing that exists."""


class Given(NamedTuple):
    """Manifests by what they are for a simulation."""

    resources: list[Obj]
    policies: list[Obj]
    rebalanced: list[Obj]
    """The workloads of WorkloadRebalancers."""


def sorted_out(objects: Iterable[Obj]) -> Given:
    """Return manifests by what they are; PredictionError for one without a name."""
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


async def simulate(world: World, given: Given, trial: Trial, namespace: str, names: Sequence[str] = ()) -> Simulation:
    """Return what would be decided; `namespace` is for manifests without one, `names` (TYPE/NAME) are rebalanced."""
    policies = [await intended.admitted(policy, namespace) for policy in given.policies]
    for policy in policies:
        world.put(intended.policy_kind(policy).gvr, policy)
    failover = await begin(world, trial)
    if not given.resources and not policies:
        workloads = [*given.rebalanced, *await rebalancing.named(world, names, namespace)]
        return await _of_bindings(world, failover, trial, workloads)
    for one in filter(_is_definition, given.resources):
        world.define(one)
    resources = [await _placed(world, obj, namespace) for obj in given.resources]
    if not resources:
        resources = await _selected(world, policies)
    if not resources:
        raise NothingSelected("no resource in the given files, and none that their policies select")
    simulation = Simulation([], [])
    for resource in sorted(resources, key=lambda one: not _is_definition(one)):
        try:
            outcome = await _outcome(world, resource, policies, failover, trial)
        except intended.NoPolicy as error:
            if len(resources) == 1 or resource["kind"] not in _NEED_NO_POLICY:
                raise
            simulation.notes.append(_NEED_NO_POLICY[resource["kind"]].format(error, intended.name_of(resource)))
            continue
        simulation.outcomes.append(outcome)
        for target in outcome.after if _is_definition(resource) else ():
            await world.enable(target["name"], resource)
    return simulation


_NEED_NO_POLICY: Final = {
    "Namespace": "every cluster gets the namespace {1} by itself.",
    "CustomResourceDefinition": "{0}: clusters serve its kind only if they have it already.",
}
"""Notes on manifests that others need and no policy selects, by kind."""


def _is_definition(obj: Obj) -> bool:
    return bool(obj["kind"] == "CustomResourceDefinition")


async def _placed(world: World, obj: Obj, namespace: str) -> Obj:
    """Return a manifest with a namespace, if its kind lives in one."""
    from karmada.kube.client.discovery import NoMatch
    from karmada.kube.objects.gvk import GVK

    try:
        mapping = await world.mapping(GVK.parse(obj["apiVersion"], obj["kind"]))
    except NoMatch:
        raise PredictionError(f'no matches for kind "{obj["kind"]}" in version "{obj["apiVersion"]}"') from None
    if not mapping.namespaced or obj["metadata"].get("namespace"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


async def _selected(world: World, policies: Sequence[Obj]) -> list[Obj]:
    """Return the existing resources that the policies select."""
    from karmada.api.matching import ResourceSelector
    from karmada.kube.client.discovery import NoMatch
    from karmada.kube.objects.gvk import GVK

    found: dict[str, Obj] = {}
    for policy in policies:
        space = policy["metadata"].get("namespace", "")
        for selector in policy["spec"].get("resourceSelectors") or ():
            compiled = ResourceSelector(selector)
            gvk = GVK.parse(selector["apiVersion"], selector["kind"])
            try:
                mapping = await world.mapping(gvk)
            except NoMatch:
                continue
            where = (space or selector.get("namespace") or "") if mapping.namespaced else ""
            for obj in await world.objects(mapping.gvr, where):
                template = {**obj, "apiVersion": gvk.api_version, "kind": gvk.kind}
                if compiled.priority(template):
                    found[obj["metadata"]["uid"]] = template
    return list(found.values())


async def _outcome(world: World, resource: Obj, policies: Sequence[Obj], failover: Failover, trial: Trial) -> Outcome:
    notes: list[str] = []
    policy = await intended.policy_for(world, resource, policies, notes)
    binding = await intended.live_binding(world, resource)
    claim = intended.claimed_by_another(binding, policy) if binding is not None else ""
    notes += [claim] if claim else []
    uid = ((binding or {}).get("spec") or {}).get("resource", {}).get("uid") or resource["metadata"].get("uid", "")
    spec = await intended.binding_spec(world, resource, policy, uid=uid, replicas=trial.replicas)
    return await decide(world, trial, failover, resource, intended.title(policy), spec, binding, notes)


async def _of_bindings(world: World, failover: Failover, trial: Trial, workloads: Sequence[Obj]) -> Simulation:
    """Simulate the bindings of these workloads, or all."""
    if workloads:
        bindings, notes = await rebalancing.affected(world, workloads)
    else:
        bindings, notes = _with_placement(await _all_bindings(world)), []
        if trial.rebalance:
            bindings, notes = rebalancing.not_suspended(bindings)
    if not bindings and not notes:
        raise PredictionError("there are no bindings: give resources and policies with -f")
    return Simulation([await _of_binding(world, binding, failover, trial) for binding in bindings], notes)


async def _all_bindings(world: World) -> list[Obj]:
    from karmada.api.work import ClusterResourceBinding, ResourceBinding

    return [binding for kind in (ResourceBinding, ClusterResourceBinding) for binding in await world.objects(kind.gvr)]


def _with_placement(bindings: Iterable[Obj]) -> list[Obj]:
    return [one for one in bindings if one["spec"].get("placement") is not None and one["spec"].get("resource")]


async def _of_binding(world: World, binding: Obj, failover: Failover, trial: Trial) -> Outcome:
    spec = binding["spec"]
    if trial.replicas is not None and spec.get("replicas"):
        spec = {**spec, "replicas": trial.replicas}
    resource = {**spec["resource"], "metadata": spec["resource"]}
    return await decide(world, trial, failover, resource, "its binding", spec, binding)
