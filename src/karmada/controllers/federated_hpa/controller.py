"""FederatedHPAs: every sync period the replicas of a template follow the load of its pods in all clusters.

A reconcile finds the template, its binding and the clusters, reads the target's scale and pods in each of them,
computes replicas for each metric, and sends the largest through stabilisation, rates and limits (kube/autoscaling)
into the template's scale; the scheduler then divides them. Clusters that cannot be read do not count: what the others
propose is calibrated by their part of all replicas. Recommendations and scaling events are in memory only. Each
namespace is a lane, and within it many FederatedHPAs run at once, so that a slow answer holds up nobody else.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final, NoReturn

from karmada.api.autoscaling import FederatedHPA
from karmada.controllers.context import Context
from karmada.controllers.federated_hpa.figures import Figures
from karmada.controllers.federated_hpa.member_scales import MemberScales, Scales, remark
from karmada.controllers.federated_hpa.rules import rules_of
from karmada.controllers.federated_hpa.shared_metrics import SharedMetrics
from karmada.controllers.federated_hpa.sources import FederatedSources
from karmada.controllers.federated_hpa.target import GET_SCALE, Step, Target, TargetFailed, Targets
from karmada.controllers.federated_hpa.target_metrics import TargetMetrics
from karmada.kube.autoscaling.behavior import History, decide
from karmada.kube.autoscaling.metrics import MetricsClient, MetricsSource
from karmada.kube.autoscaling.proposals import Proposals, propose
from karmada.kube.autoscaling.round import SELECTOR_REQUIRED, Round, unparsable
from karmada.kube.autoscaling.selectors import PodSelectors
from karmada.kube.autoscaling.sources import Target as Measured
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.selectors import parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import set_status

CONTROLLER: Final = "federatedHPA-controller"
_NO_REPLICAS: Final = "failed to get replicas in any of clusters, possibly because all of clusters are not ready"
_UNREACHABLE: Final = (ApiError, ConnectionFailed, TimeoutError)


class ScalingFailed(ApiError):
    """Ends a reconcile whose conditions say why; it is retried with back-off."""

    def __init__(self, message: str, *, error: str = "internal") -> None:
        super().__init__(message)
        self.error = error


class FederatedHpas(Reconciler):
    name = CONTROLLER
    watches = (Watch(FederatedHPA.gvr, changed=("metadata.generation",)),)
    workers = 32
    options = ControllerOptions(lane_of=attrgetter("namespace"))

    def __init__(self, context: Context, source: MetricsSource | None = None) -> None:
        """`source` is the control plane's metrics APIs unless given."""
        settings = self._settings = context.settings
        self._clock = context.clock
        self._client = context.client
        self._recorder = context.recorder(CONTROLLER)
        self._period = settings.horizontal_pod_autoscaler_sync_period
        self._down_window = settings.horizontal_pod_autoscaler_downscale_stabilization
        if source is None:
            source = MetricsClient(context.client, clock=context.clock, version_lifetime=self._period)
        self.metrics = self._figures = Figures()
        self.shared = SharedMetrics(source, context.clock, self._figures, timeout=self._period)
        self.scales = MemberScales(context)
        self._targets = Targets(context)
        self._informer = context.informers.of(FederatedHPA.gvr)
        self.histories: dict[Key, History] = {}
        self.selectors = PodSelectors()

    async def stop(self) -> None:
        await self.shared.stop()
        await self.scales.stop()

    async def reconcile(self, key: Key) -> Result:
        hpa = self._informer.get(key)
        if hpa is None:
            await self._forget(key)
            return Done
        started, round_, error = self._clock.monotonic(), Round(hpa, self._clock.now()), "internal"
        try:
            await self._reconcile(key, round_)
            error = "none"
        except ScalingFailed as failure:
            error = failure.error
            raise
        finally:
            self._figures.processed(self._clock.monotonic() - started, action=round_.action, error=error)
        return requeue(self._period)

    async def _forget(self, key: Key) -> None:
        self.histories.pop(key, None)
        self.selectors.forget(key)
        await self.scales.use(key, ())

    async def _reconcile(self, key: Key, round_: Round) -> None:
        """Raise what is wrong after the status says it."""
        try:
            problem = await self._autoscale(key, round_)
        except ScalingFailed:
            await self._write(round_, failed=True)
            raise
        await self._write(round_)
        if problem:
            raise ScalingFailed(problem)

    # results

    async def _write(self, round_: Round, *, failed: bool = False) -> None:
        """`failed`: something else went wrong before, which is what is reported."""
        try:
            written = await set_status(self._client, FederatedHPA.gvr, round_.hpa, round_.finished())
        except NotFound:
            return
        except _UNREACHABLE as error:
            self._emit(round_, "FailedUpdateStatus", str(error))
            if not failed:
                raise
            return
        if written.outcome != "unchanged":
            self._informer.wrote(written.object)

    def _emit(self, round_: Round, reason: str, message: str, kind: str = WARNING) -> None:
        self._recorder.event(round_.hpa, kind, reason, message)

    def _unable(self, round_: Round, step: Step, text: str) -> None:
        self._emit(round_, step.event, text)
        round_.unable(step.reason, step.what, text)

    # steps

    async def _autoscale(self, key: Key, round_: Round) -> str:
        """Return what is wrong although the target was scaled; mostly nothing."""
        target = await self._find(key, round_)
        scales = await self._collect(key, round_, target)
        template = await self._template_scale(round_, target)
        round_.got_scale()
        round_.current = int((template.get("spec") or {}).get("replicas") or 0)
        history = self.histories.setdefault(key, History())
        history.begin(round_.current, round_.now)
        problem, reason = "", round_.outside_bounds()
        if not reason:
            found = await self._propose(key, round_, scales)
            problem, reason = found.problem, self._decide(round_, history, found)
        if round_.desired != round_.current:
            await self._rescale(round_, history, target, template, reason)
        return problem

    async def _find(self, key: Key, round_: Round) -> Target:
        try:
            return await self._targets.of(round_.hpa)
        except TargetFailed as failure:
            await self.scales.use(key, ())
            self._unable(round_, failure.step, failure.text)
            raise ScalingFailed(failure.text, error="spec" if failure.step is GET_SCALE else "internal") from failure

    async def _collect(self, key: Key, round_: Round, target: Target) -> Scales:
        await self.scales.use(key, (*target.ready, *target.unready))
        scales = await self.scales.of(target)
        for bad in scales.bad_selectors:
            self._emit(round_, bad.event, bad.text)
            round_.inactive("InvalidSelector", bad.message)
        if not scales.wanted:
            self._unable(round_, GET_SCALE, _NO_REPLICAS)
            raise ScalingFailed(f"failed to get scale subresource for {_reference(round_)}: {_NO_REPLICAS}")
        return scales

    async def _template_scale(self, round_: Round, target: Target) -> Obj:
        """Return the scale of the template; a failure is neither a condition nor an event."""
        try:
            return await self._client.get(target.gvr, target.name, target.namespace, subresource="scale")
        except _UNREACHABLE as error:
            where = _reference(round_)
            raise ApiError(f"failed to get scale subresource for resource template {where}: {error}") from error

    async def _rescale(self, round_: Round, history: History, target: Target, template: Obj, reason: str) -> None:
        """Rescale a template; one at zero has no replicas in its scale, and is left at zero."""
        before, after = round_.current, round_.desired
        if "replicas" not in template["spec"]:
            round_.desired = before
            return
        try:
            changed = {**template, "spec": {**template["spec"], "replicas": after}}
            await self._client.update(target.gvr, changed, subresource="scale")
        except _UNREACHABLE as error:
            self._emit(round_, "FailedRescale", f"New size: {after}; reason: {reason}; error: {error}")
            round_.unable("FailedUpdateScale", "update the target scale", str(error))
            round_.desired, round_.readings = round_.status.get("desiredReplicas", 0), None
            raise ScalingFailed(f"failed to rescale {_reference(round_)}: {error}") from error
        round_.rescaled()
        self._emit(round_, "SuccessfulRescale", f"New size: {after}; reason: {reason}", NORMAL)
        history.scaled(before, after, round_.spec.get("behavior") or {}, round_.now)

    # metrics

    async def _propose(self, key: Key, round_: Round, scales: Scales) -> Proposals:
        """Also sets what the metrics are; ScalingFailed when they propose nothing that may be used."""
        self._claim(key, round_, scales)
        measured = Measured(key.namespace, scales.selector, round_.current, scales.existing, scales.pods)
        several = len(self._informer.keys(key.namespace)) > 1
        metrics = TargetMetrics(self.shared, scales.pods, self._clock.monotonic(), whole_namespace=several)
        rules = rules_of(self._settings, calibration=scales.wanted / round_.current)
        specs = round_.spec.get("metrics") or []
        sources = FederatedSources(metrics, self._figures, self._clock)
        found = await propose(sources, specs, measured, rules, round_.now)
        for failure in found.failures:
            self._emit(round_, failure.reason, failure.problem)
        left_out = {**dict.fromkeys(metrics.silent, "no metrics of its pods"), **scales.left_out}
        round_.computed(found, remark(left_out))
        if found.blocked:
            self._refuse_metrics(round_, found.problem)
        round_.readings = found.statuses
        return found

    def _claim(self, key: Key, round_: Round, scales: Scales) -> None:
        """Claim the selected pods; refuse a broken selector, or one that selects pods of other autoscalers."""
        if not scales.selector:
            self._refuse_metrics(round_, SELECTOR_REQUIRED[1])
        try:
            self.selectors.register(key, parse_labels(scales.selector))
        except ValueError as error:
            self._refuse(round_, "InvalidSelector", unparsable(error))
        ambiguity = self.selectors.ambiguity(key, scales.selector, scales.pods.values())
        if ambiguity:
            self._refuse(round_, "AmbiguousSelector", ambiguity)

    def _refuse(self, round_: Round, reason: str, problem: str) -> NoReturn:
        self._emit(round_, reason, problem)
        round_.inactive(reason, problem)
        self._refuse_metrics(round_, problem)

    def _refuse_metrics(self, round_: Round, problem: str) -> NoReturn:
        """Replicas and metrics of the status stay as they were, except those that there are."""
        self._emit(round_, "FailedComputeMetricsReplicas", problem)
        where = _reference(round_)
        what = "failed to compute desired number of replicas based on listed metrics for"
        raise ScalingFailed(f"{what} {where}: {problem}", error="spec")

    def _decide(self, round_: Round, history: History, found: Proposals) -> str:
        """Set the desired replicas; the reason for the event if they change."""
        wanted = max(0, found.best.replicas) if found.best is not None else 0
        behavior, bounds = round_.spec.get("behavior"), round_.bounds
        decision = decide(history, round_.current, wanted, bounds, behavior, round_.now, self._down_window)
        round_.decided(decision)
        return found.reason(wanted)


def _reference(round_: Round) -> str:
    ref = round_.spec["scaleTargetRef"]
    return f"{ref['kind']}/{key_of(round_.hpa).namespace}/{ref['name']}"
