"""Values of several clusters as one, in either version."""

from __future__ import annotations

from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.metrics_objects import CUSTOM
from karmada.metricsadapter.custom_metrics import added_up
from tests.support.cases import cases

V2, V1 = CUSTOM
OLD: Obj = {
    "describedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "metricName": "seen",
    "timestamp": "2024-01-01T00:00:00Z",
    "window": 60,
    "value": "1500m",
    "selector": None,
}
NEW: Obj = {
    "describedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "metric": {"name": "seen", "selector": None},
    "timestamp": "2024-01-01T00:00:00Z",
    "windowSeconds": 60,
    "value": "1500m",
}


@cases((OLD, NEW), (NEW, NEW))
def test_both_versions_are_given_in_the_newer(given: Obj, wanted: Obj) -> None:
    assert added_up([given], V2) == [wanted]


@cases((OLD, OLD), (NEW, OLD))
def test_both_versions_are_given_in_the_older(given: Obj, wanted: Obj) -> None:
    assert added_up([given], V1) == [wanted]


def test_values_of_one_name_are_added_whatever_the_namespace() -> None:
    other = {**NEW, "describedObject": {**NEW["describedObject"], "namespace": "other"}, "value": "500m"}
    (item,) = added_up([OLD, other], V2)
    assert (item["value"], item["describedObject"]["namespace"]) == ("2", "other")
