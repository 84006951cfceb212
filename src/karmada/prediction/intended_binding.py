"""The binding that the control plane would create for a resource, computed locally.

By the same rules: admission of policies, which policy applies, replicas and requirements by the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.prediction.scheduling import Scheduler

POLICY_KINDS = ("PropagationPolicy", "ClusterPropagationPolicy")


def name_of(obj: Obj) -> str:
    namespace = obj["metadata"].get("namespace")
    return f"{namespace}/{obj['metadata']['name']}" if namespace else str(obj["metadata"]["name"])


class NoPolicy(PredictionError):
    """No policy selects the resource."""


def title(policy: Obj) -> str:
    return f"{policy['kind']} {name_of(policy)}"


async def admitted(policy: Obj, namespace: str) -> Obj:
    """A policy as the control plane would store it; PredictionError when it would not."""
    import msgspec

    from karmada.admission.context import Context, Refusal, Settings
    from karmada.admission.handling import run_mutating, run_validating
    from karmada.admission.table import MUTATING, VALIDATING
    from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
    from karmada.kube.objects.copying import copy_json

    kind = PropagationPolicy if policy["kind"] == "PropagationPolicy" else ClusterPropagationPolicy
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


class LivePolicies:
    """The policies of the control plane, read once each for all resources of a prediction."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._own: dict[str, list[Obj]] = {"": []}
        self._wide: list[Obj] | None = None

    async def policy_for(self, resource: Obj, given: Sequence[Obj], notes: list[str]) -> Obj:
        """The policy that applies: of those of the control plane and the given ones."""
        from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy

        namespace = resource["metadata"].get("namespace", "")
        if namespace not in self._own:
            self._own[namespace] = (await self._client.list_all(PropagationPolicy.gvr, namespace)).items
        if self._wide is None:
            self._wide = (await self._client.list_all(ClusterPropagationPolicy.gvr)).items
        return best_policy(self._own[namespace], self._wide, resource, given, notes)


def best_policy(own: Sequence[Obj], wide: Sequence[Obj], resource: Obj, given: Sequence[Obj], notes: list[str]) -> Obj:
    """That of the namespace before the others, by priority, precision and name; given ones replace their namesakes."""
    from karmada.controllers.detector.policies import best, selects

    namespace = resource["metadata"].get("namespace", "")
    chosen: Obj | None = None
    for kind, live in zip(POLICY_KINDS, (own, wide), strict=True):
        files = [
            one for one in given if one["kind"] == kind and one["metadata"].get("namespace", "") in ("", namespace)
        ]
        if kind == "PropagationPolicy" and not namespace:
            files = []
        names = {one["metadata"]["name"] for one in files}
        candidates = [*files, *({**one, "kind": kind} for one in live if one["metadata"]["name"] not in names)]
        chosen = chosen or best(candidates, resource)
    if chosen is None:
        looked_at = len(own) + len(wide) + len(given)
        called = f"{resource['kind']} {name_of(resource)}"
        raise NoPolicy(f"no policy selects {called}: {looked_at} were looked at, those of the files included")
    losers = [one for one in given if one is not chosen and selects(one, resource)]
    notes += [f"{title(one)} selects it, too, and has lower priority than {title(chosen)}." for one in losers]
    return chosen


async def live_binding(client: Client, resource: Obj) -> Obj | None:
    from karmada.api.well_known import binding_name
    from karmada.api.work import ClusterResourceBinding, ResourceBinding
    from karmada.kube.objects.errors import NotFound

    namespace = resource["metadata"].get("namespace", "")
    kind = ResourceBinding if namespace else ClusterResourceBinding
    try:
        return await client.get(kind.gvr, binding_name(resource["kind"], resource["metadata"]["name"]), namespace)
    except NotFound:
        return None


def claimed_by_another(binding: Obj, policy: Obj) -> str:
    """A note if another policy has claimed the resource."""
    from karmada.controllers.detector.claims import BOTH, claim_of

    claim = claim_of(binding)
    if claim is None:
        return ""
    holder = f"{POLICY_KINDS[BOTH.index(claim.kind)]} {claim.policy}"
    return (
        "" if holder == title(policy) else f"{holder} has claimed it: another policy takes it over only by preemption."
    )


async def binding_spec(
    scheduler: Scheduler, resource: Obj, policy: Obj, *, uid: str = "", replicas: int | None = None
) -> Obj:
    """The spec of the binding, without clusters."""
    from karmada.controllers.detector.bindings import policy_fields

    metadata = resource["metadata"]
    reference = {"apiVersion": resource["apiVersion"], "kind": resource["kind"], "name": metadata["name"], "uid": uid}
    if metadata.get("namespace"):
        reference["namespace"] = metadata["namespace"]
    spec = {"resource": reference, **await counts(scheduler, resource, replicas), **policy_fields(policy)}
    return spec | groups(scheduler, policy, resource)


async def with_replica_policy(client: Client, resource: Obj, spec: Obj) -> Obj:
    """The spec of the binding as a ReplicaSchedulingPolicy of the control plane changes it."""
    from karmada.controllers.detector.replica_policies import KINDS, best, divided
    from karmada.kube.objects.errors import NotFound

    if not spec.keys() & {"replicas", "replicaRequirements"}:
        return spec
    for kind, namespace in zip(KINDS, (resource["metadata"].get("namespace", ""), ""), strict=True):
        try:
            rules = best((await client.list_all(kind, namespace)).items, resource)
        except NotFound:
            continue  # Karmada's own API servers do not have the kind
        if rules is not None:
            return divided(spec, rules)
    return spec


async def counts(scheduler: Scheduler, resource: Obj, wanted: int | None) -> Obj:
    """Replicas and what each needs. A number that the server would fill in is 1."""
    from karmada.interpreter.native.replicas import FIELDS
    from karmada.interpreter.operations import INTERPRET_REPLICA, InterpreterError
    from karmada.kube.objects.gvk import gvk_of

    interpreter = scheduler.interpreter
    if not interpreter.enabled(gvk_of(resource), INTERPRET_REPLICA):
        return {}
    field_name = FIELDS.get(gvk_of(resource))
    if field_name is not None:
        own = resource.get("spec") or {}
        number = own.get(field_name, 1) if wanted is None else wanted
        resource = {**resource, "spec": {**own, field_name: number}}
    try:
        replicas, requirements = await interpreter.get_replicas(resource)
    except InterpreterError as error:
        raise PredictionError(f"{resource['kind']} {name_of(resource)}: {error}") from error
    found: Obj = {"replicas": replicas} if replicas else {}
    return found if requirements is None else {**found, "replicaRequirements": requirements}


def groups(scheduler: Scheduler, policy: Obj, resource: Obj) -> Obj:
    from karmada.controllers.detector.bindings import affinity_groups

    if not scheduler.gates.enabled("WorkloadAffinity"):
        return {}
    found = affinity_groups(policy, resource)
    return {} if found is None else {"workloadAffinityGroups": found}
