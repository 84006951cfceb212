"""PersistentVolumeClaims, and the templates of those that live as long as their pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import Sheet
from karmada.cli.output.describing.words import access_modes, at, labels, meta, moment, notes, since

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_CLASS = "volume.beta.kubernetes.io/storage-class"


async def claim(sheet: Sheet, obj: Obj, around: Around) -> None:
    pods = await around.listed("pods.v1", meta(obj, "namespace"))
    sheet.field("Name", meta(obj, "name"))
    sheet.field("Namespace", meta(obj, "namespace"))
    sheet.field("StorageClass", storage_class(obj))
    if meta(obj, "deletionTimestamp"):
        sheet.field("Status", f"Terminating (lasts {since(meta(obj, 'deletionTimestamp'), around.now)})")
    else:
        sheet.field("Status", at(obj, "status.phase"))
    sheet.field("Volume", at(obj, "spec.volumeName"))
    _wishes(sheet, obj, 0)
    sheet.column("Used By", sorted(_users(obj, pods)))
    _conditions(sheet, obj)
    await around.write_events(sheet, obj)


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


def _conditions(sheet: Sheet, obj: Obj) -> None:
    conditions = at(obj, "status.conditions", [])
    if not conditions:
        return
    sheet.row(0, "Conditions:")
    titles = ("Type", "Status", "LastProbeTime", "LastTransitionTime", "Reason", "Message")
    sheet.row(1, *titles)
    sheet.row(1, *("-" * len(title) for title in titles))
    for found in conditions:
        times = [moment(found.get(key) or "0001-01-01T00:00:00Z") for key in ("lastProbeTime", "lastTransitionTime")]
        cells = (found["type"], found["status"], *times, found.get("reason") or "")
        sheet.row(1, *(f"{cell} " for cell in cells), found.get("message") or "")
