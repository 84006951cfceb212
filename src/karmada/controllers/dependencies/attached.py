"""Attached bindings: those of objects that others depend on.

Pure functions. An attached binding lists the schedule result of every dependent binding (spec.requiredBy), and carries
a label for each, by which it is found. Unless a policy places the object itself, its conflict resolution and deletion
policy come from its dependents: Overwrite wins over Abort, and a warning event reports that they differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from karmada.api import well_known
from karmada.api.work import ResourceBinding
from karmada.controllers.dependencies.references import label_of
from karmada.controllers.detector.bindings import OtherOwner, resource_of
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

_OVERWRITE, _ABORT = "Overwrite", "Abort"


class Strategy(NamedTuple):
    """The effective strategy of all dependents of an object, and the fields in which they differ."""

    conflict_resolution: str
    preserve: bool
    disagreements: tuple[str, ...]

    @property
    def fields(self) -> Obj:
        return {"conflictResolution": self.conflict_resolution, "preserveResourcesOnDeletion": self.preserve}

    @property
    def warning(self) -> str:
        return f"Dependency policy conflict detected: {'; '.join(self.disagreements)}."


def strategy(dependents: Iterable[Obj]) -> Strategy:
    overwrites, preserves = set(), set()
    for binding in dependents:
        spec = binding.get("spec") or {}
        overwrites.add(spec.get("conflictResolution") == _OVERWRITE)
        preserves.add(bool(spec.get("preserveResourcesOnDeletion")))
    disagreements = []
    if len(overwrites) > 1:
        disagreements.append("ConflictResolution conflicted (Overwrite vs Abort)")
    if len(preserves) > 1:
        disagreements.append("PreserveResourcesOnDeletion conflicted (true vs false)")
    return Strategy(_OVERWRITE if True in overwrites else _ABORT, True in preserves, tuple(disagreements))


# spec.requiredBy


def snapshot(dependent: Obj) -> Obj:
    found: Obj = {"namespace": meta.namespace(dependent), "name": meta.name(dependent)}
    clusters = (dependent.get("spec") or {}).get("clusters")
    if clusters:
        found["clusters"] = clusters
    return found


def required_by(binding: Obj | None) -> list[Obj]:
    return ((binding or {}).get("spec") or {}).get("requiredBy") or []


def key_of_snapshot(found: Obj) -> Key:
    return Key(found.get("namespace") or "", found["name"])


def with_snapshot(snapshots: Sequence[Obj], new: Obj) -> list[Obj]:
    """With the new snapshot in the place of the dependent's previous one, else at the end."""
    key = key_of_snapshot(new)
    merged = [new if key_of_snapshot(found) == key else found for found in snapshots]
    return merged if new in merged else [*merged, new]


def without_snapshot(snapshots: Sequence[Obj], dependent: Key) -> list[Obj]:
    return [found for found in snapshots if key_of_snapshot(found) != dependent]


# bindings


def is_placed(binding: Obj | None) -> bool:
    """Return whether a policy has placed the object, and so decides the strategy."""
    return ((binding or {}).get("spec") or {}).get("placement") is not None


def attached_key(dependent: Obj, dependency: Obj) -> Key:
    return Key(meta.namespace(dependent), well_known.binding_name(dependency["kind"], meta.name(dependency)))


def attach(current: Obj | None, dependency: Obj, dependent: Obj, snapshots: list[Obj], effective: Obj) -> Obj:
    """Return the attached binding; `effective` are the fields of the strategy, empty when a policy decides them.

    OtherOwner when the binding there is that of an earlier object of the same name.
    """
    key = attached_key(dependent, dependency)
    spec = {"resource": resource_of(dependency), "requiredBy": snapshots, **effective}
    if current is None:
        return {
            "apiVersion": ResourceBinding.gvk.api_version,
            "kind": ResourceBinding.gvk.kind,
            "metadata": {
                "namespace": key.namespace,
                "name": key.name,
                "ownerReferences": [meta.make_owner(dependency)],
                "finalizers": [well_known.BINDING_FINALIZER],
                "labels": label_of(dependent),
            },
            "spec": spec,
        }
    owner = meta.controller_of(current)
    if owner is not None and owner.get("uid") != meta.uid(dependency):
        raise OtherOwner(
            f"failed to update resourceBinding({key}) due to different owner reference UID, will try again later after "
            "binding is garbage collected, see https://github.com/karmada-io/karmada/issues/6034"
        )
    metadata = {**current["metadata"], "labels": {**meta.labels(current), **label_of(dependent)}}
    return {**current, "metadata": metadata, "spec": {**current["spec"], **spec}}


def detach(current: Obj, dependent: Obj, snapshots: list[Obj], effective: Obj | None) -> Obj:
    """Return the binding without the dependent's label and snapshot; `effective` None keeps the strategy."""
    gone = label_of(dependent).keys()
    labels = {label: value for label, value in meta.labels(current).items() if label not in gone}
    spec = {**current["spec"]}
    spec.pop("requiredBy", None)
    if snapshots:
        spec["requiredBy"] = snapshots
    if effective is not None:
        for field in ("conflictResolution", "preserveResourcesOnDeletion"):
            spec.pop(field, None)
        spec.update(effective)
    return {**current, "metadata": {**current["metadata"], "labels": labels}, "spec": spec}
