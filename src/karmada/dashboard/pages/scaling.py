"""Scaling: FederatedHPAs with what they measure and decide, and CronFederatedHPAs with what they did.

Metrics have no history in the API. What the page has seen while it was open is kept with the session; replicas of the
last hour come from the events of the autoscaler.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from karmada.api.autoscaling import CronFederatedHPA, FederatedHPA
from karmada.dashboard import reads
from karmada.dashboard.object_events import events_of
from karmada.dashboard.view import PageModule, Route, View
from karmada.kube.objects import meta
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

_MOST: Final = 100
_SAMPLES: Final = 720
_SAMPLED: Final = 40
"""Autoscalers of the list whose metrics are noted, so that their own pages have a curve."""
_RESCALED: Final = re.compile(r"New size: (\d+);")


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    current: str
    target: str


@dataclass(frozen=True, slots=True)
class Autoscaler:
    namespace: str
    name: str
    target: str
    least: int
    most: int
    current: int
    desired: int
    metrics: Sequence[Metric]
    conditions: Sequence[Obj]
    scaled: str | None

    @property
    def state(self) -> tuple[str, str]:
        broken = [one for one in self.conditions if one.get("type") in ("AbleToScale", "ScalingActive")]
        for one in broken:
            if one.get("status") == "False":
                return "bad", str(one.get("reason") or "Not scaling")
        limited = meta.get_condition(list(self.conditions), "ScalingLimited")
        if limited and limited.get("status") == "True":
            return "warn", str(limited.get("reason") or "Limited")
        return ("good", "Scaling") if self.conditions else ("warn", "Not evaluated yet")


def autoscaler_of(obj: Obj) -> Autoscaler:
    spec, status = obj["spec"], obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    return Autoscaler(
        meta.namespace(obj),
        meta.name(obj),
        f"{target.get('kind')} {target.get('name')}",
        spec.get("minReplicas") or 1,
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
        status.get("desiredReplicas") or 0,
        metrics_of(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        status.get("conditions") or (),
        status.get("lastScaleTime"),
    )


def metrics_of(wanted: Iterable[Obj], current: Iterable[Obj]) -> list[Metric]:
    """Return each metric of the spec with what was measured last."""
    known = {_name(one): _value((_part(one) or {}).get("current") or {}) for one in current}
    return [Metric(_name(one), known.get(_name(one), "–"), _target(one)) for one in wanted]


def _part(metric: Obj) -> Obj | None:
    kind = str(metric.get("type") or "")
    found = metric.get(kind[:1].lower() + kind[1:])
    return found if isinstance(found, dict) else None


def _name(metric: Obj) -> str:
    part = _part(metric) or {}
    name = part.get("name") or (part.get("metric") or {}).get("name") or metric.get("type")
    return f"{name} of {part['container']}" if part.get("container") else str(name)


def _target(metric: Obj) -> str:
    return _value((_part(metric) or {}).get("target") or {})


def _value(value: Obj) -> str:
    if value.get("averageUtilization") is not None:
        return f"{value['averageUtilization']} %"
    return str(value.get("averageValue") or value.get("value") or "–")


def number_of(text: str) -> float | None:
    """Return the number of a percentage or a quantity, for a curve."""
    from karmada.kube.objects.quantity import Quantity

    try:
        return float(text.removesuffix(" %")) if text.endswith(" %") else Quantity.parse(text).nano / 1e9
    except ValueError:
        return None


# the list


async def scaling(view: View) -> web.StreamResponse:
    namespace = view.query.get("namespace", "")
    page = await reads.page(view.client, FederatedHPA.gvr, namespace, limit=_MOST)
    crons = await reads.allowed(reads.page(view.client, CronFederatedHPA.gvr, namespace, limit=_MOST))
    topics = [reads.topic(FederatedHPA.gvr, namespace, since=page.version)]
    topics += [reads.topic(CronFederatedHPA.gvr, namespace, since=crons.version)] if crons is not None else []
    autoscalers = [autoscaler_of(one) for one in page.items]
    for obj, one in zip(page.items[:_SAMPLED], autoscalers, strict=False):
        _note(_samples(view, meta.uid(obj)), view.clock.now(), one)
    data: dict[str, Any] = {
        "autoscalers": autoscalers,
        "crons": None if crons is None else [cron_of(one) for one in crons.items],
        "more": bool(page.token),
        "namespace": namespace,
        "url": str(view.request.rel_url),
        "topics": topics,
    }
    return view.shown("scaling.html", title="Scaling", **data)


@dataclass(frozen=True, slots=True)
class Cron:
    namespace: str
    name: str
    target: str
    rules: Sequence[tuple[str, str, str, str, str]]
    """Name, schedule, what it sets, when it is due next, and its last execution."""


def cron_of(obj: Obj) -> Cron:
    spec, status = obj["spec"], obj.get("status") or {}
    histories = {one.get("ruleName"): one for one in status.get("executionHistories") or ()}
    target = spec.get("scaleTargetRef") or {}
    rules = [_rule(one, histories.get(one["name"]) or {}) for one in spec.get("rules") or ()]
    return Cron(meta.namespace(obj), meta.name(obj), f"{target.get('kind')} {target.get('name')}", rules)


def _rule(rule: Obj, history: Obj) -> tuple[str, str, str, str, str]:
    sets = [
        f"{label} {rule[field]}"
        for field, label in (
            ("targetReplicas", "replicas"),
            ("targetMinReplicas", "at least"),
            ("targetMaxReplicas", "at most"),
        )
        if rule.get(field) is not None
    ]
    done = [(one.get("executionTime") or "", "done") for one in history.get("successfulExecutions") or ()]
    done += [
        (one.get("executionTime") or "", f"failed: {one.get('message', '')}")
        for one in history.get("failedExecutions") or ()
    ]
    last = " ".join(max(done)) if done else "–"
    due = "suspended" if rule.get("suspend") else str(history.get("nextExecutionTime") or "–")
    zone = f" ({rule['timeZone']})" if rule.get("timeZone") else ""
    return str(rule["name"]), f"{rule['schedule']}{zone}", ", ".join(sets) or "–", due, last


# one autoscaler


async def autoscaler(view: View) -> web.StreamResponse:
    namespace, name = view.path["namespace"], view.path["name"]
    obj = await view.client.get(FederatedHPA.gvr, name, namespace)
    found = autoscaler_of(obj)
    events = await events_of(view.client, obj)
    samples = _samples(view, meta.uid(obj))
    _note(samples, view.clock.now(), found)
    data: dict[str, Any] = {
        "one": found,
        "events": (events or [])[:30],
        "hidden": events is None,
        "curves": {
            "now": view.clock.now(),
            "replicas": replicas_of(events or (), found.current, view.clock.now()),
            "metrics": _curves(samples),
        },
        "url": f"/scaling/{namespace}/{name}",
        "topics": [reads.topic(FederatedHPA.gvr, namespace, name=name)],
    }
    return view.shown("autoscaler.html", title=f"FederatedHPA {name}", **data)


def replicas_of(events: Iterable[Obj], current: int, now: float) -> list[list[float]]:
    """Return times and replicas of the last hour: a step for each rescaling, up to now."""
    steps = []
    for event in events:
        size = _RESCALED.search(str(event.get("message") or ""))
        if event.get("reason") == "SuccessfulRescale" and size and event.get("lastTimestamp"):
            steps.append((parse_time(event["lastTimestamp"]), float(size[1])))
    steps.sort()
    steps.append((now, float(current)))
    return [[at for at, _ in steps], [size for _, size in steps]]


Sample = tuple[float, dict[str, float]]


def _samples(view: View, uid: str) -> deque[Sample]:
    """Return what this session has seen of an autoscaler."""
    return view.viewer.seen(uid, lambda: deque(maxlen=_SAMPLES))


def _note(samples: deque[Sample], now: float, found: Autoscaler) -> None:
    values = {one.name: value for one in found.metrics if (value := number_of(one.current)) is not None}
    if values and (not samples or now - samples[-1][0] >= 1.0):
        samples.append((now, values))


def _curves(samples: Sequence[Sample]) -> dict[str, list[list[float]]]:
    """Return times and values by metric."""
    curves: dict[str, list[list[float]]] = {}
    for at, values in samples:
        for name, value in values.items():
            times, numbers = curves.setdefault(name, [[], []])
            times.append(at)
            numbers.append(value)
    return curves


PAGE: Final = PageModule(
    routes=(Route("GET", "/scaling", scaling), Route("GET", "/scaling/{namespace}/{name}", autoscaler)),
    nav=("/scaling", "Scaling"),
)
