"""HorizontalPodAutoscalers: metrics, limits and status."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from karmada.cli.output.describing.sheet import UNKNOWN, UNSET, Sheet
from karmada.cli.output.describing.words import at, conditions, marks, meta, moment, names

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj


class Measure(NamedTuple):
    """A line of the section on metrics."""

    title: str
    current: str
    target: str


async def autoscaler(sheet: Sheet, obj: Obj, _around: Around) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    names(sheet, obj)
    marks(sheet, obj)
    sheet.field("CreationTimestamp", moment(meta(obj, "creationTimestamp")))
    kind = at(spec, "scaleTargetRef.kind")
    sheet.field("Reference", f"{kind}/{at(spec, 'scaleTargetRef.name')}")
    sheet.field("Metrics", "( current / target )")
    current = status.get("currentMetrics") or []
    for number, metric in enumerate(spec.get("metrics") or ()):
        measure = _measure(metric, (current[number] if number < len(current) else {}) or {})
        sheet.row(1, f"{measure.title}:", f"{measure.current} / {measure.target}")
    sheet.field("Min replicas", spec["minReplicas"] if spec.get("minReplicas") is not None else UNSET)
    sheet.field("Max replicas", spec.get("maxReplicas") or 0)
    if spec.get("behavior"):
        sheet.row(0, "Behavior:")
        _direction(sheet, "Scale Up", spec["behavior"].get("scaleUp"))
        _direction(sheet, "Scale Down", spec["behavior"].get("scaleDown"))
    replicas = f"{status.get('currentReplicas') or 0} current / {status.get('desiredReplicas') or 0} desired"
    sheet.field(f"{kind} pods", replicas)
    conditions(sheet, status.get("conditions") or [])


def _measure(metric: Obj, status: Obj) -> Measure:
    kind = metric["type"]
    key = kind[0].lower() + kind[1:]
    source, current = metric.get(key) or {}, at(status, f"{key}.current", {})
    target = source.get("target") or {}
    if kind in ("Resource", "ContainerResource"):
        return _resource(source, target, current, kind)
    name = f'"{at(source, "metric.name")}"'
    if kind == "Pods":
        return Measure(f"{name} on pods", *_values(current, target, "averageValue"))
    if kind == "Object":
        described = f"{at(source, 'describedObject.kind')}/{at(source, 'describedObject.name')}"
        name = f"{name} on {described}"
    which = "averageValue" if target.get("averageValue") is not None else "value"
    word = "average value" if which == "averageValue" else "value"
    return Measure(f"{name} (target {word})", *_values(current, target, which))


def _resource(source: Obj, target: Obj, current: Obj, kind: str) -> Measure:
    of = f' of container "{source.get("container", "")}"' if kind == "ContainerResource" else ""
    title = f"resource {source.get('name', '')}{of} on pods"
    if target.get("averageValue") is not None:
        return Measure(title, *_values(current, target, "averageValue"))
    now = UNKNOWN
    if current.get("averageUtilization") is not None:
        now = f"{current['averageUtilization']}% ({_amount(current.get('averageValue') or '0')})"
    wanted = "<auto>" if target.get("averageUtilization") is None else f"{target['averageUtilization']}%"
    return Measure(f"{title}  (as a percentage of request)", now, wanted)


def _values(current: Obj, target: Obj, which: str) -> tuple[str, str]:
    now = _amount(current[which]) if current.get(which) is not None else UNKNOWN
    return now, _amount(target.get(which) or "0")


def _amount(value: str) -> str:
    from karmada.kube.objects.quantity import canonical

    return canonical(value)


def _direction(sheet: Sheet, title: str, rules: Obj | None) -> None:
    if not rules:
        return
    sheet.row(1, f"{title}:")
    if rules.get("stabilizationWindowSeconds") is not None:
        sheet.row(2, f"Stabilization Window: {rules['stabilizationWindowSeconds']} seconds")
    if not rules.get("policies"):
        return
    sheet.row(2, f"Select Policy: {rules.get('selectPolicy') or 'Max'}")
    sheet.row(2, "Policies:")
    for policy in rules["policies"]:
        sheet.row(
            3, f"- Type: {policy['type']}", f"Value: {policy['value']}", f"Period: {policy['periodSeconds']} seconds"
        )
