"""Replicas of native kinds: counted and changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.interpreter.native.layer import Native
from karmada.interpreter.operations import InterpreterError, Replicas
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

SCALED = ["Deployment", "ReplicaSet", "StatefulSet"]


def workload(kind: str, spec: Obj) -> Obj:
    return {"apiVersion": "batch/v1" if kind == "Job" else "apps/v1", "kind": kind, "spec": spec}


@pytest.mark.parametrize("kind", SCALED)
@pytest.mark.parametrize(("spec", "replicas"), [({"replicas": 3}, 3), ({"replicas": 0}, 0), ({}, 0)])
def test_workloads_have_the_replicas_they_request(native: Any, kind: str, spec: Obj, replicas: int) -> None:
    assert native.get_replicas(workload(kind, spec)) == Replicas(replicas, None)


@cases(
    ({"parallelism": 5, "completions": 3}, 3),
    ({"parallelism": 5}, 5),
    ({}, 0),
    ({"parallelism": 2, "completions": 3}, 2),
    ({"completions": 3}, 0),
    ({"parallelism": 2, "completions": 0}, 0),
)
def test_a_job_runs_no_more_at_once_than_it_completes(spec: Obj, replicas: int, native: Any) -> None:
    assert native.get_replicas(workload("Job", spec)) == Replicas(replicas, None)


def test_requirements_come_from_the_template_and_for_a_pod_from_itself(native: Any) -> None:
    pod = {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "priorityClassName": "high"}
    needs = {"resourceRequest": {"cpu": "1"}}
    for kind in (*SCALED, "Job"):
        assert native.get_replicas(workload(kind, {"template": {"spec": pod}})).requirements == needs
    assert native.get_replicas({"apiVersion": "v1", "kind": "Pod", "spec": pod}) == Replicas(1, needs)


def test_the_priority_class_counts_where_quotas_are_estimated(native: Any, quota_native: Any) -> None:
    pod = {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "priorityClassName": "high"}
    template = workload("Deployment", {"replicas": 1, "template": {"spec": pod}})
    assert "priorityClassName" not in native.get_replicas(template).requirements
    assert quota_native.get_replicas(template).requirements["priorityClassName"] == "high"


@cases({"replicas": "3"}, {"replicas": True}, {"template": []})
def test_what_cannot_be_read_is_an_error(spec: Obj, native: Any) -> None:
    with pytest.raises(InterpreterError, match="expected"):
        native.get_replicas(workload("Deployment", spec))


@pytest.mark.parametrize(("kind", "field"), [*((kind, "replicas") for kind in SCALED), ("Job", "parallelism")])
def test_the_number_is_changed_in_a_new_object(native: Any, kind: str, field: str) -> None:
    template = workload(kind, {field: 1, "paused": True})
    assert native.revise_replica(template, 3) == workload(kind, {field: 3, "paused": True})


@pytest.mark.parametrize(("kind", "field"), [*((kind, "replicas") for kind in SCALED), ("Job", "parallelism")])
def test_a_template_without_the_number_is_left_alone(native: Any, kind: str, field: str) -> None:
    template = workload(kind, {"other": 1})
    assert native.revise_replica(template, 3) is template
    with pytest.raises(InterpreterError, match=f"spec.{field}"):
        native.revise_replica(workload(kind, {field: "1"}), 3)


def test_a_pod_cannot_be_scaled(native: Any) -> None:
    with pytest.raises(InterpreterError, match=r'^default ReviseReplica interpreter for "/v1, Kind=Pod" not found$'):
        native.revise_replica({"apiVersion": "v1", "kind": "Pod"}, 2)


@given(st.sampled_from(SCALED), st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_what_is_set_is_what_is_read(kind: str, before: int, after: int) -> None:
    native = Native()
    revised = native.revise_replica(workload(kind, {"replicas": before}), after)
    assert native.get_replicas(revised).replicas == after
