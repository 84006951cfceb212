"""The content of a binding that comes from its template and policy, and how it is merged into an existing binding.

The functions are pure. The fields of the scheduler, the dependencies distributor and the eviction controllers are kept;
everything that comes from the template or the policy is replaced. A few fields of a ClusterResourceBinding are set only
when it is created, or never.

`BindingWriter` finds bindings by their policy, and writes them when something changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypedDict, cast

import msgspec

from karmada.api import well_known
from karmada.api.older_forms import present_policy
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.controllers.context import Context
from karmada.controllers.detector.claims import CLUSTER_POLICIES, POLICIES, PolicyKind
from karmada.controllers.indexes import BY_POLICY, policy_ids
from karmada.controllers.templates import Ref, ref_of_binding
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import ResourceWriter
from karmada.kube.runtime.keys import Key

_REPLACED: Final = frozenset(
    {
        "resource", "replicas", "replicaRequirements", "components", "schedulerName", "placement", "failover",
        "conflictResolution", "preserveResourcesOnDeletion", "suspension",
    }
)  # fmt: skip
_REPLACED_IN_NAMESPACES: Final = _REPLACED | {"propagateDeps", "schedulePriority", "workloadAffinityGroups"}
_NEVER_CLUSTER_WIDE: Final = ("schedulePriority", "workloadAffinityGroups")
_OTHER_OWNER: Final = (
    "failed to update binding due to different owner reference UID, will try again later after binding is garbage "
    "collected, see https://github.com/karmada-io/karmada/issues/2090"
)


class OtherOwner(ApiError):
    """The existing binding belongs to an earlier template of the same name and must be deleted first."""

    code = 409


def binding_resource(obj: Obj) -> GVR:
    """Return the kind of binding that a template has, or that a binding is: by namespace."""
    return ResourceBinding.gvr if meta.namespace(obj) else ClusterResourceBinding.gvr


def resource_of(template: Obj) -> Obj:
    """spec.resource: the template as it was when the binding was written."""
    metadata = template["metadata"]
    reference = {"apiVersion": template["apiVersion"], "kind": template["kind"]}
    if metadata.get("namespace"):
        reference["namespace"] = metadata["namespace"]
    return {
        **reference,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def policy_fields(policy: Obj) -> Obj:
    """Return the fields that a binding copies from its policy; the suspension is merged later."""
    rules = present_policy(policy["spec"])
    spec: Obj = {
        "schedulerName": rules.get("schedulerName") or well_known.DEFAULT_SCHEDULER,
        "placement": rules.get("placement") or {},
        "conflictResolution": rules.get("conflictResolution") or "Abort",
    }
    if rules.get("propagateDeps"):
        spec["propagateDeps"] = True
    for field in ("failover", "preserveResourcesOnDeletion", "suspension"):
        if rules.get(field) is not None:
            spec[field] = rules[field]
    return spec


def affinity_groups(policy: Obj, template: Obj) -> Obj | None:
    """Return the workload affinity groups of a template: its values of the labels that the placement names."""
    terms = ((policy["spec"].get("placement") or {}).get("workloadAffinity")) or {}
    labels = meta.labels(template)
    groups = {}
    for term, group in (("affinity", "affinityGroup"), ("antiAffinity", "antiAffinityGroup")):
        key = (terms.get(term) or {}).get("groupByLabelKey")
        if key in labels:
            groups[group] = f"{key}={labels[key]}"
    return groups or None


def suspended(policy_part: Obj | None, current: Obj | None) -> Obj | None:
    """Return the suspension: the policy decides on dispatching; that of scheduling is set by others and stays."""
    scheduling = (current or {}).get("scheduling")
    if policy_part is None:
        return None if scheduling is None else {"scheduling": scheduling}
    return {**policy_part} if scheduling is None else {**policy_part, "scheduling": scheduling}


class WantedBinding:
    """The wanted binding of a template under a policy: created, or merged into the existing one."""

    def __init__(self, template: Obj, kind: PolicyKind, policy: Obj, spec: Obj) -> None:
        """`spec`: everything that comes from the template and the policy."""
        namespace, name = meta.key(template)
        self.key = Key(namespace, well_known.binding_name(template["kind"], name))
        self.gvr = binding_resource(template)
        self._kind = kind
        self._policy = policy
        self._spec = spec
        self._owner = meta.make_owner(template)
        self._finalizer = well_known.BINDING_FINALIZER if namespace else well_known.CLUSTER_BINDING_FINALIZER

    def fresh(self) -> Obj:
        labels, annotations = self._kind.marks(self._policy)
        metadata: Obj = {"name": self.key.name}
        if self.key.namespace:
            metadata["namespace"] = self.key.namespace
        metadata |= {
            "ownerReferences": [self._owner],
            "finalizers": [self._finalizer],
            "labels": labels,
            "annotations": annotations,
        }
        cls = ResourceBinding if self.key.namespace else ClusterResourceBinding
        spec = self._spec
        if not self.key.namespace:
            spec = {field: value for field, value in spec.items() if field not in _NEVER_CLUSTER_WIDE}
        return {"apiVersion": cls.gvk.api_version, "kind": cls.gvk.kind, "metadata": metadata, "spec": spec}

    def over(self, current: Obj) -> Obj:
        """Merge into the current binding; OtherOwner when that one is an earlier template's."""
        owner = meta.controller_of(current)
        if owner is not None and owner.get("uid") != self._owner["uid"]:
            raise OtherOwner(_OTHER_OWNER)
        metadata = {**current["metadata"], "ownerReferences": [self._owner], **self._marks(current)}
        if self._finalizer not in meta.finalizers(current):
            metadata["finalizers"] = [*meta.finalizers(current), self._finalizer]
        return {**current, "metadata": metadata, "spec": self._merged(current.get("spec") or {})}

    def _marks(self, current: Obj) -> dict[str, dict[str, str]]:
        own_labels, own_annotations = self._kind.marks(self._policy)
        labels = {**meta.labels(current), **own_labels}
        annotations = {**meta.annotations(current), **own_annotations}
        if self._kind is POLICIES:
            labels.pop(CLUSTER_POLICIES.id_label, None)
            for key in CLUSTER_POLICIES.annotation_keys:
                annotations.pop(key, None)
        return {"labels": labels, "annotations": annotations}

    def _merged(self, current: Obj) -> Obj:
        replaced = _REPLACED_IN_NAMESPACES if self.key.namespace else _REPLACED
        spec: dict[str, Any] = {field: value for field, value in current.items() if field not in replaced}
        spec.update((field, value) for field, value in self._spec.items() if field in replaced)
        suspension = suspended(self._spec.get("suspension"), current.get("suspension"))
        spec.pop("suspension", None)
        if suspension is not None:
            spec["suspension"] = suspension
        return spec


class _Namespaced(TypedDict, total=False):
    namespace: str


class _Referring(TypedDict):
    resource: Any


class _Reference(TypedDict):
    metadata: _Namespaced
    spec: _Referring


_decode = msgspec.json.Decoder(_Reference).decode


def _parse_reference(raw: bytes) -> Obj:
    """Return all of a binding that says which template it is of."""
    return cast("Obj", _decode(raw))


class BindingWriter:
    def __init__(self, context: Context) -> None:
        self._writers = {
            gvr: ResourceWriter(context.client, gvr, context.informers.of(gvr, indexes={BY_POLICY: policy_ids}))
            for gvr in (ResourceBinding.gvr, ClusterResourceBinding.gvr)
        }

    def get(self, gvr: GVR, key: Key) -> Obj | None:
        return self._writers[gvr].get(key)

    def template_of(self, gvr: GVR, key: Key) -> Ref | None:
        """Return the template of a binding, for those who go through many."""
        binding = self._writers[gvr].informer.peek(key, _parse_reference)
        return None if binding is None else ref_of_binding(binding)

    def of_policy(self, kind: PolicyKind, policy: Obj) -> list[tuple[GVR, Key]]:
        """Return the bindings that carry the policy's id: their keys, since there may be many."""
        policy_id, namespace = kind.id_of(policy), meta.namespace(policy)
        gvrs = (ResourceBinding.gvr,) if kind is POLICIES else tuple(self._writers)
        found = [(gvr, key) for gvr in gvrs for key in self._writers[gvr].informer.keys_by_index(BY_POLICY, policy_id)]
        return [(gvr, key) for gvr, key in found if not namespace or key.namespace == namespace]

    async def write(self, wanted: WantedBinding, before: Callable[[], None]) -> str:
        """Make the binding as wanted; `before` is called once if there is something to write."""

        async def make(current: Obj | None) -> Obj:
            return wanted.fresh() if current is None else wanted.over(current)

        written = await self._writers[wanted.gvr].converge(wanted.key, make, before=before)
        return "unchanged" if written is None else written.outcome
