"""The fields of a binding that are interpreted from the template: replicas and their requirements, or components.

Each result is an event on the template: a failure at once, a success when the binding is written, so that an unchanged
template emits none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from karmada.api.interpreter_context import Operation
from karmada.controllers.detector.bindings import affinity_groups, policy_fields, resource_of
from karmada.controllers.detector.policies import NotYet
from karmada.controllers.detector.replica_policies import divided
from karmada.interpreter.operations import (
    INTERPRET_COMPONENT,
    INTERPRET_REPLICA,
    REVISE_REPLICA,
    InterpreterError,
    Replicas,
)
from karmada.kube.objects import meta
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.gvk import GVK, GVR, gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.features import FeatureGates

PRIORITY_CLASSES: Final = GVR("scheduling.k8s.io", "v1", "priorityclasses")
_KUBE_CLASS: Final = "KubePriorityClass"
_UNSUPPORTED_CLASSES: Final = ("PodPriorityClass", "FederatedPriorityClass")


class ReplicaInterpreter(Protocol):
    """The operations that are used here."""

    def enabled(self, gvk: GVK, operation: Operation) -> bool: ...

    async def get_replicas(self, obj: Obj, /) -> Replicas: ...

    async def get_components(self, obj: Obj, /) -> Sequence[Obj]: ...


class Reader(Protocol):
    async def get(self, kind: GVR, name: str, /) -> Obj: ...


class Recorder(Protocol):
    def event(self, obj: Obj, event_type: str, reason: str, message: str, /) -> None: ...


class PendingEvent(NamedTuple):
    reason: str
    message: str


class Interpreted(NamedTuple):
    """A binding's spec as far as the template and the policy decide it, and the event to emit."""

    spec: Obj
    event: PendingEvent | None


class Interpretation:
    def __init__(
        self, client: Reader, gates: FeatureGates, interpreter: ReplicaInterpreter, recorder: Recorder
    ) -> None:
        """`client` reads PriorityClasses."""
        self._client = client
        self._interpreter = interpreter
        self._recorder = recorder
        self._components = gates.enabled("MultiplePodTemplatesScheduling")
        self._quota_estimate = gates.enabled("ResourceQuotaEstimate")
        self._priorities = gates.enabled("PriorityBasedScheduling")
        self._affinity = gates.enabled("WorkloadAffinity")

    async def of(self, template: Obj, policy: Obj, replica_policy: Obj | None = None) -> Interpreted:
        counts, event = await self._counts(template)
        spec = {"resource": resource_of(template), **counts, **policy_fields(policy)}
        if replica_policy is not None and "components" not in counts and self.divides(gvk_of(template)):
            spec = divided(spec, replica_policy)
        priority = policy["spec"].get("schedulePriority")
        if self._priorities and priority:
            spec["schedulePriority"] = {"priority": await self._priority(priority)}
        groups = affinity_groups(policy, template) if self._affinity else None
        if groups is not None:
            spec["workloadAffinityGroups"] = groups
        return Interpreted(spec, event)

    def divides(self, gvk: GVK) -> bool:
        """Return whether clusters can have different numbers of replicas of a kind."""
        return self._interpreter.enabled(gvk, REVISE_REPLICA)

    async def _counts(self, template: Obj) -> Interpreted:
        gvk = gvk_of(template)
        if self._components and self._interpreter.enabled(gvk, INTERPRET_COMPONENT):
            return await self._interpreted(template, "Components", "components", self._parts)
        if self._interpreter.enabled(gvk, INTERPRET_REPLICA):
            return await self._interpreted(template, "Replicas", "replicas", self._replicas)
        return Interpreted({}, None)

    async def _interpreted(self, template: Obj, word: str, noun: str, operation: _Operation) -> Interpreted:
        try:
            counts = await operation(template)
        except InterpreterError as error:
            self._recorder.event(template, WARNING, f"Get{word}Failed", str(error))
            raise NotYet(str(error)) from error
        return Interpreted(counts, PendingEvent(f"Get{word}Succeed", f"Get {noun} of resource template successfully."))

    async def _parts(self, template: Obj) -> Obj:
        components = await self._interpreter.get_components(template)
        return {"components": list(components)} if components else {}

    async def _replicas(self, template: Obj) -> Obj:
        replicas, requirements = await self._interpreter.get_replicas(template)
        counts: Obj = {"replicas": replicas} if replicas else {}
        if requirements is not None:
            if self._quota_estimate and not requirements.get("namespace"):
                requirements = {**requirements, "namespace": meta.namespace(template)}
            counts["replicaRequirements"] = requirements
        return counts

    async def _priority(self, wanted: Obj) -> int:
        source = wanted.get("priorityClassSource")
        if source in _UNSUPPORTED_CLASSES:
            raise BadRequest(f"priority class source is {source}, but {source} is not supported yet")
        if source != _KUBE_CLASS:
            raise BadRequest("unsupported priority class source")
        found = await self._client.get(PRIORITY_CLASSES, wanted["priorityClassName"])
        value: int = found.get("value") or 0
        return value


class _Operation(Protocol):
    async def __call__(self, template: Obj, /) -> Obj: ...
