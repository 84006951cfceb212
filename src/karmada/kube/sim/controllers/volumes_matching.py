"""Which volume fits a claim: the smallest one that satisfies every requirement of the claim.

A volume that its maker reserved for the claim comes first, whatever others there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.meta import labels as labels_of
from karmada.kube.objects.node_selection import NodeSelection
from karmada.kube.objects.selectors import EVERYTHING, labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.storage import class_of
from karmada.kube.sim.controllers.volumes_model import (
    AVAILABLE,
    claim_ref,
    is_for,
    phase_of,
    requested_size,
    spec_of,
    volume_class,
    volume_mode,
    volume_size,
)


def best_match(
    claim: Obj, volumes: Iterable[Obj], *, node: Obj | None = None, reserved_only: bool = False
) -> Obj | None:
    """`node`: where it must be reachable; `reserved_only`: it is too early to choose among the free ones."""
    fitting = [volume for volume in volumes if mismatch(volume, claim) is None and not is_deleting(volume)]
    reserved = [volume for volume in fitting if is_for(volume, claim)]
    if reserved:
        return _smallest(reserved)
    if reserved_only:
        return None
    return _smallest(volume for volume in fitting if _is_free(volume, claim) and reaches(volume, node))


def _smallest(volumes: Iterable[Obj]) -> Obj | None:
    return min(volumes, key=lambda volume: (volume_size(volume), volume["metadata"]["name"]), default=None)


def _is_free(volume: Obj, claim: Obj) -> bool:
    if claim_ref(volume) is not None or phase_of(volume) != AVAILABLE:
        return False
    selector = spec_of(claim).get("selector")
    return (labels_from(selector) if selector else EVERYTHING).matches(labels_of(volume))


def mismatch(volume: Obj, claim: Obj) -> str | None:
    """Why a volume cannot be a claim's; None when it can."""
    if volume_size(volume) < requested_size(claim):
        return "requested PV is too small"
    if volume_class(volume) != (class_of(claim) or ""):
        return "storageClassName does not match"
    if volume_mode(volume) != volume_mode(claim):
        return "incompatible volumeMode"
    if not set(spec_of(claim).get("accessModes") or ()) <= set(spec_of(volume).get("accessModes") or ()):
        return "incompatible accessMode"
    return None


def reaches(volume: Obj, node: Obj | None) -> bool:
    required = (spec_of(volume).get("nodeAffinity") or {}).get("required")
    if required is None or node is None:
        return True
    return NodeSelection(None, required).matches(labels_of(node), node["metadata"]["name"])
