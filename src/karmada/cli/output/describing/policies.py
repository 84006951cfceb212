"""PodDisruptionBudgets and PriorityClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import UNSET, Sheet
from karmada.cli.output.describing.words import at, meta, names, pairs_text, selector_text

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj


async def disruption_budget(sheet: Sheet, obj: Obj, _around: Around) -> None:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    names(sheet, obj)
    if spec.get("minAvailable") is not None:
        sheet.field("Min available", spec["minAvailable"])
    else:
        sheet.known("Max unavailable", spec.get("maxUnavailable"))
    sheet.field("Selector", selector_text(spec["selector"]) if spec.get("selector") is not None else UNSET)
    sheet.row(0, "Status:")
    for title, key in (
        ("Allowed disruptions", "disruptionsAllowed"),
        ("Current", "currentHealthy"),
        ("Desired", "desiredHealthy"),
        ("Total", "expectedPods"),
    ):
        sheet.field(title, status.get(key) or 0, 2)


async def priority_class(sheet: Sheet, obj: Obj, _around: Around) -> None:
    sheet.field("Name", meta(obj, "name"))
    sheet.field("Value", obj.get("value") or 0)
    sheet.field("GlobalDefault", bool(obj.get("globalDefault")))
    sheet.field("PreemptionPolicy", obj.get("preemptionPolicy") or "")
    sheet.field("Description", at(obj, "description"))
    sheet.field("Annotations", pairs_text(meta(obj, "annotations", {})))
