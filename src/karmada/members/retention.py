"""Retention: what a member's object keeps when it is applied again, and when nothing has to be sent at all.

The member's own additions stay: finalizers, owners, and labels and annotations that did not come from here. An object
records which of its labels and annotations did (see karmada.admission.work), so one that was removed here is removed
there, too. Everything is a new object that shares its parts with those it was made from.
"""

from __future__ import annotations

from karmada.api import well_known
from karmada.interpreter.pruning import pruned
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj

_KEPT = ("resourceVersion", "finalizers", "ownerReferences")
_MAPS = (("annotations", well_known.MANAGED_ANNOTATIONS), ("labels", well_known.MANAGED_LABELS))


def retained(desired: Obj, observed: Obj) -> Obj:
    """Return the desired object with what the member has added to its metadata."""
    there = observed["metadata"]
    metadata = {**desired["metadata"]}
    for field in _KEPT:
        if there.get(field):
            metadata[field] = there[field]
        else:
            metadata.pop(field, None)
    noted = there.get("annotations") or {}
    for field, note in _MAPS:
        wanted = metadata.get(field) or {}
        others = [key for key in there.get(field) or () if key not in wanted]
        if others:
            found, ours = there[field], (noted.get(note) or "").split(",")
            metadata[field] = {**{key: found[key] for key in others if key not in ours}, **wanted}
    return {**desired, "metadata": metadata}


def in_place(applied: Obj, observed: Obj) -> bool:
    """Return whether the member has exactly what would be applied (already with what is retained)."""
    return retained(pruned(observed), observed) == applied


def is_managed(obj: Obj) -> bool:
    return meta.labels(obj).get(well_known.MANAGED) == well_known.TRUE


def version_of(obj: Obj) -> str:
    """Return what shows a change: the generation where objects have one, else the resourceVersion."""
    metadata = obj["metadata"]
    generation = metadata.get("generation")
    return f"gen:{generation}" if generation else f"rv:{metadata.get('resourceVersion', '')}"


def carries(observed: Obj, desired: Obj) -> bool:
    """Return whether an object has all labels and annotations that are desired."""
    return (
        meta.labels(desired).items() <= meta.labels(observed).items()
        and meta.annotations(desired).items() <= meta.annotations(observed).items()
    )


def released(manifest: Obj) -> Obj:
    """Return a manifest without the marks of this control plane: what a member that keeps the object is left with."""
    metadata = manifest["metadata"]
    labels, annotations = _MARKS_WITH_NAMESPACE if metadata.get("namespace") else _MARKS_WITHOUT
    left = {
        **metadata,
        "labels": {k: v for k, v in meta.labels(manifest).items() if k not in labels},
        "annotations": {k: v for k, v in meta.annotations(manifest).items() if k not in annotations},
    }
    return {**manifest, "metadata": left}


_MARKS_WITH_NAMESPACE = (
    {*well_known.RELEASED_LABELS, *well_known.POLICY_CLAIM_LABELS},
    {*well_known.RELEASED_ANNOTATIONS, *well_known.POLICY_CLAIM_ANNOTATIONS},
)
_MARKS_WITHOUT = (
    {*well_known.RELEASED_LABELS, *well_known.CLUSTER_POLICY_CLAIM_LABELS},
    {*well_known.RELEASED_ANNOTATIONS, *well_known.CLUSTER_POLICY_CLAIM_ANNOTATIONS},
)
