"""Claims: the labels and annotations that name the policy of a template and its binding.

A policy of either kind has a permanent id. A claimed template carries it as a label, and the policy's name in
annotations. Everything in which the two kinds of policies differ is in the two `PolicyKind`s here; the rest of the
package treats them alike. Patches carry a resourceVersion, so that of two concurrent claims one fails with a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from karmada.api import well_known
from karmada.api.policy import (
    ClusterOverridePolicy,
    ClusterPropagationPolicy,
    OverridePolicy,
    PropagationPolicy,
)
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of


@dataclass(frozen=True, slots=True)
class PolicyKind:
    gvr: GVR
    overrides: GVR
    """The override policies that a policy of this kind may wait for."""
    id_label: str
    namespace_annotation: str
    """"" for policies that live in no namespace."""
    name_annotation: str
    finalizer: str
    noun: str
    """Name of the kind in events."""
    full_noun: str
    """Name of the kind in events about preemption."""
    annotation_keys: tuple[str, ...]
    """The two annotations, or the one."""

    def id_of(self, policy: Obj) -> str:
        return meta.labels(policy).get(self.id_label, "")

    def marks(self, policy: Obj) -> tuple[dict[str, str], dict[str, str]]:
        """Return the label and the annotations of what a policy claims."""
        namespace, name = meta.key(policy)
        names = {self.name_annotation: name}
        if self.namespace_annotation:
            names[self.namespace_annotation] = namespace
        return {self.id_label: self.id_of(policy)}, names

    def title(self, policy: Obj) -> str:
        return f"{self.noun}({key_of(policy)})"

    def full_title(self, key: Key) -> str:
        return f"{self.full_noun}({key})"

    def claim_on(self, obj: Obj) -> Key | None:
        """Return the policy of this kind that the annotations name."""
        annotations = meta.annotations(obj)
        name = annotations.get(self.name_annotation)
        if not name:
            return None
        if not self.namespace_annotation:
            return Key("", name)
        namespace = annotations.get(self.namespace_annotation)
        return Key(namespace, name) if namespace else None

    def holds(self, obj: Obj) -> Key | None:
        """Return the policy that claims the object: the annotations count only together with the label."""
        return self.claim_on(obj) if meta.labels(obj).get(self.id_label) else None


POLICIES: Final = PolicyKind(
    PropagationPolicy.gvr,
    OverridePolicy.gvr,
    well_known.POLICY_ID,
    well_known.POLICY_NAMESPACE,
    well_known.POLICY_NAME,
    well_known.POLICY_FINALIZER,
    "policy",
    "propagation policy",
    well_known.POLICY_CLAIM_ANNOTATIONS,
)
CLUSTER_POLICIES: Final = PolicyKind(
    ClusterPropagationPolicy.gvr,
    ClusterOverridePolicy.gvr,
    well_known.CLUSTER_POLICY_ID,
    "",
    well_known.CLUSTER_POLICY_NAME,
    well_known.CLUSTER_POLICY_FINALIZER,
    "cluster policy",
    "cluster propagation policy",
    well_known.CLUSTER_POLICY_CLAIM_ANNOTATIONS,
)
BOTH: Final = (POLICIES, CLUSTER_POLICIES)
"""In order of precedence."""


class Claim(NamedTuple):
    kind: PolicyKind
    policy: Key


def claim_of(template: Obj) -> Claim | None:
    """Return the policy that claims a template."""
    for kind in BOTH:
        key = kind.holds(template)
        if key is not None:
            return Claim(kind, key)
    return None


def claiming_changes(template: Obj, kind: PolicyKind, policy: Obj) -> Obj | None:
    """Return the merge patch, for any version, that claims a template for a policy; None when it is claimed already.

    A namespaced policy replaces the claim of a cluster-wide one, never the reverse.
    """
    labels, annotations = meta.labels(template), meta.annotations(template)
    own_labels, own_annotations = kind.marks(policy)
    others: dict[str, None] = {}
    other_marks: dict[str, None] = {}
    if kind is POLICIES:
        others = {key: None for key in (CLUSTER_POLICIES.id_label,) if key in labels}
        other_marks = {key: None for key in CLUSTER_POLICIES.annotation_keys if key in annotations}
    if not others and not other_marks and labels.get(kind.id_label) == own_labels[kind.id_label]:
        return None
    return {"metadata": {"labels": {**own_labels, **others}, "annotations": {**own_annotations, **other_marks}}}


def claiming_patch(template: Obj, kind: PolicyKind, policy: Obj) -> Obj | None:
    """Return the patch that claims the version that the template has; a conflict when it has another."""
    changes = claiming_changes(template, kind, policy)
    return None if changes is None else _patch(template, **changes["metadata"])


def releasing_patch(obj: Obj, kind: PolicyKind) -> Obj:
    """Return the merge patch that removes the claim of a policy of this kind from a template or binding."""
    return _patch(obj, {kind.id_label: None}, dict.fromkeys(kind.annotation_keys))


def released(obj: Obj, kind: PolicyKind) -> Obj:
    """Return a template or binding without that claim."""
    labels = {key: value for key, value in meta.labels(obj).items() if key != kind.id_label}
    annotations = {key: value for key, value in meta.annotations(obj).items() if key not in kind.annotation_keys}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels, "annotations": annotations}}


def _patch(obj: Obj, labels: Mapping[str, str | None], annotations: Mapping[str, str | None]) -> Obj:
    version = obj["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version, "labels": labels, "annotations": annotations}}
