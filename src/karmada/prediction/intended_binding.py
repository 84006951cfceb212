"""The binding that the control plane would create for a resource, computed locally.

By the same rules: admission of policies, which policy applies, replicas and requirements by the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError

if TYPE_CHECKING:
    from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
    from karmada.prediction.world import World

POLICY_KINDS = ("PropagationPolicy", "ClusterPropagationPolicy")


def name_of(obj: Obj) -> str:
    namespace = obj["metadata"].get("namespace")
    return f"{namespace}/{obj['metadata']['name']}" if namespace else str(obj["metadata"]["name"])


class NoPolicy(PredictionError):
    """No policy selects the resource."""


def title(policy: Obj) -> str:
    return f"{policy['kind']} {name_of(policy)}"


def policy_kind(policy: Obj) -> type[PropagationPolicy | ClusterPropagationPolicy]:
    from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy

    return PropagationPolicy if policy["kind"] == "PropagationPolicy" else ClusterPropagationPolicy


async def admitted(policy: Obj, namespace: str) -> Obj:
    """Return a policy as the control plane would store it; PredictionError when it would not."""
    import msgspec

    from karmada.admission.context import Context, Refusal, Settings
    from karmada.admission.hooks import run_mutating, run_validating
    from karmada.admission.table import MUTATING, VALIDATING
    from karmada.api.policy import PropagationPolicy
    from karmada.kube.objects.copying import copy_json

    kind = policy_kind(policy)
    policy = copy_json(policy)
    if kind is PropagationPolicy:
        policy["metadata"].setdefault("namespace", namespace)
    try:
        kind.of(policy)
        _schema_defaults(policy)
        context = Context(Settings(), namespace=policy["metadata"].get("namespace", ""))
        for hook in (*MUTATING, *VALIDATING):
            if hook.resource == kind.gvr.group_resource and hook.mutate is not None:
                run_mutating(hook, policy, None, context)
            elif hook.resource == kind.gvr.group_resource:
                await run_validating(hook, policy, None, context)
    except (msgspec.ValidationError, Refusal) as error:
        raise PredictionError(f'{policy["kind"]} "{policy["metadata"]["name"]}": {error}') from error
    return policy


def _schema_defaults(policy: Obj) -> None:
    scheduling_part = ((policy.get("spec") or {}).get("placement") or {}).get("replicaScheduling")
    if scheduling_part is not None:
        scheduling_part.setdefault("replicaSchedulingType", "Divided")


async def policy_for(world: World, resource: Obj, given: Sequence[Obj], notes: list[str]) -> Obj:
    """Return the policy that applies: one of the namespace before the others, by priority, precision and name.

    What it has to say about those that were `given` and do not apply is added to the notes.
    """
    from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
    from karmada.controllers.detector.policies import best, selects

    namespace = resource["metadata"].get("namespace", "")
    own = await world.objects(PropagationPolicy.gvr, namespace) if namespace else []
    wide = await world.objects(ClusterPropagationPolicy.gvr)
    ranked = (
        best(({**one, "kind": kind} for one in some), resource)
        for kind, some in zip(POLICY_KINDS, (own, wide), strict=True)
    )
    chosen = next(filter(None, ranked), None)
    if chosen is None:
        called = f"{resource['kind']} {name_of(resource)}"
        raise NoPolicy(
            f"no policy selects {called}: {len(own) + len(wide)} were looked at, those of the files included"
        )
    losers = [one for one in given if title(one) != title(chosen) and selects(one, resource)]
    notes += [f"{title(one)} selects it, too, and has lower priority than {title(chosen)}." for one in losers]
    return chosen


async def live_binding(world: World, resource: Obj) -> Obj | None:
    from karmada.api.well_known import binding_name
    from karmada.api.work import ClusterResourceBinding, ResourceBinding
    from karmada.kube.objects.errors import NotFound

    namespace = resource["metadata"].get("namespace", "")
    kind = ResourceBinding if namespace else ClusterResourceBinding
    try:
        return await world.get(kind.gvr, binding_name(resource["kind"], resource["metadata"]["name"]), namespace)
    except NotFound:
        return None


def claimed_by_another(binding: Obj, policy: Obj) -> str:
    """Return a note if another policy has claimed the resource."""
    from karmada.controllers.detector.claims import BOTH, claim_of

    claim = claim_of(binding)
    if claim is None:
        return ""
    holder = f"{POLICY_KINDS[BOTH.index(claim.kind)]} {claim.policy}"
    return (
        "" if holder == title(policy) else f"{holder} has claimed it: another policy takes it over only by preemption."
    )


async def binding_spec(world: World, resource: Obj, policy: Obj, *, uid: str = "", replicas: int | None = None) -> Obj:
    """Return the spec of the binding that the detector would write, without clusters; PredictionError if it cannot."""
    from karmada.controllers.detector.interpretation import Interpretation
    from karmada.controllers.detector.policies import NotYet

    interpretation = Interpretation(world, world.gates, await world.interpreter(), _NoEvents())
    template = await _with_replicas(world, resource, replicas)
    template = {**template, "metadata": {"resourceVersion": "", **resource["metadata"], "uid": uid}}
    rules = {field: value for field, value in policy["spec"].items() if field != "schedulePriority"}
    try:
        found = await interpretation.of(template, {**policy, "spec": rules}, await _replica_policy(world, resource))
    except NotYet as error:
        raise PredictionError(f"{resource['kind']} {name_of(resource)}: {error}") from error
    return found.spec


class _NoEvents:
    def event(self, *_args: object) -> None:
        """Do nothing: a prediction emits no events."""


async def _with_replicas(world: World, resource: Obj, wanted: int | None) -> Obj:
    """Return the resource with that number of replicas, or with 1 where the server would fill it in."""
    from karmada.interpreter.native.replicas import FIELDS
    from karmada.interpreter.operations import INTERPRET_REPLICA
    from karmada.kube.objects.gvk import gvk_of

    field = FIELDS.get(gvk_of(resource))
    if field is None or not (await world.interpreter()).enabled(gvk_of(resource), INTERPRET_REPLICA):
        return resource
    own = resource.get("spec") or {}
    return {**resource, "spec": {**own, field: own.get(field, 1) if wanted is None else wanted}}


async def _replica_policy(world: World, resource: Obj) -> Obj | None:
    """Return the ReplicaSchedulingPolicy that applies; Karmada's own API servers do not have the kind."""
    from karmada.controllers.detector.replica_policies import KINDS, best
    from karmada.kube.objects.errors import NotFound

    for kind, namespace in zip(KINDS, (resource["metadata"].get("namespace", ""), ""), strict=True):
        try:
            rules = best(await world.objects(kind, namespace), resource)
        except NotFound:
            continue
        if rules is not None:
            return rules
    return None
