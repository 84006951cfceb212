"""PersistentVolumeClaims, and the templates of those that live as long as their pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import Sheet
from karmada.cli.output.describing.words import access_modes, at, conditions, labels, meta, names, notes, phase

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_CLASS = "volume.beta.kubernetes.io/storage-class"


async def claim(sheet: Sheet, obj: Obj, around: Around) -> None:
    pods = await around.listed("pods.v1", meta(obj, "namespace"))
    names(sheet, obj)
    sheet.field("StorageClass", storage_class(obj))
    phase(sheet, obj, around.now)
    sheet.field("Volume", at(obj, "spec.volumeName"))
    _wishes(sheet, obj, 0)
    sheet.column("Used By", sorted(_users(obj, pods)))
    conditions(sheet, at(obj, "status.conditions", []), "LastProbeTime", "LastTransitionTime", end=" ")


def storage_class(obj: Obj) -> str:
    """Return the storage class; the old annotation has precedence."""
    return str(meta(obj, "annotations", {}).get(_CLASS) or at(obj, "spec.storageClassName"))


def claim_template(sheet: Sheet, obj: Obj, level: int) -> None:
    sheet.field("StorageClass", storage_class(obj), level)
    sheet.field("Volume", at(obj, "spec.volumeName"), level)
    _wishes(sheet, obj, level)


def _wishes(sheet: Sheet, obj: Obj, level: int) -> None:
    from karmada.kube.objects.quantity import canonical

    inner = "  " * level
    labels(sheet, "Labels", meta(obj, "labels", {}), level, inner)
    notes(sheet, "Annotations", meta(obj, "annotations", {}), level, inner)
    if not level:
        sheet.field("Finalizers", meta(obj, "finalizers", []))
    bound = bool(at(obj, "spec.volumeName"))
    sheet.field("Capacity", canonical(at(obj, "status.capacity.storage", "0")) if bound else "", level)
    sheet.field("Access Modes", access_modes(at(obj, "status.accessModes", [])) if bound else "", level)
    sheet.optional("VolumeMode", at(obj, "spec.volumeMode"), level)
    source = at(obj, "spec.dataSource", {})
    if source:
        sheet.row(level, "DataSource:")
        sheet.optional("APIGroup", source.get("apiGroup"), level + 1)
        sheet.field("Kind", source.get("kind") or "", level + 1)
        sheet.field("Name", source.get("name") or "", level + 1)


def _users(obj: Obj, pods: list[Obj]) -> list[str]:
    name, users = meta(obj, "name"), []
    for pod in pods:
        for volume in at(pod, "spec.volumes", []):
            own = f"{meta(pod, 'name')}-{volume['name']}" if volume.get("ephemeral") else ""
            if name in (at(volume, "persistentVolumeClaim.claimName", None), own or None):
                users.append(meta(pod, "name"))
                break
    return users
