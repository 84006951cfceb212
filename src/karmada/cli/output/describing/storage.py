"""PersistentVolumes, StorageClasses and other cluster-scoped kinds of storage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import NONE, UNSET, Sheet
from karmada.cli.output.describing.volumes import volume_source
from karmada.cli.output.describing.words import (
    access_modes,
    at,
    marks,
    meta,
    moment,
    pairs_text,
    phase,
    title_case,
)

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


async def volume(sheet: Sheet, obj: Obj, around: Around) -> None:
    from karmada.kube.objects.quantity import canonical

    spec = obj["spec"]
    sheet.field("Name", meta(obj, "name"))
    marks(sheet, obj)
    sheet.field("Finalizers", meta(obj, "finalizers", []))
    sheet.field("StorageClass", meta(obj, "annotations", {}).get(_CLASS) or spec.get("storageClassName") or "")
    phase(sheet, obj, around.now)
    claim = spec.get("claimRef")
    sheet.field("Claim", f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "")
    sheet.field("Reclaim Policy", spec.get("persistentVolumeReclaimPolicy") or "")
    sheet.field("Access Modes", access_modes(spec.get("accessModes")))
    sheet.optional("VolumeMode", spec.get("volumeMode"))
    sheet.field("Capacity", canonical(at(spec, "capacity.storage", "0")))
    _affinity(sheet, at(spec, "nodeAffinity.required.nodeSelectorTerms", None))
    sheet.field("Message", at(obj, "status.message"))
    sheet.row(0, "Source:")
    volume_source(sheet, spec, persistent=True)


def _affinity(sheet: Sheet, terms: list[Obj] | None) -> None:
    if terms is None:
        sheet.field("Node Affinity", NONE)
        return
    sheet.field("Node Affinity", "")
    if not terms:
        sheet.field("Required Terms", NONE, 1)
        return
    sheet.field("Required Terms", "", 1)
    for number, term in enumerate(terms):
        sheet.column(f"Term {number}", [_requirement(one) for one in term.get("matchExpressions") or ()], 2)


def _requirement(expression: Obj) -> str:
    values = f" [{', '.join(expression['values'])}]" if expression.get("values") else ""
    return f"{expression['key']} {expression['operator'].lower()}{values}"


async def storage_class(sheet: Sheet, obj: Obj, _around: Around) -> None:
    sheet.field("Name", meta(obj, "name"))
    said = meta(obj, "annotations", {})
    is_default = any(said.get(key) == "true" for key in _DEFAULT_CLASS)
    sheet.field("IsDefaultClass", "Yes" if is_default else "No")
    sheet.field("Annotations", pairs_text(said))
    sheet.field("Provisioner", obj.get("provisioner") or "")
    sheet.field("Parameters", pairs_text(obj.get("parameters")))
    expansion = obj.get("allowVolumeExpansion")
    sheet.field("AllowVolumeExpansion", UNSET if expansion is None else title_case(expansion))
    if obj.get("mountOptions"):
        sheet.row(0, "MountOptions:")
        for option in obj["mountOptions"]:
            sheet.row(1, option)
    else:
        sheet.field("MountOptions", NONE)
    sheet.known("ReclaimPolicy", obj.get("reclaimPolicy"))
    sheet.known("VolumeBindingMode", obj.get("volumeBindingMode"))
    if obj.get("allowedTopologies"):
        _topologies(sheet, obj["allowedTopologies"])


def _topologies(sheet: Sheet, terms: Iterable[Obj]) -> None:
    sheet.field("AllowedTopologies", "")
    for number, term in enumerate(terms):
        values = [f"{one['key']} in [{', '.join(one['values'])}]" for one in term.get("matchLabelExpressions") or ()]
        sheet.column(f"Term {number}", values, 1)


async def attributes_class(sheet: Sheet, obj: Obj, _around: Around) -> None:
    sheet.field("Name", meta(obj, "name"))
    sheet.field("Annotations", pairs_text(meta(obj, "annotations", {})))
    sheet.field("DriverName", obj.get("driverName") or "")
    sheet.field("Parameters", pairs_text(obj.get("parameters")))


async def csi_node(sheet: Sheet, obj: Obj, _around: Around) -> None:
    sheet.field("Name", meta(obj, "name"))
    marks(sheet, obj)
    sheet.field("CreationTimestamp", moment(meta(obj, "creationTimestamp")))
    sheet.row(0, "Spec:")
    drivers = at(obj, "spec.drivers", [])
    if drivers:
        sheet.row(1, "Drivers:")
    for driver in drivers:
        sheet.row(2, f"{driver['name']}:")
        sheet.field("Node ID", driver.get("nodeID") or "", 3)
        if at(driver, "allocatable.count", None) is not None:
            sheet.row(3, "Allocatables:")
            sheet.field("Count", driver["allocatable"]["count"], 4)
        if driver.get("topologyKeys"):  # stored by Kubernetes, an empty list is none
            sheet.field("Topology Keys", driver["topologyKeys"], 3)
