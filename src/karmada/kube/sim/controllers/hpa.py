"""HorizontalPodAutoscalers: replicas that follow metrics.

Every 15 seconds an autoscaler reads its target's scale, computes the replicas for each metric, and the
largest of them goes through stabilisation, rates and limits (hpa_behavior) into the target's scale. The target may be
anything that has a scale subresource. A metric that cannot be read never scales a target down. Recommendations and
scaling events are kept in memory only; after a restart an autoscaler starts with the present replicas.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from karmada.kube.client.discovery import Mapping, NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.meta import is_deleting, set_condition
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import LabelSelector, parse_labels
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.predicates import spec_changed
from karmada.kube.runtime.writes import set_status
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.hpa_behavior import Bounds, Decision, History, decide
from karmada.kube.sim.controllers.hpa_metrics import Metrics as Metrics
from karmada.kube.sim.controllers.hpa_metrics import MetricsClient as MetricsClient
from karmada.kube.sim.controllers.hpa_metrics import MetricsError as MetricsError
from karmada.kube.sim.controllers.hpa_metrics import PodMetric as PodMetric
from karmada.kube.sim.controllers.hpa_replicas import Tolerances
from karmada.kube.sim.controllers.hpa_sources import Reading, SourceFailed, Sources, Target
from karmada.kube.sim.controllers.pod_selection import PodSelection

AUTOSCALERS = GVR("autoscaling", "v2", "horizontalpodautoscalers")
PERIOD_SECONDS = 15.0
_TOLERANCE = 0.1


class Stop(Exception):
    """Ends this reconcile; the conditions have the cause."""


@dataclass(slots=True)
class _Round:
    """One reconcile of an autoscaler, and its new status."""

    hpa: Obj
    now: float
    status: Obj
    current: int = 0
    desired: int = 0
    readings: list[Obj] = field(default_factory=list)

    @property
    def spec(self) -> Obj:
        spec: Obj = self.hpa["spec"]
        return spec

    @property
    def bounds(self) -> Bounds:
        low = self.spec.get("minReplicas")
        return Bounds(1 if low is None else low, self.spec["maxReplicas"])

    def condition(self, kind: str, value: bool, reason: str, message: str) -> None:
        new = {"type": kind, "status": "True" if value else "False", "reason": reason, "message": message}
        self.status["conditions"] = set_condition(self.status.get("conditions"), new, self.now)

    def finished(self) -> Obj:
        status = {**self.status, "currentReplicas": self.current, "desiredReplicas": self.desired}
        if self.readings:
            status["currentMetrics"] = self.readings
        if self.hpa["metadata"].get("generation"):
            status["observedGeneration"] = self.hpa["metadata"]["generation"]
        return status


class HorizontalPodAutoscalers(Reconciler):
    name = "horizontal-pod-autoscaler"
    workers = 5

    def __init__(self, context: Context, metrics: Metrics) -> None:
        self._context = context
        self._client = context.client()
        self._recorder = context.recorder(self.name)
        self._autoscalers: Informer = context.informers.of(AUTOSCALERS)
        self._selection = PodSelection(context.informers)
        self._sources = Sources(metrics)
        self._histories: dict[Key, History] = {}
        self._selectors: dict[str, dict[str, LabelSelector]] = {}
        """By namespace and autoscaler: the selector of its pods when it was last reconciled."""
        self.watches = (Watch(AUTOSCALERS, when=spec_changed),)

    async def reconcile(self, key: Key) -> Result:
        hpa = self._autoscalers.get(key)
        if hpa is None or is_deleting(hpa):
            self._histories.pop(key, None)
            self._forget_selector(key)
            return Done
        status = dict(hpa.get("status") or {})
        round_ = _Round(hpa, self._context.clock.now(), status)
        round_.current, round_.desired = status.get("currentReplicas", 0), status.get("desiredReplicas", 0)
        with suppress(Stop):
            await self._autoscale(round_, self._histories.setdefault(key, History()))
        await self._write(hpa, round_.finished())
        return requeue(PERIOD_SECONDS)

    async def _write(self, hpa: Obj, status: Obj) -> None:
        try:
            written = await set_status(self._client, AUTOSCALERS, hpa, status)
        except NotFound:
            return
        await self._context.until_seen(self._autoscalers, [written.object])

    def _emit(self, round_: _Round, kind: str, reason: str, message: str) -> None:
        self._recorder.event(round_.hpa, kind, reason, message)

    async def _autoscale(self, round_: _Round, history: History) -> None:
        mapping, scale = await self._scale_of(round_)
        able = "the HPA controller was able to get the target's current scale"
        round_.condition("AbleToScale", True, "SucceededGetScale", able)
        round_.current = int((scale.get("spec") or {}).get("replicas") or 0)
        history.begin(round_.current, round_.now)
        bounds = round_.bounds
        if round_.current == 0 and bounds.low != 0:
            message = "scaling is disabled since the replica count of the target is zero"
            round_.condition("ScalingActive", False, "ScalingDisabled", message)
            round_.desired = 0
            return
        if round_.current > bounds.high:
            reason = "Current number of replicas above Spec.MaxReplicas"
            round_.desired = bounds.high
        elif round_.current < bounds.low:
            reason = "Current number of replicas below Spec.MinReplicas"
            round_.desired = bounds.low
        else:
            reason = await self._follow_metrics(round_, history, scale)
        if round_.desired != round_.current:
            await self._rescale(round_, history, mapping, scale, reason)

    # the target

    async def _scale_of(self, round_: _Round) -> tuple[Mapping, Obj]:
        reference, namespace = round_.spec["scaleTargetRef"], round_.hpa["metadata"]["namespace"]
        kind = GVK.parse(reference.get("apiVersion") or "", reference["kind"])
        try:
            mapping = await self._client.mapper.mapping(kind.group_kind)
            return mapping, await self._client.get(mapping.gvr, reference["name"], namespace, subresource="scale")
        except NoMatch:
            problem = f'no matches for kind "{kind.kind}" in group "{kind.group}"'
        except ApiError as error:
            problem = error.message
        except (ConnectionFailed, TimeoutError) as error:
            problem = str(error)
        self._emit(round_, WARNING, "FailedGetScale", problem)
        message = f"the HPA controller was unable to get the target's current scale: {problem}"
        round_.condition("AbleToScale", False, "FailedGetScale", message)
        raise Stop

    async def _rescale(self, round_: _Round, history: History, mapping: Mapping, scale: Obj, reason: str) -> None:
        before, after = round_.current, round_.desired
        changed = {**scale, "spec": {**(scale.get("spec") or {}), "replicas": after}}
        try:
            await self._client.update(mapping.gvr, changed, subresource="scale")
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            self._emit(round_, WARNING, "FailedRescale", f"New size: {after}; reason: {reason}; error: {error}")
            message = f"the HPA controller was unable to update the target scale: {error}"
            round_.condition("AbleToScale", False, "FailedUpdateScale", message)
            round_.desired = round_.status.get("desiredReplicas", 0)
            raise Stop from error
        message = f"the HPA controller was able to update the target scale to {after}"
        round_.condition("AbleToScale", True, "SucceededRescale", message)
        self._emit(round_, NORMAL, "SuccessfulRescale", f"New size: {after}; reason: {reason}")
        history.scaled(before, after, round_.spec.get("behavior") or {}, round_.now)
        round_.status["lastScaleTime"] = rfc3339(round_.now)

    # the metrics

    async def _follow_metrics(self, round_: _Round, history: History, scale: Obj) -> str:
        """Set the desired replicas; returns the reason for the event if they change."""
        target = self._target(round_, scale)
        wanted, name = await self._wanted(round_, target)
        decision = decide(history, round_.current, wanted, round_.bounds, round_.spec.get("behavior"), round_.now)
        self._set_limited(round_, decision)
        round_.desired = decision.replicas
        if wanted > round_.current:
            return f"{name} above target"
        return "All metrics below target" if wanted < round_.current else ""

    def _set_limited(self, round_: _Round, decision: Decision) -> None:
        round_.condition("AbleToScale", True, *decision.able)
        round_.condition("ScalingLimited", decision.limited, *decision.limit)

    async def _wanted(self, round_: _Round, target: Target) -> tuple[int, str]:
        """The highest recommendation of all metrics, and the name of that metric."""
        specs = round_.spec.get("metrics") or []
        tolerances = _tolerances(round_.spec.get("behavior") or {})
        readings: list[Reading | None] = []
        failures: list[SourceFailed] = []
        for metric in specs:
            try:
                readings.append(await self._sources.read(metric, target, tolerances, round_.now))
            except SourceFailed as failure:
                failures.append(failure)
                readings.append(None)
                self._emit(round_, WARNING, failure.reason, failure.problem)
        round_.readings = [reading.status if reading is not None else {"type": ""} for reading in readings]
        best = max((reading for reading in readings if reading is not None), key=lambda r: r.replicas, default=None)
        if failures and (best is None or best.replicas < target.wanted):
            first = failures[0]
            problem = f"the HPA was unable to compute the replica count: {first.problem}"
            round_.condition("ScalingActive", False, first.reason, problem)
            counted = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {first}"
            self._emit(round_, WARNING, "FailedComputeMetricsReplicas", counted)
            raise Stop
        if best is None:
            raise Stop
        message = f"the HPA was able to successfully calculate a replica count from {best.name}"
        round_.condition("ScalingActive", True, "ValidMetricFound", message)
        return best.replicas, best.name

    def _target(self, round_: _Round, scale: Obj) -> Target:
        key = key_of(round_.hpa)
        status = scale.get("status") or {}
        text = status.get("selector") or ""
        if not text:
            self._emit(round_, WARNING, "SelectorRequired", "selector is required")
            self._refuse(round_, "InvalidSelector", "the HPA target's scale is missing a selector")
        try:
            selector = parse_labels(text)
        except ValueError as error:
            problem = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._emit(round_, WARNING, "InvalidSelector", problem)
            self._refuse(round_, "InvalidSelector", problem)
        pods = self._selection.of(key.namespace, selector)
        others = self._others_with(key, selector, pods)
        if others:
            named = " ".join(str(other) for other in sorted([key, *others]))
            problem = f"pods by selector {text} are controlled by multiple HPAs: [{named}]"
            self._emit(round_, WARNING, "AmbiguousSelector", problem)
            self._refuse(round_, "AmbiguousSelector", problem)
        return Target(key.namespace, text, round_.current, int(status.get("replicas") or 0), pods)

    def _refuse(self, round_: _Round, reason: str, message: str) -> NoReturn:
        round_.condition("ScalingActive", False, reason, message)
        raise Stop

    def _others_with(self, key: Key, selector: LabelSelector, pods: list[Obj]) -> list[Key]:
        """Autoscalers that scale some of the same pods."""
        known = self._selectors.setdefault(key.namespace, {})
        known[key.name] = selector
        return [
            Key(key.namespace, name)
            for name, other in known.items()
            if name != key.name and any(other.matches(pod["metadata"].get("labels")) for pod in pods)
        ]

    def _forget_selector(self, key: Key) -> None:
        known = self._selectors.get(key.namespace, {})
        known.pop(key.name, None)
        if not known:
            self._selectors.pop(key.namespace, None)


def _tolerances(behavior: Obj) -> Tolerances:
    def of(rules: str) -> float:
        given = (behavior.get(rules) or {}).get("tolerance")
        return _TOLERANCE if given is None else Quantity.parse(given).nano / 1e9

    return Tolerances(of("scaleDown"), of("scaleUp"))
