"""What the aggregations of several kinds have in common: sums, last and latest values, generations, conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from karmada.interpreter.native.aggregation import reported
from karmada.interpreter.native.fields import entries, section, text
from karmada.interpreter.operations import InterpreterError, Report
from karmada.interpreter.thirdparty.values import Number, amount, dense
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj


def with_status(obj: Obj, status: Obj | None) -> Obj:
    """Return the template with this status; without one when nothing is left of it."""
    made = dense(status or {})
    if made:
        return {**obj, "status": made}
    return {field: value for field, value in obj.items() if field != "status"}


def only_status(obj: Obj, reports: Sequence[Report]) -> Obj | None:
    """Return the template with the status of its only cluster as it is; None when there are several."""
    return with_status(obj, reports[0].status) if len(reports) == 1 else None


def updated(obj: Obj, **fields: Any) -> Obj:
    """Return the template with these fields of its status set, or removed where None; the others stay."""
    return with_status(obj, {**section(obj, "status"), **fields})


def sums(reports: Iterable[Report], fields: Iterable[str]) -> dict[str, Number]:
    statuses = reported(reports)
    return {field: sum([amount(status, field) for status in statuses]) for field in fields}


def values(reports: Iterable[Report], field: str) -> list[Any]:
    """Return what clusters have in a field, in their order; without those that have nothing."""
    return [status[field] for status in reported(reports) if status.get(field) is not None]


def last(reports: Iterable[Report], field: str, default: Any = None) -> Any:
    found = values(reports, field)
    return found[-1] if found else default


def last_text(reports: Iterable[Report], field: str, default: Any = "") -> Any:
    """As `last`, but an empty text counts as nothing."""
    found = [value for value in values(reports, field) if value != ""]
    return found[-1] if found else default


def latest(reports: Iterable[Report], field: str, default: str | None = None) -> str | None:
    """Return the greatest text: the latest time, since all are written in the same form."""
    return max([text(status, field) for status in reported(reports) if status.get(field)], default=default)


def earliest(reports: Iterable[Report], field: str) -> str | None:
    return min([text(status, field) for status in reported(reports) if status.get(field)], default=None)


def observed_generation(obj: Obj, reports: Sequence[Report]) -> Number:
    """Return the template's generation when every cluster has observed it, what it was before otherwise."""
    generation = meta.generation(obj)
    if all(_is_current(report.status or {}, generation) for report in reports):
        return generation
    return amount(section(obj, "status"), "observedGeneration")


def _is_current(status: Obj, generation: int) -> bool:
    return amount(status, "resourceTemplateGeneration") == generation and amount(status, "generation") == amount(
        status, "observedGeneration"
    )


def merged_conditions(reports: Iterable[Report]) -> list[Obj]:
    """Conditions of the same type, status and reason as one, whose message names every cluster with its own."""
    merged: dict[tuple[Any, Any, Any], Obj] = {}
    for cluster, status in reports:
        for condition in entries(status or {}, "conditions"):
            if not isinstance(condition.get("message"), str):
                raise InterpreterError(f"status of cluster {cluster}: conditions: {condition.get('type')}: no message")
            message = f"{cluster}={condition['message']}"
            key = (condition.get("type"), condition.get("status"), condition.get("reason"))
            if key in merged:
                merged[key]["message"] += f", {message}"
            else:
                merged[key] = {**condition, "message": message}
    return list(merged.values())


def all_conditions(reports: Iterable[Report]) -> list[Obj]:
    return [condition for status in reported(reports) for condition in entries(status, "conditions")]


def with_former_times(obj: Obj, conditions: Iterable[Obj], times: Iterable[str]) -> list[Obj]:
    """Conditions that the template already has, but for their times, keep these: nothing has changed since."""
    names = set(times)
    former = entries(section(obj, "status"), "conditions")
    return [next((old for old in former if _same(old, new, names)), new) for new in conditions]


def _same(old: Obj, new: Obj, times: set[str]) -> bool:
    return old.keys() == new.keys() and all(old[field] == new[field] for field in new if field not in times)
