"""The metrics of a FederatedHPA: those of a HorizontalPodAutoscaler, over all clusters, without external ones.

A metric of one object with an average per pod keeps three habits of Karmada that clients may know: its proposal is
calibrated a second time, it is reported under the name of an external metric, and without the object it describes.
"""

from __future__ import annotations

from karmada.controllers.federated_hpa.pods import PodKey
from karmada.kube.autoscaling.metrics import Metrics
from karmada.kube.autoscaling.replicas import Proposal, Rules
from karmada.kube.autoscaling.sources import Reading, Sources, printed
from karmada.kube.objects.types import Obj


class FederatedSources(Sources[PodKey]):
    def __init__(self, metrics: Metrics[PodKey]) -> None:
        super().__init__(metrics)
        del self._kinds["External"]

    def _of_object(self, source: Obj, found: Proposal, rules: Rules) -> Reading:
        reading = super()._of_object(source, found, rules)
        if source["target"]["type"] != "AverageValue":
            return reading
        metric = source["metric"]
        shown = {**reading.status["object"], "describedObject": {"kind": "", "name": ""}}
        name = f"external metric {metric['name']}({printed(metric.get('selector'))})"
        return Reading(rules.replicas(found.replicas, 1), name, {"type": "Object", "object": shown})
