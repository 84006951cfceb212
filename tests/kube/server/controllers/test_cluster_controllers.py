"""Which controllers --controllers of a kube-controller-manager selects, and which names it refuses."""

from __future__ import annotations

import pytest

from karmada.kube.server.controllers.cluster_controllers import ROWS, check, enabled
from tests.support.cases import cases

INSTALLER = (
    "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,"
    "csrsigning,clusterrole-aggregation"
)


@cases(
    ("*", {row.names[0] for row in ROWS}),
    ("*,-garbagecollector", {row.names[0] for row in ROWS} - {"garbagecollector"}),
    ("-namespace-controller,*", {row.names[0] for row in ROWS} - {"namespace"}),
    (INSTALLER, set(INSTALLER.split(","))),
    ("namespace-controller,garbage-collector-controller", {"namespace", "garbagecollector"}),
    ("namespace,-namespace", {"namespace"}),
    ("root-ca-cert-publisher", {"serviceaccount"}),
    ("deployment", set()),
    ("", set()),
)
def test_the_first_entry_that_names_a_controller_decides(wanted: str, running: set[str]) -> None:
    assert {row.names[0] for row in ROWS if enabled(row.names, wanted.split(","))} == running


@cases("*", INSTALLER, "deployment-controller,-job", "horizontalpodautoscaling", "pvc-protection-controller")
def test_names_of_kubernetes_are_accepted(wanted: str) -> None:
    check(wanted.split(","))


@cases("namespaces", "*,-gc", "-*-")
def test_other_names_are_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=r"is not in the list of known controllers \(run here: namespace, "):
        check(wanted.split(","))
