"""Nodes: conditions, capacity, and the requests of their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from karmada.cli.output.describing.around import events
from karmada.cli.output.describing.sheet import UNSET, Sheet
from karmada.cli.output.describing.words import (
    amounts,
    at,
    conditions,
    joined,
    marks,
    meta,
    moment,
    since,
)
from karmada.cli.output.taints import taint_text

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.quantity import Quantity
    from karmada.kube.objects.types import Obj

_ROLE = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_SYSTEM = {
    "Machine ID": "machineID",
    "System UUID": "systemUUID",
    "Boot ID": "bootID",
    "Kernel Version": "kernelVersion",
    "OS Image": "osImage",
    "Operating System": "operatingSystem",
    "Architecture": "architecture",
    "Container Runtime Version": "containerRuntimeVersion",
    "Kubelet Version": "kubeletVersion",
    "Kube-Proxy Version": "kubeProxyVersion",
}
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


async def node(sheet: Sheet, obj: Obj, around: Around) -> None:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    sheet.field("Name", meta(obj, "name"))
    sheet.field("Roles", joined(_roles(obj), ","))
    marks(sheet, obj)
    sheet.field("CreationTimestamp", moment(meta(obj, "creationTimestamp")))
    sheet.column("Taints", [taint_text(taint) for taint in sorted(spec.get("taints") or (), key=_taint_order)])
    sheet.field("Unschedulable", bool(spec.get("unschedulable")))
    await _lease(sheet, meta(obj, "name"), around)
    conditions(sheet, status.get("conditions") or [], "LastHeartbeatTime", "LastTransitionTime", end=" ")
    sheet.row(0, "Addresses:")
    for address in status.get("addresses") or ():
        sheet.field(address["type"], address["address"], 1)
    amounts(sheet, "Capacity", status.get("capacity"), 0)
    amounts(sheet, "Allocatable", status.get("allocatable"), 0)
    sheet.row(0, "System Info:")
    for title, key in _SYSTEM.items():
        sheet.field(title, at(status, f"nodeInfo.{key}"), 1)
    sheet.optional("PodCIDR", spec.get("podCIDR"))
    sheet.optional("PodCIDRs", ",".join(spec.get("podCIDRs") or ()))
    sheet.optional("ProviderID", spec.get("providerID"))
    fields = f"spec.nodeName={meta(obj, 'name')},status.phase!=Succeeded,status.phase!=Failed"
    pods = await around.if_allowed("pods.v1", fields=fields)
    if pods is None:
        sheet.field("Pods", "not authorized")
    else:
        _pods(sheet, obj, pods, around.now)
    await _events(sheet, obj, around)


async def _events(sheet: Sheet, obj: Obj, around: Around) -> None:
    """Return the events of a node: controllers refer to it by uid, kubelets by name."""
    by_uid = await around.events_of(obj)
    by_name = await around.events_of(obj, uid=meta(obj, "name"))
    events(sheet, None if by_uid is None else [*by_uid, *(by_name or ())], around.now)


def _roles(obj: Obj) -> list[str]:
    found = meta(obj, "labels", {})
    roles = {key.removeprefix(_ROLE) for key in found if key.startswith(_ROLE)}
    return sorted(role for role in roles | {found.get(_ROLE_LABEL, "")} if role)


def _taint_order(taint: Obj) -> tuple[str, str]:
    return taint.get("effect") or "", taint.get("key") or ""


async def _lease(sheet: Sheet, name: str, around: Around) -> None:
    from karmada.kube.objects.errors import ApiError

    sheet.row(0, "Lease:")
    try:
        spec = at(await around.get("leases.v1.coordination.k8s.io", name, "kube-node-lease"), "spec", {})
    except ApiError as error:
        sheet.row(1, f"Failed to get lease: {error.message}")
        return
    sheet.field("HolderIdentity", spec.get("holderIdentity") or UNSET, 1)
    for title, key in (("AcquireTime", "acquireTime"), ("RenewTime", "renewTime")):
        sheet.field(title, moment(spec[key]) if spec.get(key) else UNSET, 1)


# pods


def _pods(sheet: Sheet, obj: Obj, pods: list[Obj], now: float) -> None:
    from karmada.kube.objects.quantity import ZERO, Quantity

    source = at(obj, "status.allocatable", {}) or at(obj, "status.capacity", {})
    has = {name: Quantity.parse(value) for name, value in source.items()}
    sheet.field("Non-terminated Pods", f"({len(pods)} in total)")
    titles = ("CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "Age")
    sheet.row(1, "Namespace", "Name", "", *titles)
    sheet.row(1, "---------", "----", "", *("-" * len(title) for title in titles))
    total: dict[str, dict[str, Quantity]] = {"requests": {}, "limits": {}}
    for pod in pods:
        requested = {kind: _requested_by(pod, kind) for kind in total}
        cells = [
            _share(requested[kind].get(name, ZERO), has.get(name, ZERO), name)
            for name in ("cpu", "memory")
            for kind in ("requests", "limits")
        ]
        age = since(meta(pod, "creationTimestamp"), now)
        sheet.row(1, meta(pod, "namespace"), meta(pod, "name"), "", *cells, age)
        for kind, amounts_ in requested.items():
            for name, amount in amounts_.items():
                total[kind][name] = total[kind].get(name, ZERO) + amount
    _allocated(sheet, total["requests"], total["limits"], has)


def _requested_by(pod: Obj, kind: str) -> dict[str, Quantity]:
    """Return the total requests of a pod; pod-level resources take precedence over those of containers."""
    from karmada.kube.kinds.pod_amounts import pod_resources
    from karmada.kube.objects.quantity import Quantity

    spec = pod.get("spec") or {}
    total = dict(pod_resources(spec, kind))
    for name, value in at(spec, f"resources.{kind}", {}).items():
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES):
            total[name] = Quantity.parse(value)
    return total


def _share(amount: Quantity, of: Quantity, name: str) -> str:
    measure = (amount.milli(), of.milli()) if name == "cpu" else (amount.value(), of.value())
    return f"{amount} ({_percent(*measure)}%)"


def _percent(part: int, whole: int) -> int:
    return int(part / whole * 100) if whole else 0


def _allocated(
    sheet: Sheet, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity], has: Mapping[str, Quantity]
) -> None:
    from karmada.kube.objects.quantity import ZERO

    sheet.row(0, "Allocated resources:")
    sheet.row(1, "(Total limits may be over 100 percent, i.e., overcommitted.)")
    sheet.heads(1, "Resource", "Requests", "Limits")
    pages = sorted(name for name in has if name.startswith(_HUGE_PAGES))
    for name in (*_STANDARD, *pages):
        shares = [_share(found.get(name, ZERO), has.get(name, ZERO), name) for found in (requests, limits)]
        sheet.row(1, name, *shares)
    for name in sorted(name for name in has if _is_extended(name)):
        sheet.row(1, name, requests.get(name, ZERO), limits.get(name, ZERO))


def _is_extended(name: str) -> bool:
    if name in (*_STANDARD, "pods", "storage") or name.startswith(_HUGE_PAGES):
        return False
    return "/" in name or name.startswith("attachable-volumes-")
