"""The output of a decision of the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.scheduler.decision import Decision
    from karmada.scheduler.explain import ClusterReason, Explanation
    from karmada.scheduler.fitting.suggestions import Advice

NOTHING = "-"


class Column(NamedTuple):
    title: str
    values: Mapping[str, str]
    """A text for each cluster."""


def counts(targets: Iterable[Obj]) -> dict[str, int]:
    return {target["name"]: target.get("replicas") or 0 for target in targets}


def in_words(targets: Iterable[Obj], *, replicas: bool) -> str:
    """Return clusters with their replicas, sorted by name, so that two such texts can be compared."""
    found = counts(targets)
    if not found:
        return "nowhere"
    return ", ".join(f"{name}:{count}" if replicas else name for name, count in sorted(found.items()))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with columns as wide as they must be; the last is not filled up."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["   ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def explained(explanation: Explanation, before: Sequence[Column] = ()) -> list[str]:
    """Return one line for each cluster; `before` are columns about what was."""
    head = ["CLUSTER", *(column.title for column in before), "REPLICAS", "FATE", "SCORE", "ROOM", "WHY"]
    rows = [head]
    for one in explanation.clusters:
        was = [column.values.get(one.cluster, NOTHING) for column in before]
        rows.append([one.cluster, *was, _replicas(one), str(one.fate), _number(one.score), _room(one.room), one.why])
    return table(rows)


def _replicas(one: ClusterReason) -> str:
    from karmada.scheduler.explain import Fate

    if one.fate is not Fate.SELECTED:
        return NOTHING
    return _number(one.replicas)


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _room(value: int | None) -> str:
    from karmada.estimator.terms import MAX_REPLICAS

    return "any" if value is not None and value >= MAX_REPLICAS else _number(value)


def advised(advice: Advice | None) -> list[str]:
    """Return lines that say what would make a resource fit; none if it does."""
    if advice is None:
        return []
    quota = [f"A quota refuses that: {advice.quota.rstrip('.')}."] if advice.quota else []
    message = [f"{advice.message[0].upper()}{advice.message[1:]}."] if advice.message else []
    if not advice.suggestions:
        return [*quota, *message]
    more = len(advice.suggestions) - len(advice.shown)
    rest = [f"  ({more} more with -o yaml)"] if more else []
    return [
        *quota,
        *message,
        f"It would {advice.goal} if:",
        *(f"  - {suggestion.text}" for suggestion in advice.shown),
        *rest,
    ]


def as_data(decision: Decision, advice: Advice | None) -> Obj:
    """Return a decision and the advice on it for programs."""
    from dataclasses import asdict

    from karmada.scheduler.explain import explain

    failure = decision.failure
    return {
        "clusters": decision.targets,
        "affinityName": decision.affinity_name,
        "failure": None if failure is None else {"reason": str(failure.reason), "message": failure.text},
        "attempts": [
            {
                "affinityName": one.affinity_name,
                "outcome": one.outcome,
                "clusters": [{**asdict(cluster), "fate": str(cluster.fate)} for cluster in one.clusters],
            }
            for one in explain(decision)
        ],
        "fit": None if advice is None else advice.data,
    }


def formatted(data: object, output: str) -> str:
    """Return data as json or yaml."""
    if output == "json":
        return as_json(data)
    from karmada.kube.schema.yamlio import dump_yaml

    return dump_yaml(data).decode().rstrip()


def as_json(data: object) -> str:
    import orjson

    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()
