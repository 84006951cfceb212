"""Pods, and the templates of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.containers import containers, resources, seccomp
from karmada.cli.output.describing.sheet import NONE, UNSET, Sheet
from karmada.cli.output.describing.volumes import volumes
from karmada.cli.output.describing.words import (
    at,
    controlled_by,
    labels,
    marks,
    meta,
    moment,
    names,
    notes,
    selector_text,
    since,
)

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj


async def pod(sheet: Sheet, obj: Obj, around: Around) -> None:
    spec = obj["spec"]
    _identity(sheet, obj)
    _status(sheet, obj, around.now)
    controlled_by(sheet, obj)
    sheet.optional("NominatedNodeName", at(obj, "status.nominatedNodeName"))
    if spec.get("resources"):
        sheet.row(0, "Resources:")
        resources(sheet, spec["resources"], 1)
    for title, key, states in (
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
        ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
    ):
        if spec.get(key) or key == "containers":
            containers(sheet, title, spec.get(key) or (), statuses=at(obj, f"status.{states}", []), pod=obj)
    _gates_and_conditions(sheet, obj)
    volumes(sheet, spec.get("volumes") or ())
    sheet.field("QoS Class", at(obj, "status.qosClass"))
    _placement(sheet, spec, 0, selectors_first=True)


def _identity(sheet: Sheet, obj: Obj) -> None:
    spec = obj["spec"]
    names(sheet, obj)
    sheet.known("Priority", spec.get("priority"))
    sheet.optional("Priority Class Name", spec.get("priorityClassName"))
    sheet.optional("Runtime Class Name", spec.get("runtimeClassName"))
    sheet.optional("Service Account", spec.get("serviceAccountName"))
    node = spec.get("nodeName")
    sheet.field("Node", f"{node}/{at(obj, 'status.hostIP')}" if node else NONE)
    if at(obj, "status.startTime"):
        sheet.field("Start Time", moment(at(obj, "status.startTime")))
    marks(sheet, obj)


def _status(sheet: Sheet, obj: Obj, now: float) -> None:
    if meta(obj, "deletionTimestamp") and at(obj, "status.phase") not in ("Failed", "Succeeded"):
        sheet.field("Status", f"Terminating (lasts {since(meta(obj, 'deletionTimestamp'), now)})")
        sheet.field("Termination Grace Period", f"{meta(obj, 'deletionGracePeriodSeconds', 0)}s")
    else:
        sheet.field("Status", at(obj, "status.phase"))
    sheet.optional("Reason", at(obj, "status.reason"))
    sheet.optional("Message", at(obj, "status.message"))
    seccomp(sheet, at(obj, "spec.securityContext", {}), 0)
    sheet.field("IP", at(obj, "status.podIP"))
    addresses = at(obj, "status.podIPs", [])
    if not addresses:
        sheet.field("IPs", NONE)
        return
    sheet.row(0, "IPs:")
    for address in addresses:
        sheet.field("IP", address["ip"], 1)


def _gates_and_conditions(sheet: Sheet, obj: Obj) -> None:
    conditions = at(obj, "status.conditions", [])
    gates = at(obj, "spec.readinessGates", [])
    if gates:
        sheet.row(0, "Readiness Gates:")
        sheet.row(1, "Type", "Status")
        states = {condition["type"]: condition["status"] for condition in conditions}
        for gate in gates:
            sheet.row(1, f"{gate['conditionType']} ", f"{states.get(gate['conditionType'], NONE)} ")
    if conditions:
        sheet.row(0, "Conditions:")
        sheet.row(1, "Type", "Status")
        for condition in conditions:
            sheet.row(1, f"{condition['type']} ", f"{condition['status']} ")


# where pods may run


def _placement(sheet: Sheet, spec: Obj, level: int, *, selectors_first: bool) -> None:
    if not selectors_first:
        spread(sheet, spec, level)
        sheet.optional("Priority Class Name", spec.get("priorityClassName"), level)
    labels(sheet, "Node-Selectors", spec.get("nodeSelector"), level)
    sheet.column("Tolerations", [toleration_text(found) for found in _sorted(spec)], level)
    if selectors_first:
        spread(sheet, spec, level)


def _sorted(spec: Obj) -> list[Obj]:
    return sorted(spec.get("tolerations") or (), key=lambda found: found.get("key") or "")


def toleration_text(toleration: Obj) -> str:
    text = str(toleration.get("key") or "")
    if toleration.get("value"):
        text += f"={toleration['value']}"
    if toleration.get("effect"):
        text += f":{toleration['effect']}"
    if toleration.get("operator") == "Exists" and not toleration.get("value"):
        text += " op=Exists" if text else "op=Exists"
    if toleration.get("tolerationSeconds") is not None:
        text += f" for {toleration['tolerationSeconds']}s"
    return text


def spread(sheet: Sheet, spec: Obj, level: int) -> None:
    constraints = sorted(spec.get("topologySpreadConstraints") or (), key=lambda found: found.get("topologyKey") or "")
    if constraints:
        sheet.column("Topology Spread Constraints", map(_spread_text, constraints), level)


def _spread_text(constraint: Obj) -> str:
    key, otherwise, skew = (constraint[part] for part in ("topologyKey", "whenUnsatisfiable", "maxSkew"))
    text = f"{key}:{otherwise} when max skew {skew} is exceeded"
    selector = constraint.get("labelSelector")
    return f"{text} for selector {selector_text(selector)}" if selector else text


# templates


def template(sheet: Sheet, found: Obj | None) -> None:
    """Describe the template that a workload makes pods from."""
    sheet.row(0, "Pod Template:")
    if not found:
        sheet.row(1, UNSET)
        return
    spec = found.get("spec") or {}
    labels(sheet, "Labels", at(found, "metadata.labels", {}), 1)
    if at(found, "metadata.annotations", {}):
        notes(sheet, "Annotations", at(found, "metadata.annotations"), 1)
    sheet.optional("Service Account", spec.get("serviceAccountName"), 1)
    if spec.get("initContainers"):
        containers(sheet, "Init Containers", spec["initContainers"], template=True)
    containers(sheet, "Containers", spec.get("containers") or (), template=True)
    volumes(sheet, spec.get("volumes") or (), template=True)
    _placement(sheet, spec, 1, selectors_first=False)
