"""From the Works of a binding to what its status says of them."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.controllers.binding_status.aggregation import aggregate, fully_applied, report_of
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.fleet import deployment

REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
IDENTIFIER = {
    "ordinal": 0,
    "group": "apps",
    "version": "v1",
    "kind": "Deployment",
    "resource": "",
    "namespace": "default",
    "name": "web",
}


def work(cluster: str, applied: str | None, message: str = "", **report: Any) -> Obj:
    status: Obj = {}
    if applied is not None:
        status["conditions"] = [{"type": "Applied", "status": applied, "message": message}]
    if report:
        status["manifestStatuses"] = [{"identifier": IDENTIFIER, **report}]
    return {
        "metadata": {"namespace": f"karmada-es-{cluster}", "name": "w"},
        "spec": {"workload": {"manifests": [deployment()]}},
        "status": status,
    }


def aggregated(works: list[Obj], reference: Obj) -> list[Obj]:
    return aggregate(report_of(made, reference) for made in works)


@cases(
    (work("a", None), {"clusterName": "a", "health": "Unknown"}),
    (work("a", "False", "no"), {"clusterName": "a", "health": "Unknown", "appliedMessage": "no"}),
    (
        work("a", "False", "n" * 5000),
        {"clusterName": "a", "health": "Unknown", "appliedMessage": "n" * 4095 + "…"},
    ),
    (work("a", "Unknown", "?", health="Healthy"), {"clusterName": "a", "health": "Unknown", "appliedMessage": "?"}),
    (work("a", "True", "yes"), {"clusterName": "a", "health": "Unknown", "applied": True}),
    (work("a", "True", health="Healthy"), {"clusterName": "a", "health": "Healthy", "applied": True}),
    (
        work("a", "True", health="Unhealthy", status={"replicas": 1}),
        {"clusterName": "a", "health": "Unhealthy", "applied": True, "status": {"replicas": 1}},
    ),
)
def test_an_item_says_what_is_known_of_a_work(made: Obj, expected: Obj) -> None:
    assert aggregated([made], REFERENCE) == [expected]


def test_items_come_by_cluster() -> None:
    items = aggregated([work("b", "True"), work("a", None)], REFERENCE)
    assert [item["clusterName"] for item in items] == ["a", "b"]


def test_a_report_on_another_manifest_is_not_the_templates() -> None:
    made = work("a", "True", health="Healthy")
    made["status"]["manifestStatuses"][0]["identifier"] = {**IDENTIFIER, "ordinal": 1}
    assert aggregated([made], REFERENCE)[0]["health"] == "Unknown"


def test_what_is_no_object_is_not_the_template() -> None:
    made = work("a", "True")
    made["spec"]["workload"]["manifests"].insert(0, "text")
    assert aggregated([made], REFERENCE)[0]["applied"]


def test_a_work_without_the_template_is_an_error() -> None:
    with pytest.raises(ApiError, match="no such manifest exist"):
        aggregated([work("a", "True")], {**REFERENCE, "name": "other"})


@cases(
    ([], [], "False"),
    ([{"clusterName": "a", "applied": True}], ["a"], "True"),
    ([{"clusterName": "a", "applied": True}], ["a", "b"], "False"),
    ([{"clusterName": "a", "applied": True}, {"clusterName": "b"}], ["a", "b"], "False"),
    ([{"clusterName": "a", "applied": True}], ["b"], "False"),
    ([{"clusterName": "a", "applied": True}, {"clusterName": "b", "applied": True}], ["a"], "False"),
)
def test_fully_applied_means_everywhere_and_nowhere_else(items: list[Obj], expected: list[str], status: str) -> None:
    assert fully_applied(items, expected)["status"] == status
