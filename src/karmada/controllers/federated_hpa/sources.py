"""The metrics of a FederatedHPA: those of a HorizontalPodAutoscaler, over all clusters, without external ones.

A metric of one object with an average per pod keeps three habits of Karmada that clients may know: its proposal is
calibrated a second time, it is reported under the name of an external metric, and without the object it describes.
"""

from __future__ import annotations

from karmada.controllers.federated_hpa.figures import Figures
from karmada.controllers.federated_hpa.pods import PodKey
from karmada.kube.autoscaling.metrics import Metrics
from karmada.kube.autoscaling.replicas import Proposal, Rules
from karmada.kube.autoscaling.round import action_of
from karmada.kube.autoscaling.sources import UNKNOWN_SOURCE, Reading, SourceFailed, Sources, Target, printed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj


class FederatedSources(Sources[PodKey]):
    def __init__(self, metrics: Metrics[PodKey], figures: Figures, clock: Clock) -> None:
        super().__init__(metrics)
        self._figures = figures
        self._clock = clock
        del self._kinds["External"]

    async def read(self, metric: Obj, target: Target[PodKey], rules: Rules, now: float) -> Reading:
        started, action, error = self._clock.monotonic(), "none", "none"
        try:
            reading = await super().read(metric, target, rules, now)
            action = action_of(target.wanted, reading.replicas)
            return reading
        except SourceFailed as failure:
            error = "spec" if failure.reason == UNKNOWN_SOURCE else "internal"
            raise
        finally:
            self._figures.computed(metric["type"], self._clock.monotonic() - started, action=action, error=error)

    def _of_object(self, source: Obj, found: Proposal, rules: Rules) -> Reading:
        reading = super()._of_object(source, found, rules)
        if source["target"]["type"] != "AverageValue":
            return reading
        metric = source["metric"]
        shown = {**reading.status["object"], "describedObject": {"kind": "", "name": ""}}
        name = f"external metric {metric['name']}({printed(metric.get('selector'))})"
        return Reading(rules.replicas(found.replicas, 1), name, {"type": "Object", "object": shown})
