"""One status from many."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.interpreter.native import kinds
from karmada.interpreter.native.aggregation import AGGREGATORS
from karmada.interpreter.native.layer import Native
from karmada.interpreter.native.workloads import COUNTERS
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.decode import normalize
from tests.support.cases import cases
from tests.support.objects import kube_object

EARLY, LATE, LATEST = "2024-01-01T00:00:00Z", "2024-01-01T12:00:00Z", "2024-02-01T00:00:00Z"


def template(gvk: GVK, status: Obj | None = None, spec: Obj | None = None, generation: int = 2) -> Obj:
    made: Obj = kube_object(gvk.api_version, gvk.kind, "web", generation=generation, spec=spec or {})
    return made if status is None else {**made, "status": status}


def items(*statuses: Obj | None) -> list[Obj]:
    """Of clusters m1, m2, …; None is a cluster that has not reported."""
    return [
        {"clusterName": f"m{index}", "applied": True, "health": "Unknown"}
        | ({} if status is None else {"status": status})
        for index, status in enumerate(statuses, 1)
    ]


def seen(template_generation: int, **counters: int) -> Obj:
    generations = {"generation": 1, "observedGeneration": 1, "resourceTemplateGeneration": template_generation}
    return {**generations, **counters}


# --- counters


def test_a_deployment_is_observed_when_every_cluster_follows_the_template(native: Any) -> None:
    deployment = template(kinds.DEPLOYMENT, {"observedGeneration": 1})
    first, behind = seen(2, replicas=2, readyReplicas=2), seen(1, replicas=1, readyReplicas=1)
    counted = {"replicas": 3, "readyReplicas": 3}
    result = native.aggregate_status(deployment, items(first, behind))
    assert result["status"] == {"observedGeneration": 1, **counted}
    result = native.aggregate_status(result, items(first, {**behind, "resourceTemplateGeneration": 2}))
    assert result["status"] == {"observedGeneration": 2, **counted}


def test_a_cluster_that_has_not_reported_holds_the_generation_back(native: Any) -> None:
    deployment = template(kinds.DEPLOYMENT, {"observedGeneration": 1})
    refusal = native.aggregate_status(deployment, items(seen(2, replicas=1), None))
    assert refusal["status"] == {"observedGeneration": 1, "replicas": 1}
    refusal = native.aggregate_status(
        deployment, items(seen(2, replicas=1), {**seen(2, replicas=1), "observedGeneration": 0})
    )
    assert refusal["status"] == {"observedGeneration": 1, "replicas": 2}


@pytest.mark.parametrize("gvk", COUNTERS, ids=str)
def test_without_clusters_nothing_runs_and_the_generation_is_observed(native: Any, gvk: GVK) -> None:
    running = {counter.field: 3 for counter in COUNTERS[gvk]}
    result = native.aggregate_status(template(gvk, {"observedGeneration": 1, **running}), [])
    always = {counter.field: 0 for counter in COUNTERS[gvk] if counter.always}
    assert result["status"] == {"observedGeneration": 2, **always}
    assert native.aggregate_status(result, []) is result


@pytest.mark.parametrize("gvk", COUNTERS, ids=str)
def test_counters_are_added_up_and_all_else_stays(native: Any, gvk: GVK) -> None:
    fields = [counter.field for counter in COUNTERS[gvk]]
    one, two = {field: n for n, field in enumerate(fields, 1)}, {field: 10 * n for n, field in enumerate(fields, 1)}
    kept = {"conditions": [{"type": "A"}], "collisionCount": 3}
    result = native.aggregate_status(template(gvk, kept), items(seen(2, **one), None, seen(3, **two)))
    assert result["status"] == {**kept, **{field: 11 * n for n, field in enumerate(fields, 1)}}
    result = native.aggregate_status(result, items(seen(2, **one), seen(3, **two)))
    assert result["status"]["observedGeneration"] == 2
    assert result["status"]["conditions"][0] == {"type": "A"}
    assert native.aggregate_status(result, items(seen(2, **one), seen(3, **two))) is result


counts = st.integers(0, 1000)


@given(st.sampled_from(sorted(COUNTERS)), st.data())
def test_one_cluster_says_it_all(gvk: GVK, data: st.DataObject) -> None:
    """What is reflected from a cluster that follows the template is the template's status."""
    native = Native()
    member_status = {counter.field: data.draw(counts) for counter in COUNTERS[gvk]} | {"observedGeneration": 7}
    annotations = {"resourcetemplate.karmada.io/generation": "2"}
    member = template(gvk, member_status, generation=7)
    member["metadata"]["annotations"] = annotations
    status = native.aggregate_status(template(gvk), items(native.reflect_status(member)))["status"]
    status.pop("conditions", None)
    assert {field: value for field, value in status.items() if value} == {
        field: value for field, value in {**member_status, "observedGeneration": 2}.items() if value
    }


@given(st.lists(st.none() | st.builds(lambda g, n: seen(g, replicas=n, readyReplicas=n), counts, counts), max_size=5))
def test_the_order_of_clusters_does_not_matter_for_counters(statuses: list[Obj | None]) -> None:
    native, deployment = Native(), template(kinds.DEPLOYMENT)
    result = native.aggregate_status(deployment, items(*statuses))
    assert result == native.aggregate_status(deployment, items(*statuses[::-1]))
    assert native.aggregate_status(result, items(*statuses)) is result


@cases("fine", [], {"replicas": "1"}, {"generation": {}})
def test_a_report_that_cannot_be_read_is_an_error(status: Any, native: Any) -> None:
    with pytest.raises(InterpreterError, match="expected"):
        native.aggregate_status(template(kinds.DEPLOYMENT), items(seen(1), status))


# --- Jobs


def ended(*conditions: str, **fields: Any) -> Obj:
    return {"conditions": [{"type": kind, "status": "True"} for kind in conditions], **fields}


def condition(kind: str, reason: str, message: str, now: str) -> Obj:
    return {
        "type": kind, "status": "True", "reason": reason, "message": message, "lastProbeTime": now,
        "lastTransitionTime": now,
    }  # fmt: skip


FAILED = ("Failed", "JobFailed", "Job executed failed in member clusters m2")
BOTH_FAILED = ("Failed", "JobFailed", "Job executed failed in member clusters m1,m2")
COMPLETE = ("Complete", "Completed", "Job completed")
MET = ("SuccessCriteriaMet", "CompletionsReached", "All member clusters have met success criteria")


@cases(
    ([], []),
    ([None], []),
    ([ended("Complete"), {"active": 1}], []),
    ([ended("Complete"), None], []),
    ([{"active": 1}, ended("Failed")], [FAILED]),
    ([None, ended("FailureTarget", "Failed")], [FAILED]),
    ([ended("Complete"), ended("Failed")], [FAILED]),
    ([ended("Failed"), ended("Failed", "Complete")], [BOTH_FAILED]),
    ([ended("Complete"), ended("Complete", "Failed")], [COMPLETE, MET]),
    ([ended("Complete", "SuccessCriteriaMet"), ended("Complete")], [COMPLETE, MET]),
    ([ended("SuccessCriteriaMet", "Complete")] * 2, [COMPLETE, MET]),
    ([ended("SuccessCriteriaMet")], []),
    ([{"conditions": [{"type": "Complete", "status": "False"}]}], []),
)
def test_a_job_fails_with_one_cluster_and_is_complete_with_all(
    statuses: list[Obj | None], conditions: list[tuple[str, str, str]], native: Any, clock: FakeClock
) -> None:
    job = native.aggregate_status(template(kinds.JOB), items(*statuses))
    now = rfc3339(clock.now())
    assert job.get("status", {}).get("conditions", []) == [condition(*refusal, now) for refusal in conditions]


@cases("Complete", "Failed")
def test_a_finished_job_never_changes(end: str, native: Any) -> None:
    job = template(kinds.JOB, ended("Suspended", end, active=1))
    assert native.aggregate_status(job, items({"succeeded": 3}, ended("Failed"))) is job


def test_a_failed_job_stays_as_it_was_when_it_failed(native: Any) -> None:
    job = native.aggregate_status(template(kinds.JOB), items({"active": 1}, ended("Failed", failed=1)))
    assert native.aggregate_status(job, items({"active": 5}, {"active": 1})) is job


def test_pods_of_jobs_are_added_up_and_the_rest_is_replaced(native: Any) -> None:
    job = template(kinds.JOB, {"active": 9, "ready": 4, "conditions": [{"type": "Suspended", "status": "True"}]})
    one, two = {"active": 1, "succeeded": 2, "failed": 3}, {"active": 10, "succeeded": 20}
    assert native.aggregate_status(job, items(one, None, two))["status"] == {"active": 11, "succeeded": 22, "failed": 3}


@cases(
    ({}, [{"startTime": LATE}, {"startTime": EARLY}], {"startTime": EARLY}),
    ({}, [{"startTime": LATE}, {}], {}),
    ({}, [{"startTime": LATE}, None], {}),
    ({"startTime": LATEST}, [{"startTime": LATE}, None], {"startTime": LATEST}),
    ({}, [{"completionTime": LATE}, {"completionTime": EARLY}], {"completionTime": LATE}),
    ({}, [{"completionTime": LATE}, {}], {}),
    ({}, [], {}),
)
def test_a_job_starts_with_the_first_cluster_and_ends_with_the_last(
    old: Obj, statuses: list[Obj | None], times: Obj, native: Any
) -> None:
    assert native.aggregate_status(template(kinds.JOB, old), items(*statuses)).get("status") == times


def test_a_time_that_is_none_is_an_error(native: Any) -> None:
    with pytest.raises(InterpreterError, match="parsing time"):
        native.aggregate_status(template(kinds.JOB), items({"startTime": "noon"}))


# --- addresses

IP, OTHER_IP, NAME = {"ip": "1.1.1.1"}, {"ip": "2.2.2.2"}, {"hostname": "b"}


def port(number: int, protocol: str = "TCP", **fields: str) -> Obj:
    return {"port": number, "protocol": protocol, **fields}


def ports(entry: Obj, *found: Obj) -> Obj:
    return {**entry, "ports": list(found)}


ADDRESSES: list[tuple[list[list[Obj]], list[Obj]]] = [
    ([[IP], [NAME, IP]], [NAME, IP]),
    ([[OTHER_IP], [IP]], [IP, OTHER_IP]),
    ([[{"hostname": "c"}, NAME, {"hostname": "a", **IP}]], [{"hostname": "a", **IP}, NAME, {"hostname": "c"}]),
    ([[{**NAME, **OTHER_IP}, {**NAME, **IP}]], [{**NAME, **IP}, {**NAME, **OTHER_IP}]),
    (
        [[ports(IP, port(443))], [ports(IP, port(80), port(443)), ports(IP, port(80, "UDP"))]],
        [ports(IP, port(80), port(80, "UDP"), port(443))],
    ),
    ([[ports(IP, port(80, error="x"), port(80))], [IP]], [ports(IP, port(80), port(80, error="x"))]),
]


def balanced(*entries: list[Obj]) -> list[Obj]:
    return items(*({"loadBalancer": {"ingress": found}} for found in entries))


@pytest.mark.parametrize("gvk", [kinds.SERVICE, kinds.INGRESS], ids=str)
@pytest.mark.parametrize(("clusters", "merged"), ADDRESSES)
def test_addresses_are_gathered(native: Any, gvk: GVK, clusters: list[list[Obj]], merged: list[Obj]) -> None:
    old = {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}]}, "conditions": [{"type": "a"}]}
    obj = template(gvk, old, {"type": "LoadBalancer"})
    result = native.aggregate_status(obj, [*balanced(*clusters), *items(None)])
    assert result["status"] == {"loadBalancer": {"ingress": merged}}
    assert native.aggregate_status(result, balanced(*clusters[::-1])) is result


def test_the_mode_of_an_address_counts_for_services_only(native: Any) -> None:
    entries = [IP, {**IP, "ipMode": "VIP"}, {**IP, "ipMode": "Proxy"}]
    service = native.aggregate_status(template(kinds.SERVICE, {}, {"type": "LoadBalancer"}), balanced(entries))
    assert service["status"]["loadBalancer"]["ingress"] == [{**IP, "ipMode": "Proxy"}, {**IP, "ipMode": "VIP"}, IP]
    ingress = native.aggregate_status(template(kinds.INGRESS), balanced(entries))
    assert ingress["status"]["loadBalancer"]["ingress"] == [IP]


def test_a_service_that_is_not_balanced_is_left_alone(native: Any) -> None:
    for spec in ({}, {"type": "ClusterIP"}):
        service = template(kinds.SERVICE, {"loadBalancer": {}}, spec)
        assert native.aggregate_status(service, balanced([IP])) is service


@pytest.mark.parametrize("gvk", [kinds.SERVICE, kinds.INGRESS], ids=str)
def test_no_addresses_are_an_empty_balancer(native: Any, gvk: GVK) -> None:
    obj = template(gvk, {"loadBalancer": {"ingress": [IP]}}, {"type": "LoadBalancer"})
    result = native.aggregate_status(obj, [])
    assert result["status"] == {"loadBalancer": {}}
    assert native.aggregate_status(result, balanced([])) is result


# --- phases


def phase(name: str | None) -> Obj | None:
    return None if name is None else {"phase": name}


@cases(
    (kinds.CLAIM, ["Bound", "Pending"], "Pending"),
    (kinds.CLAIM, ["Pending", "Bound"], "Pending"),
    (kinds.CLAIM, ["Lost", "Bound"], "Lost"),
    (kinds.CLAIM, ["Lost", "Pending"], "Lost"),
    (kinds.CLAIM, ["Pending", "Other", "Bound"], "Other"),
    (kinds.CLAIM, ["Bound", None], "Bound"),
    (kinds.CLAIM, [], "Bound"),
    (kinds.POD, ["Running", None], "Pending"),
    (kinds.POD, ["Succeeded", "Running"], "Running"),
    (kinds.POD, ["Failed", "Pending"], "Failed"),
    (kinds.POD, ["Succeeded", "Succeeded"], "Succeeded"),
    (kinds.POD, ["Unknown"], None),
    (kinds.VOLUME, ["Bound", "Failed", "Pending"], "Failed"),
    (kinds.VOLUME, ["Bound", None], "Pending"),
    (kinds.VOLUME, ["Released", "Bound", "Available"], "Available"),
    (kinds.VOLUME, ["Released", "Bound"], "Bound"),
    (kinds.VOLUME, ["Released"], "Released"),
    (kinds.VOLUME, [], None),
)
def test_the_phase_that_matters_most_is_reported(
    gvk: GVK, phases: list[str | None], refusal: str | None, native: Any
) -> None:
    result = native.aggregate_status(template(gvk, {"phase": "Old", "message": "x"}), items(*map(phase, phases)))
    assert result["status"] == ({} if refusal is None else {"phase": refusal})


def test_a_pod_without_clusters_is_left_alone(native: Any) -> None:
    pod = template(kinds.POD, {"phase": "Running"})
    assert native.aggregate_status(pod, []) is pod


def test_the_containers_of_pods_are_reported_without_their_names(native: Any) -> None:
    running = {"running": {"startedAt": EARLY}}
    one = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "containerStatuses": [
            {"name": "a", "ready": True, "state": running, "image": "i", "imageID": "x", "restartCount": 3},
            {"name": "b", "ready": False, "state": {}},
        ],
    }
    two = {"phase": "Pending", "initContainerStatuses": [{"name": "c", "ready": True}]}
    blank = {"name": "", "lastState": {}, "restartCount": 0, "image": "", "imageID": ""}
    result = native.aggregate_status(template(kinds.POD), items(one, two))
    assert result["status"] == {
        "phase": "Pending",
        "containerStatuses": [{**blank, "ready": True, "state": running}, {**blank, "ready": False, "state": {}}],
        "initContainerStatuses": [{**blank, "ready": True, "state": {}}],
    }
    assert native.aggregate_status(result, items(one, two)) is result


# --- the rest


def test_the_jobs_of_cron_jobs_are_gathered(native: Any) -> None:
    one = {"active": [{"name": "b"}], "lastScheduleTime": LATE, "lastSuccessfulTime": EARLY}
    two = {"active": [{"name": "a"}], "lastScheduleTime": EARLY}
    cron_job = native.aggregate_status(template(kinds.CRON_JOB, {"active": [{"name": "old"}]}), items(one, None, two))
    assert cron_job["status"] == {
        "active": [{"name": "b"}, {"name": "a"}], "lastScheduleTime": LATE, "lastSuccessfulTime": EARLY,
    }  # fmt: skip
    assert native.aggregate_status(cron_job, [])["status"] == {}


def test_disruption_budgets_are_added_up(native: Any) -> None:
    one = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 3, "expectedPods": 4}
    budget = template(kinds.DISRUPTION_BUDGET, {"conditions": [{"type": "a"}], "observedGeneration": 2})
    two = {**one, "disruptedPods": {"p": EARLY, "q": LATE}}
    assert native.aggregate_status(budget, items(one, None, two))["status"] == {
        "disruptionsAllowed": 2, "currentHealthy": 4, "desiredHealthy": 6, "expectedPods": 8,
        "disruptedPods": {"m3/p": EARLY, "m3/q": LATE},
    }  # fmt: skip


def test_autoscalers_are_added_up(native: Any) -> None:
    scaler = template(kinds.AUTOSCALER, {"currentMetrics": [{}], "lastScaleTime": EARLY})
    one = {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": None}
    result = native.aggregate_status(scaler, items(one, None, one))
    assert result["status"] == {"currentReplicas": 2, "desiredReplicas": 4}
    stored = {**result, "status": {**result["status"], "currentMetrics": None}}
    assert native.aggregate_status(stored, items(one, one)) is stored


SAMPLES: dict[GVK, Obj] = {
    **{gvk: seen(2, **{counter.field: 1 for counter in counters}) for gvk, counters in COUNTERS.items()},
    kinds.JOB: ended("Complete", "SuccessCriteriaMet", startTime=EARLY, completionTime=LATE, succeeded=1),
    kinds.CRON_JOB: {"active": [{"name": "a", "namespace": "b"}], "lastScheduleTime": LATE},
    kinds.SERVICE: {"loadBalancer": {"ingress": [ports(IP, port(80))]}},
    kinds.INGRESS: {"loadBalancer": {"ingress": [ports(NAME, port(80, error="x"))]}},
    kinds.POD: {"phase": "Running", "containerStatuses": [{"ready": True, "state": {"running": {"startedAt": EARLY}}}]},
    kinds.VOLUME: {"phase": "Bound"},
    kinds.CLAIM: {"phase": "Bound"},
    kinds.DISRUPTION_BUDGET: {"currentHealthy": 1, "disruptedPods": {"p": EARLY}},
    kinds.AUTOSCALER: {"currentReplicas": 1, "desiredReplicas": 2},
}


def test_every_kind_has_a_sample() -> None:
    assert set(SAMPLES) == {*AGGREGATORS, kinds.JOB}


@pytest.mark.parametrize("gvk", SAMPLES, ids=str)
def test_a_status_is_made_in_the_form_in_which_servers_store_it(native: Any, gvk: GVK) -> None:
    """Else it would look changed every time it is compared, and be written again for ever."""
    for statuses in ([SAMPLES[gvk]], [SAMPLES[gvk]] * 2, [], [None]):
        result = native.aggregate_status(template(gvk, {}, {"type": "LoadBalancer"}), items(*statuses))
        stored = copy_json(result)
        node = Definitions.load().node_for(gvk)
        assert node is not None
        stored.pop("spec")
        assert normalize(node, stored) == []
        assert {field: value for field, value in stored["status"].items() if value is not None} == result["status"]
        assert (
            native.aggregate_status({**result, "status": stored["status"]}, items(*statuses))["status"]
            == stored["status"]
        )
