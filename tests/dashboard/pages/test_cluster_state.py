"""What is said about a cluster in a word, and how full it is."""

from __future__ import annotations

from typing import Any

from karmada.api.taints import taint_text
from karmada.dashboard.pages.cluster_state import Usage, state_of, usage_of, zones_of
from karmada.kube.objects.types import Obj
from tests.support.cases import cases


def _cluster(*conditions: Obj, **spec: Any) -> Obj:
    return {"metadata": {"name": "a"}, "spec": spec, "status": {"conditions": list(conditions)}}


def _ready(status: str, message: str = "m") -> Obj:
    return {"type": "Ready", "status": status, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}


NO_SCHEDULE = {"key": "k", "value": "v", "effect": "NoSchedule"}


@cases(
    (_cluster(), "idle", "Joining"),
    (_cluster(_ready("True")), "good", "Ready"),
    (_cluster(_ready("False")), "bad", "Not ready"),
    (_cluster(_ready("Unknown")), "bad", "Unknown"),
    (_cluster(_ready("True"), taints=[NO_SCHEDULE]), "warn", "Tainted"),
    (_cluster(_ready("True"), taints=[{"key": "k", "effect": "PreferNoSchedule"}]), "good", "Ready"),
    (_cluster(_ready("False"), taints=[NO_SCHEDULE]), "bad", "Not ready"),
    ({**_cluster(_ready("True")), "metadata": {"name": "a", "deletionTimestamp": "x"}}, "idle", "Leaving"),
)
def test_the_worst_that_holds_is_said(cluster: Obj, kind: str, label: str) -> None:
    state = state_of(cluster)
    assert (state.kind, state.label) == (kind, label)


def test_the_reason_is_the_conditions_or_the_taints() -> None:
    assert state_of(_cluster(_ready("False", "connection refused"))).why == "connection refused"
    assert state_of(_cluster(_ready("True"), taints=[NO_SCHEDULE])).why == taint_text(NO_SCHEDULE) == "k=v:NoSchedule"


def test_what_is_being_allocated_counts_as_used() -> None:
    summary = {"allocatable": {"cpu": "4"}, "allocated": {"cpu": "500m"}, "allocating": {"cpu": "1500m"}}
    cluster = {"metadata": {"name": "a"}, "spec": {}, "status": {"resourceSummary": summary}}
    assert usage_of(cluster, "cpu") == Usage(2.0, 4.0)
    assert usage_of(cluster, "cpu").share == 50
    assert usage_of(cluster, "memory") == usage_of(_cluster(), "cpu") == Usage()


@cases(({}, []), ({"zone": "a"}, ["a"]), ({"zones": ["b", "c"]}, ["b", "c"]))
def test_the_older_form_of_the_zone_is_read(spec: Obj, zones: list[str]) -> None:
    assert list(zones_of(_cluster(**spec))) == zones
