from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import JOBS, PODS
from karmada.kube.objects.meta import get_condition, is_deleting
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.job import Jobs
from karmada.kube.sim.controllers.job_indexes import INDEX, format_indexes, parse_indexes
from karmada.kube.sim.controllers.job_rules import FAILURES, TRACKING, early_success, pause_after, reaction_to
from karmada.kube.sim.controllers.job_tally import MAX_UNCOUNTED, tally, wanted_active
from karmada.kube.sim.profile import INSTANT, Profile
from tests.kube.sim.harness import Harness, running
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.objects import kube_object

TEMPLATE: Obj = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Harness]:
    async with running(tmp_path, lambda context: [Jobs(context)]) as harness:
        yield harness


class Work:
    """A Job under test and its pods."""

    def __init__(self, cluster: Harness) -> None:
        self.cluster = cluster

    async def create(self, **spec: Any) -> Obj:
        job = kube_object("batch/v1", "Job", "j", "default")
        self.made = await self.cluster.client.create(JOBS, {**job, "spec": {"template": TEMPLATE, **spec}})
        return self.made

    async def patch(self, **spec: Any) -> Obj:
        return await self.cluster.client.patch(JOBS, "j", "default", {"spec": spec})

    @property
    def job(self) -> Obj:
        return self.cluster.context.informers.of(JOBS).get(Key("default", "j")) or {}

    @property
    def status(self) -> Obj:
        return self.job.get("status") or {}

    def condition(self, kind: str) -> tuple[str, str, str] | None:
        found = get_condition(self.status.get("conditions"), kind)
        return (found["status"], found["reason"], found["message"]) if found else None

    @property
    def pods(self) -> list[Obj]:
        pods = self.cluster.context.informers.of(PODS).list("default")
        return sorted(pods, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    @property
    def live(self) -> list[Obj]:
        return [p for p in self.pods if not is_deleting(p) and p["status"]["phase"] in ("Pending", "Running")]

    async def pods_live(self, number: int) -> list[Obj]:
        await eventually(lambda: len(self.live) == number, show=lambda: (self.status, len(self.live)))
        return self.live

    async def end(self, pod: Obj, *, code: int = 0, conditions: list[Obj] | None = None) -> None:
        at = rfc3339(self.cluster.clock.now())
        terminated = {"exitCode": code, "finishedAt": at, "startedAt": at, "reason": "Error" if code else "Completed"}
        container = {"name": "c", "image": "busybox", "imageID": "", "ready": False, "restartCount": 0}
        status: Obj = {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [{**container, "state": {"terminated": terminated}}],
        }
        await self.cluster.set_pod_status(pod, {**status, "conditions": conditions} if conditions else status)

    async def gone(self, *pods: Obj) -> None:
        """What a kubelet does at last for pods that are being deleted."""
        for pod in pods:
            await self.cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_period=0)

    async def until(self, condition: Any) -> None:
        await eventually(condition, show=lambda: self.status)

    async def emitted(self, reason: str) -> list[tuple[str, str, str]]:
        """All events, as soon as there is one with this reason."""
        events: list[tuple[str, str, str]] = []

        async def recorded() -> bool:
            events[:] = await self.cluster.events("j")
            return any(event[1] == reason for event in events)

        await eventually(recorded, show=lambda: events)
        return events


@pytest.fixture
def work(cluster: Harness) -> Work:
    return Work(cluster)


# --- success


async def test_a_job_runs_one_pod_to_its_end_and_completes(cluster: Harness, work: Work) -> None:
    await work.create()
    [pod] = await work.pods_live(1)
    meta = pod["metadata"]
    assert meta["generateName"] == "j-"
    assert meta["finalizers"] == [TRACKING]
    assert meta["ownerReferences"][0]["controller"] is True
    assert meta["labels"]["batch.kubernetes.io/job-name"] == "j"
    await work.until(lambda: work.status.get("active") == 1)
    assert work.status["startTime"] == rfc3339(cluster.clock.now())
    assert work.status["ready"] == 0
    await cluster.make_ready(pod)
    await work.until(lambda: work.status.get("ready") == 1)
    await cluster.clock.advance(5)
    await work.end(pod)
    await work.until(lambda: work.condition("Complete"))
    reached = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
    assert work.condition("SuccessCriteriaMet") == work.condition("Complete") == reached
    assert work.status["succeeded"] == 1
    assert "active" not in work.status
    assert "failed" not in work.status
    assert work.status["uncountedTerminatedPods"] == {}
    assert work.status["completionTime"] == rfc3339(cluster.clock.now())
    await eventually(lambda: "finalizers" not in work.pods[0]["metadata"])
    name = meta["name"]
    assert await work.emitted("Completed") == [
        ("Normal", "SuccessfulCreate", f"Created pod: {name}"),
        ("Normal", "Completed", "Job completed"),
    ]


async def test_the_end_of_a_pod_is_noted_before_its_finalizer_goes_and_counted_after(
    cluster: Harness, work: Work
) -> None:
    seen: list[tuple[Any, ...]] = []

    def note(_old: Obj | None, new: Obj | None) -> None:
        status = (new or {}).get("status") or {}
        kinds = tuple(c["type"] for c in status.get("conditions") or ())
        seen.append((status.get("uncountedTerminatedPods"), status.get("succeeded", 0), kinds))

    cluster.context.informers.of(JOBS).add_handler(note)
    await work.create()
    [pod] = await work.pods_live(1)
    await work.end(pod)
    await work.until(lambda: work.condition("Complete"))
    uid = pod["metadata"]["uid"]
    assert ({"succeeded": [uid]}, 0, ("SuccessCriteriaMet",)) in seen
    assert seen[-1] == ({}, 1, ("SuccessCriteriaMet", "Complete"))


async def test_no_more_pods_run_than_parallelism_and_remaining_completions_allow(work: Work) -> None:
    await work.create(completions=5, parallelism=2)
    for left in (5, 4, 3, 2):
        live = await work.pods_live(min(2, left))
        await work.until(lambda: work.status.get("active") == 2)
        await work.end(live[0])
        await work.until(lambda left=left: work.status.get("succeeded") == 6 - left)
    [last] = await work.pods_live(1)
    await work.end(last)
    await work.until(lambda: work.condition("Complete"))
    assert work.status["succeeded"] == 5
    assert len(work.pods) == 5


async def test_without_completions_one_success_ends_the_making_of_pods(work: Work) -> None:
    await work.create(parallelism=3)
    first, second, third = await work.pods_live(3)
    await work.end(first)
    await work.until(lambda: work.status.get("succeeded") == 1)
    await work.end(second, code=1)
    await work.until(lambda: work.status.get("failed") == 1)
    assert work.status["active"] == 1
    await work.end(third)
    await work.until(lambda: work.condition("Complete"))
    assert len(work.pods) == 3


async def test_less_parallelism_removes_pods_without_counting_them(cluster: Harness, work: Work) -> None:
    await work.create(completions=5, parallelism=3)
    ready, *_ = await work.pods_live(3)
    await cluster.make_ready(ready)
    await work.until(lambda: work.status.get("ready") == 1)
    await work.patch(parallelism=1)
    [left] = await work.pods_live(1)
    assert left["metadata"]["uid"] == ready["metadata"]["uid"]
    await work.until(lambda: work.status.get("active") == 1)
    assert "failed" not in work.status


# --- failure


async def test_a_failed_pod_is_replaced_after_a_pause_that_doubles(cluster: Harness, work: Work) -> None:
    await work.create(backoffLimit=3)
    for number, pause in enumerate((10, 20, 40), start=1):
        [pod] = await work.pods_live(1)
        await work.end(pod, code=1)
        await work.until(lambda number=number: work.status.get("failed") == number)
        await cluster.clock.advance(pause - 1)
        assert not work.live
        await cluster.clock.advance(1)
    [pod] = await work.pods_live(1)
    await work.end(pod, code=1)
    await work.until(lambda: work.condition("Failed"))
    why = ("True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert work.condition("FailureTarget") == work.condition("Failed") == why
    assert work.status["failed"] == 4
    assert "completionTime" not in work.status
    assert ("Warning", *why[1:]) in await work.emitted("BackoffLimitExceeded")


async def test_too_many_restarts_in_place_fail_the_job(cluster: Harness, work: Work) -> None:
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "OnFailure"}}
    await work.create(backoffLimit=2, template=template)
    [pod] = await work.pods_live(1)
    container = {"name": "c", "image": "busybox", "imageID": "", "ready": False}
    for count in (1, 2):
        assert work.condition("FailureTarget") is None
        status = {"phase": "Running", "containerStatuses": [{**container, "restartCount": count}]}
        await cluster.set_pod_status(pod, status)
    await work.until(lambda: work.condition("FailureTarget"))
    await eventually(lambda: is_deleting(work.pods[0]) if work.pods else True)


async def test_a_deadline_ends_the_job_and_its_pods(cluster: Harness, work: Work) -> None:
    await work.create(activeDeadlineSeconds=60, parallelism=2, completions=2)
    pods = await work.pods_live(2)
    for pod in pods:
        bind = {"apiVersion": "v1", "kind": "Binding", "target": {"name": "n"}}
        await cluster.client.create_subresource(PODS, pod["metadata"]["name"], "default", "binding", bind)
    await work.until(lambda: work.status.get("active") == 2)
    await cluster.clock.advance(59)
    assert len(work.live) == 2
    await cluster.clock.advance(1)
    await work.until(lambda: work.condition("FailureTarget"))
    await work.until(lambda: work.status.get("failed") == 2)
    assert work.status["terminating"] == 2
    assert work.condition("Failed") is None
    await work.gone(*pods)
    await work.until(lambda: work.condition("Failed"))
    assert work.condition("Failed") == (
        "True", "DeadlineExceeded", "Job was active longer than specified deadline",
    )  # fmt: skip
    assert work.status["terminating"] == 0


async def test_a_refused_pod_is_reported_and_retried(cluster: Harness, work: Work) -> None:
    template = {"spec": {**TEMPLATE["spec"], "serviceAccountName": "nobody"}}
    await work.create(template=template)
    await work.until(lambda: work.status.get("startTime"))
    emitted = [event for event in await work.emitted("FailedCreate") if event[1] == "FailedCreate"]
    assert emitted[0][0] == "Warning"
    assert emitted[0][2].startswith("Error creating: pods ")
    account = kube_object("v1", "ServiceAccount", "nobody", "default")
    await cluster.client.create(GVR("", "v1", "serviceaccounts"), account)
    await cluster.clock.advance(30)
    await work.pods_live(1)


# --- policies


def _pod(code: int, *, conditions: list[Obj] | None = None) -> Obj:
    state = {"terminated": {"exitCode": code}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "c", "state": state}], "conditions": conditions or []}
    return {"metadata": {"name": "p", "namespace": "ns"}, "status": status}


@cases(
    (
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        _pod(42),
        ("FailJob", "Container c for pod ns/p failed with exit code 42 matching FailJob rule at index 0"),
    ),
    ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}, _pod(1), ("Count", "")),
    (
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42], "containerName": "other"}},
        _pod(42),
        ("Count", ""),
    ),
    (
        {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}},
        _pod(2),
        ("FailIndex", "Container c for pod ns/p failed with exit code 2 matching FailIndex rule at index 0"),
    ),
    ({"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}}, _pod(0), ("Count", "")),
    (
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        _pod(1, conditions=[{"type": "DisruptionTarget", "status": "True"}]),
        ("Ignore", "Pod ns/p has condition DisruptionTarget matching Ignore rule at index 0"),
    ),
)
def test_the_first_matching_rule_says_what_a_failure_means(rule: Obj, pod: Obj, expected: tuple[str, str]) -> None:
    assert reaction_to({"spec": {"podFailurePolicy": {"rules": [rule]}}}, pod) == expected


async def test_a_pod_failure_policy_ends_the_job_at_once(work: Work) -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    await work.create(podFailurePolicy={"rules": rules})
    [pod] = await work.pods_live(1)
    await work.end(pod, code=42)
    await work.until(lambda: work.condition("Failed"))
    name = pod["metadata"]["name"]
    message = f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    assert work.condition("Failed") == ("True", "PodFailurePolicy", message)
    assert work.status["failed"] == 1


async def test_an_ignored_failure_is_not_counted_but_replaced(cluster: Harness, work: Work) -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    await work.create(backoffLimit=0, podFailurePolicy={"rules": rules})
    [pod] = await work.pods_live(1)
    await work.end(pod, code=1, conditions=[{"type": "DisruptionTarget", "status": "True"}])
    await eventually(lambda: "finalizers" not in work.pods[-1]["metadata"])
    await cluster.clock.advance(10)
    await work.pods_live(1)
    assert "failed" not in work.status


async def test_a_terminating_pod_is_replaced_at_once_or_only_when_it_has_failed(cluster: Harness, work: Work) -> None:
    await work.create(podReplacementPolicy="Failed")
    [pod] = await work.pods_live(1)
    await cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_period=30)
    await work.until(lambda: work.status.get("terminating") == 1)
    assert "failed" not in work.status
    await cluster.clock.advance(60)
    assert not work.live
    await work.end(pod, code=143)
    await work.until(lambda: work.status.get("failed") == 1)
    await cluster.clock.advance(10)
    await work.pods_live(1)


# --- indexes


async def test_an_indexed_job_runs_every_index_once(cluster: Harness, work: Work) -> None:
    await work.create(completionMode="Indexed", completions=4, parallelism=3)
    pods = {int(pod["metadata"]["labels"][INDEX]): pod for pod in await work.pods_live(3)}
    assert sorted(pods) == [0, 1, 2]
    pod = pods[1]
    assert pod["metadata"]["generateName"] == "j-1-"
    assert pod["metadata"]["annotations"][INDEX] == "1"
    assert pod["spec"]["hostname"] == "j-1"
    [variable] = pod["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
    await work.end(pods[2])
    await work.until(lambda: work.status.get("completedIndexes") == "2")
    await work.end(pods[0], code=1)
    await work.until(lambda: work.status.get("failed") == 1)
    await cluster.clock.advance(10)
    live = {int(pod["metadata"]["labels"][INDEX]): pod for pod in await work.pods_live(3)}
    assert sorted(live) == [0, 1, 3]
    for index in (0, 1, 3):
        await work.end(live[index])
    await work.until(lambda: work.condition("Complete"))
    assert work.status["completedIndexes"] == "0-3"
    assert work.status["succeeded"] == 4


async def test_failures_are_limited_per_index(cluster: Harness, work: Work) -> None:
    await work.create(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
    bad, good = sorted(await work.pods_live(2), key=lambda pod: pod["metadata"]["labels"][INDEX])
    assert bad["metadata"]["annotations"][FAILURES] == "0"
    await work.end(bad, code=1)
    await work.until(lambda: (work.status.get("uncountedTerminatedPods") or {}).get("failed"))
    await cluster.clock.advance(10)
    again = next(p for p in await work.pods_live(2) if p["metadata"]["labels"][INDEX] == "0")
    assert again["metadata"]["annotations"][FAILURES] == "1"
    await work.until(lambda: work.status.get("failed") == 1)
    await work.end(again, code=1)
    await work.until(lambda: work.status.get("failedIndexes") == "0")
    await work.end(good)
    await work.until(lambda: work.condition("Failed"))
    assert work.condition("Failed") == ("True", "FailedIndexes", "Job has failed indexes")
    assert (work.status["failed"], work.status["succeeded"]) == (2, 1)
    assert work.status["completedIndexes"] == "1"


async def test_too_many_failed_indexes_end_the_job(work: Work) -> None:
    await work.create(
        completionMode="Indexed", completions=3, parallelism=2, backoffLimitPerIndex=0, maxFailedIndexes=1
    )
    for pod in await work.pods_live(2):
        await work.end(pod, code=1)
    await work.until(lambda: work.condition("FailureTarget"))
    message = "Job has exceeded the specified maximal number of failed indexes"
    assert work.condition("FailureTarget") == ("True", "MaxFailedIndexesExceeded", message)


async def test_a_success_policy_ends_an_indexed_job_early(work: Work) -> None:
    await work.create(
        completionMode="Indexed", completions=3, parallelism=3, successPolicy={"rules": [{"succeededIndexes": "0"}]}
    )
    leader, *others = sorted(await work.pods_live(3), key=lambda pod: pod["metadata"]["labels"][INDEX])
    await work.end(leader)
    await work.until(lambda: work.condition("SuccessCriteriaMet"))
    await work.until(lambda: work.condition("Complete"))
    assert work.condition("Complete") == ("True", "SuccessPolicy", "Matched rules at index 0")
    assert work.status["succeeded"] == 1
    assert {p["metadata"]["name"] for p in work.pods}.isdisjoint(p["metadata"]["name"] for p in others)


@cases(
    ({"succeededCount": 2}, {0, 4}, True),
    ({"succeededCount": 2}, {4}, False),
    ({"succeededIndexes": "0,2-3"}, {0, 2, 3}, True),
    ({"succeededIndexes": "0,2-3"}, {0, 1, 2}, False),
    ({"succeededIndexes": "0,2-3", "succeededCount": 1}, {3}, True),
    ({"succeededIndexes": "0,2-3", "succeededCount": 1}, {1}, False),
)
def test_a_success_policy_requires_indexes_or_a_number(rule: Obj, completed: set[int], met: bool) -> None:
    job = {"spec": {"completions": 5, "successPolicy": {"rules": [rule]}}}
    assert (early_success(job, completed) is not None) is met


@cases((set(), ""), ({0}, "0"), ({0, 1}, "0,1"), ({0, 1, 2, 4}, "0-2,4"), ({1, 3, 4, 5, 7}, "1,3-5,7"))
def test_indexes_in_a_row_are_written_as_a_range(indexes: set[int], text: str) -> None:
    assert format_indexes(indexes) == text


@given(st.sets(st.integers(0, 50)), st.integers(0, 60))
def test_written_indexes_are_read_back(indexes: set[int], completions: int) -> None:
    assert parse_indexes(format_indexes(indexes), completions) == {i for i in indexes if i < completions}


def test_pauses_double_up_to_ten_minutes() -> None:
    assert [pause_after(n) for n in (0, 1, 2, 3, 6, 7, 100)] == [0, 10, 20, 40, 320, 600, 600]


# --- suspension, owners, deletion


async def test_suspending_removes_the_pods_and_resuming_starts_anew(cluster: Harness, work: Work) -> None:
    await work.create(suspend=True)
    await work.until(lambda: work.condition("Suspended"))
    assert work.condition("Suspended") == ("True", "JobSuspended", "Job suspended")
    assert "startTime" not in work.status
    await cluster.clock.advance(100)
    await work.patch(suspend=False)
    await work.pods_live(1)
    await work.until(lambda: work.status.get("active") == 1)
    assert work.condition("Suspended") == ("False", "JobResumed", "Job resumed")
    assert work.status["startTime"] == rfc3339(cluster.clock.now())
    await work.patch(suspend=True)
    await work.pods_live(0)
    await work.until(lambda: work.condition("Suspended") == ("True", "JobSuspended", "Job suspended"))
    await work.until(lambda: "active" not in work.status)
    assert "failed" not in work.status
    emitted = {event[1:] for event in await work.emitted("Resumed") if event[1] in ("Suspended", "Resumed")}
    assert emitted == {("Suspended", "Job suspended"), ("Resumed", "Job resumed")}


async def test_pods_of_a_deleted_job_are_released(cluster: Harness, work: Work) -> None:
    await work.create(parallelism=2, completions=2)
    await work.pods_live(2)
    await cluster.client.delete(JOBS, "j", "default", propagation="Background")
    await eventually(lambda: not work.pods, show=lambda: work.pods)


async def test_orphaned_pods_lose_their_finalizer_and_stay(cluster: Harness, work: Work) -> None:
    await work.create()
    [pod] = await work.pods_live(1)
    await cluster.make_ready(pod)
    await work.until(lambda: work.status.get("ready") == 1)
    await cluster.client.delete(JOBS, "j", "default", propagation="Orphan")
    await eventually(lambda: not work.job)
    await eventually(lambda: "finalizers" not in work.pods[0]["metadata"], show=lambda: work.pods)
    assert not is_deleting(work.pods[0])


async def test_a_pod_that_no_longer_matches_is_released_without_its_finalizer(cluster: Harness, work: Work) -> None:
    await work.create()
    [pod] = await work.pods_live(1)
    name = pod["metadata"]["name"]
    await cluster.client.patch(PODS, name, "default", {"metadata": {"labels": None}})

    def released() -> bool:
        found = next(pod for pod in work.pods if pod["metadata"]["name"] == name)["metadata"]
        return "ownerReferences" not in found and "finalizers" not in found

    await eventually(released)


async def test_a_foreground_deletion_takes_the_pods_first(cluster: Harness, work: Work) -> None:
    await work.create()
    await work.pods_live(1)
    await cluster.client.delete(JOBS, "j", "default", propagation="Foreground")
    await eventually(lambda: not work.job and not work.pods, show=lambda: (work.job, work.pods))


async def test_a_job_that_another_controller_manages_is_left_alone(cluster: Harness, work: Work) -> None:
    await work.create(managedBy="example.com/other")
    await cluster.clock.advance(1)
    assert not work.pods
    assert work.status == {}


async def test_a_new_controller_takes_over_in_the_middle(tmp_path: Path) -> None:
    """Ends that were noted by one and not yet counted are counted once by the next."""
    clock = FakeClock()
    async with running(tmp_path, lambda _: [], clock=clock) as cluster:
        work = Work(cluster)
        cluster.context.informers.of(JOBS)
        cluster.context.informers.of(PODS)
        job = await work.create(completions=2)
        pod = kube_object(
            "v1",
            "Pod",
            "j-done",
            "default",
            labels=job["spec"]["template"]["metadata"]["labels"],
            finalizers=[TRACKING],
        ) | {"spec": TEMPLATE["spec"]}
        made = await cluster.client.create(PODS, pod)
        await work.end(made)
        status = {"uncountedTerminatedPods": {"succeeded": [made["metadata"]["uid"]]}, "active": 1}
        await cluster.client.patch(JOBS, "j", "default", {"status": status}, subresource="status")
        controller = cluster.manager.add(Jobs(cluster.context))
        for recorder in cluster.context.recorders.values():
            await recorder.start()
        await controller.start()
        try:
            await work.until(lambda: work.status.get("succeeded") == 1)
            [pod] = await work.pods_live(1)
            await work.end(pod)
            await work.until(lambda: work.condition("Complete"))
            assert work.status["succeeded"] == 2
        finally:
            await controller.stop()
            for recorder in cluster.context.recorders.values():
                await recorder.stop()


def test_ends_beyond_what_is_noted_at_a_time_count_all_the_same() -> None:
    job: Obj = {"metadata": {}, "spec": {"completions": 1000, "parallelism": 1000}, "status": {"succeeded": 5}}
    metadata = {"finalizers": [TRACKING]}
    pods = [
        {"metadata": {**metadata, "uid": str(n)}, "status": {"phase": "Succeeded"}} for n in range(MAX_UNCOUNTED + 7)
    ]
    found = tally(job, pods)
    assert len(found.ended) == len(found.uncounted_succeeded) == MAX_UNCOUNTED
    assert found.more
    assert found.succeeded == MAX_UNCOUNTED + 12
    assert wanted_active(job, found) == 1000 - MAX_UNCOUNTED - 12


async def test_on_an_old_cluster_the_index_is_an_annotation_only(tmp_path: Path) -> None:
    profile = Profile("test", latencies=INSTANT, version="1.27")
    async with running(tmp_path, lambda context: [Jobs(context)], profile=profile) as cluster:
        work = Work(cluster)
        await work.create(completionMode="Indexed", completions=1)
        [pod] = await work.pods_live(1)
        assert INDEX not in pod["metadata"]["labels"]
        [variable] = pod["spec"]["containers"][0]["env"]
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.annotations['{INDEX}']"
        await work.end(pod)
        await work.until(lambda: work.condition("Complete"))
        assert work.status["completedIndexes"] == "0"
