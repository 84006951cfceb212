"""HorizontalPodAutoscalers: replicas that follow metrics.

Every 15 seconds an autoscaler reads its target's scale, computes the replicas for each metric, and the largest of them
goes through stabilisation, rates and limits (kube/autoscaling) into the target's scale. The target may be anything that
has a scale subresource. A metric that cannot be read never scales a target down. Recommendations and scaling events are
kept in memory only; after a restart an autoscaler starts with the present replicas.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NoReturn

from karmada.kube.autoscaling.behavior import History, decide
from karmada.kube.autoscaling.metrics import Metrics
from karmada.kube.autoscaling.proposals import propose
from karmada.kube.autoscaling.replicas import Rules, Tolerances
from karmada.kube.autoscaling.round import NO_SELECTOR, SELECTOR_REQUIRED, Round, unparsable
from karmada.kube.autoscaling.selectors import PodSelectors
from karmada.kube.autoscaling.sources import Sources, Target
from karmada.kube.client.discovery import Mapping, NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import AUTOSCALERS
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.pod_selection import PodSelection

PERIOD_SECONDS = 15.0
_TOLERANCE = 0.1


class Stop(Exception):
    """Ends this reconcile; the conditions have the cause."""


class HorizontalPodAutoscalers(Reconciler):
    name = "horizontal-pod-autoscaler"
    workers = 5

    def __init__(self, context: Context, metrics: Metrics[str]) -> None:
        self._context = context
        self._client = context.client()
        self._recorder = context.recorder(self.name)
        self._autoscalers: Informer = context.informers.of(AUTOSCALERS)
        self._selection = PodSelection(context.informers)
        self._sources = Sources(metrics)
        self._histories: dict[Key, History] = {}
        self._selectors = PodSelectors()
        self.watches = (Watch(AUTOSCALERS, changed=("spec",)),)

    async def reconcile(self, key: Key) -> Result:
        hpa = self._autoscalers.get(key)
        if hpa is None or is_deleting(hpa):
            self._histories.pop(key, None)
            self._selectors.forget(key)
            return Done
        round_ = Round(hpa, self._context.clock.now())
        with suppress(Stop):
            await self._autoscale(round_, self._histories.setdefault(key, History()))
        await self._context.put_status(AUTOSCALERS, hpa, _status_of(round_))
        return requeue(PERIOD_SECONDS)

    def _emit(self, round_: Round, kind: str, reason: str, message: str) -> None:
        self._recorder.event(round_.hpa, kind, reason, message)

    async def _autoscale(self, round_: Round, history: History) -> None:
        mapping, scale = await self._scale_of(round_)
        round_.got_scale()
        round_.current = int((scale.get("spec") or {}).get("replicas") or 0)
        history.begin(round_.current, round_.now)
        if round_.current == 0 and round_.bounds.low != 0:
            round_.disabled()
            round_.desired, round_.readings = 0, []
            return
        reason = round_.outside_bounds() or await self._follow_metrics(round_, history, scale)
        if round_.desired != round_.current:
            await self._rescale(round_, history, mapping, scale, reason)

    # the target

    async def _scale_of(self, round_: Round) -> tuple[Mapping, Obj]:
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
        round_.unable("FailedGetScale", "get the target's current scale", problem)
        raise Stop

    async def _rescale(self, round_: Round, history: History, mapping: Mapping, scale: Obj, reason: str) -> None:
        before, after = round_.current, round_.desired
        changed = {**scale, "spec": {**(scale.get("spec") or {}), "replicas": after}}
        try:
            await self._client.update(mapping.gvr, changed, subresource="scale")
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            self._emit(round_, WARNING, "FailedRescale", f"New size: {after}; reason: {reason}; error: {error}")
            round_.unable("FailedUpdateScale", "update the target scale", str(error))
            round_.desired, round_.readings = round_.status.get("desiredReplicas", 0), None
            raise Stop from error
        round_.rescaled()
        self._emit(round_, NORMAL, "SuccessfulRescale", f"New size: {after}; reason: {reason}")
        history.scaled(before, after, round_.spec.get("behavior") or {}, round_.now)

    # the metrics

    async def _follow_metrics(self, round_: Round, history: History, scale: Obj) -> str:
        """Set the desired replicas; returns the reason for the event if they change."""
        behavior = round_.spec.get("behavior")
        target = self._target(round_, scale)
        metrics, rules = round_.spec.get("metrics") or [], Rules(_tolerances(behavior or {}).allow)
        found = await propose(self._sources, metrics, target, rules, round_.now)
        for failure in found.failures:
            self._emit(round_, WARNING, failure.reason, failure.problem)
        round_.computed(found)
        if found.best is None or found.blocked:
            if found.problem:
                self._emit(round_, WARNING, "FailedComputeMetricsReplicas", found.problem)
            raise Stop
        round_.readings = found.statuses
        wanted = found.best.replicas
        round_.decided(decide(history, round_.current, wanted, round_.bounds, behavior, round_.now))
        return found.reason(wanted)

    def _target(self, round_: Round, scale: Obj) -> Target[str]:
        key = key_of(round_.hpa)
        status = scale.get("status") or {}
        text = status.get("selector") or ""
        if not text:
            self._emit(round_, WARNING, *SELECTOR_REQUIRED)
            self._refuse(round_, "InvalidSelector", NO_SELECTOR)
        try:
            selector = parse_labels(text)
        except ValueError as error:
            problem = unparsable(error)
            self._emit(round_, WARNING, "InvalidSelector", problem)
            self._refuse(round_, "InvalidSelector", problem)
        pods = self._selection.of(key.namespace, selector)
        self._selectors.register(key, selector)
        ambiguity = self._selectors.ambiguity(key, text, pods)
        if ambiguity:
            self._emit(round_, WARNING, "AmbiguousSelector", ambiguity)
            self._refuse(round_, "AmbiguousSelector", ambiguity)
        named = {pod["metadata"]["name"]: pod for pod in pods}
        return Target(key.namespace, text, round_.current, int(status.get("replicas") or 0), named)

    def _refuse(self, round_: Round, reason: str, message: str) -> NoReturn:
        round_.inactive(reason, message)
        raise Stop


def _status_of(round_: Round) -> Obj:
    status, generation = round_.finished(), round_.hpa["metadata"].get("generation")
    return {**status, "observedGeneration": generation} if generation else status


def _tolerances(behavior: Obj) -> Tolerances:
    def of(rules: str) -> float:
        given = (behavior.get(rules) or {}).get("tolerance")
        return _TOLERANCE if given is None else Quantity.parse(given).nano / 1e9

    return Tolerances(of("scaleDown"), of("scaleUp"))
