"""The status of a CronFederatedHPA: for each rule when it runs next, and how its last runs ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

_APPLIED = (
    ("targetReplicas", "appliedReplicas"),
    ("targetMinReplicas", "appliedMinReplicas"),
    ("targetMaxReplicas", "appliedMaxReplicas"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a rule: the time it was due, the time it was carried out, and why it failed, if it did."""

    rule: Obj
    due: float
    at: float
    failure: str = ""


def status_after(status: Obj, next_runs: Mapping[str, float | None], runs: Iterable[Run]) -> Obj:
    """Return the status with these runs added.

    `next_runs`: when each rule runs next, by name and in their order (None while suspended). Histories of rules with
    other names are dropped.
    """
    old = {entry["ruleName"]: entry for entry in status.get("executionHistories") or ()}
    kept = [name for name in old if name in next_runs]
    names = [*kept, *(name for name in next_runs if name not in old)]
    entries = {name: _scheduled(old.get(name) or {"ruleName": name}, next_runs[name]) for name in names}
    for run in runs:
        name = run.rule["name"]
        if name in entries:
            entries[name] = _recorded(entries[name], run)
    return {"executionHistories": list(entries.values())} if entries else {}


def _scheduled(entry: Obj, due: float | None) -> Obj:
    scheduled = {key: value for key, value in entry.items() if key != "nextExecutionTime"}
    return scheduled if due is None else {**scheduled, "nextExecutionTime": rfc3339(due)}


def _recorded(entry: Obj, run: Run) -> Obj:
    times = {"scheduleTime": rfc3339(run.due), "executionTime": rfc3339(run.at)}
    if run.failure:
        return _prepended(entry, "failedExecutions", {**times, "message": run.failure}, run, "failedHistoryLimit")
    applied = {to: run.rule[key] for key, to in _APPLIED if run.rule.get(key) is not None}
    return _prepended(entry, "successfulExecutions", {**times, **applied}, run, "successfulHistoryLimit")


def _prepended(entry: Obj, field: str, execution: Obj, run: Run, limit: str) -> Obj:
    kept = [execution, *(entry.get(field) or ())][: run.rule.get(limit, 3)]
    left = {key: value for key, value in entry.items() if key != field}
    return {**left, field: kept} if kept else left
