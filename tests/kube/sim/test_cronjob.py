from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import CRONJOBS, JOBS
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.cronjob import SCHEDULED, CronJobs
from tests.kube.sim.harness import Harness, running
from tests.support.eventually import eventually

START = "2026-01-01T00:00:30Z"
TEMPLATE: Obj = {
    "metadata": {"labels": {"app": "tick"}, "annotations": {"note": "x"}},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}},
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Harness]:
    clock = FakeClock(parse_time(START))
    async with running(tmp_path, lambda context: [CronJobs(context)], clock=clock) as harness:
        yield harness


class Cron:
    def __init__(self, cluster: Harness) -> None:
        self.cluster = cluster

    async def create(self, **spec: Any) -> Obj:
        meta = {"name": "tick", "namespace": "default"}
        body = {"schedule": "*/5 * * * *", "jobTemplate": TEMPLATE, **spec}
        return await self.cluster.client.create(
            CRONJOBS, {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": body}
        )

    @property
    def status(self) -> Obj:
        found = self.cluster.context.informers.of(CRONJOBS).get(Key("default", "tick")) or {}
        return found.get("status") or {}

    @property
    def active(self) -> list[str]:
        return [reference["name"] for reference in self.status.get("active") or ()]

    @property
    def jobs(self) -> list[Obj]:
        return sorted(self.cluster.context.informers.of(JOBS).list("default"), key=lambda job: job["metadata"]["name"])

    async def to(self, moment: str) -> None:
        await self.cluster.clock.advance(parse_time(moment) - self.cluster.clock.now())

    async def until(self, condition: Any) -> None:
        await eventually(condition, show=lambda: (self.status, [job["metadata"]["name"] for job in self.jobs]))

    async def finish(self, job: Obj, kind: str = "Complete") -> None:
        now = rfc3339(self.cluster.clock.now())
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}]
        if kind == "Complete":
            conditions.insert(0, {**conditions[0], "type": "SuccessCriteriaMet"})
        status: Obj = {"startTime": job["metadata"]["creationTimestamp"], "conditions": conditions}
        status |= {"completionTime": now} if kind == "Complete" else {}
        await self.cluster.client.patch(
            JOBS, job["metadata"]["name"], "default", {"status": status}, subresource="status"
        )

    async def emitted(self, reason: str) -> list[tuple[str, str]]:
        async def recorded() -> list[tuple[str, str]]:
            return [(kind, message) for kind, why, message in await self.cluster.events("tick") if why == reason]

        found: list[tuple[str, str]] = await eventually(recorded)
        return found


@pytest.fixture
def cron(cluster: Harness) -> Cron:
    return Cron(cluster)


def name_at(moment: str) -> str:
    return f"tick-{int(parse_time(moment)) // 60}"


async def test_a_job_starts_at_every_time_of_the_schedule(cron: Cron) -> None:
    made = await cron.create()
    await cron.to("2026-01-01T00:04:59Z")
    assert cron.jobs == []
    await cron.to("2026-01-01T00:05:00Z")
    await cron.until(lambda: cron.active)
    [job] = cron.jobs
    meta = job["metadata"]
    assert meta["name"] == name_at("2026-01-01T00:05:00Z")
    assert meta["annotations"] == {"note": "x", SCHEDULED: "2026-01-01T00:05:00Z"}
    assert meta["labels"]["app"] == "tick"
    [owner] = meta["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("CronJob", made["metadata"]["uid"], True)
    [reference] = cron.status["active"]
    assert {key: reference[key] for key in ("kind", "apiVersion", "name", "namespace", "uid")} == {
        "kind": "Job", "apiVersion": "batch/v1", "name": meta["name"], "namespace": "default", "uid": meta["uid"],
    }  # fmt: skip
    assert reference["resourceVersion"]
    assert cron.status["lastScheduleTime"] == "2026-01-01T00:05:00Z"
    assert await cron.emitted("SuccessfulCreate") == [("Normal", f"Created job {meta['name']}")]
    await cron.to("2026-01-01T00:10:00Z")
    await cron.until(lambda: len(cron.active) == 2)


async def test_a_finished_job_leaves_the_active_list(cron: Cron) -> None:
    await cron.create()
    await cron.to("2026-01-01T00:05:00Z")
    await cron.until(lambda: cron.active)
    await cron.to("2026-01-01T00:06:00Z")
    [job] = cron.jobs
    await cron.finish(job)
    await cron.until(lambda: not cron.active)
    assert "active" not in cron.status
    assert cron.status["lastSuccessfulTime"] == "2026-01-01T00:06:00Z"
    emitted = f"Saw completed job: {job['metadata']['name']}, condition: Complete"
    assert await cron.emitted("SawCompletedJob") == [("Normal", emitted)]


async def test_forbid_waits_for_the_running_job(cron: Cron) -> None:
    await cron.create(concurrencyPolicy="Forbid")
    await cron.to("2026-01-01T00:05:00Z")
    await cron.until(lambda: cron.active)
    await cron.to("2026-01-01T00:10:00Z")
    message = "Not starting job because prior execution is running and concurrency policy is Forbid"
    assert await cron.emitted("JobAlreadyActive") == [("Normal", message)]
    assert len(cron.jobs) == 1
    await cron.to("2026-01-01T00:12:00Z")
    await cron.finish(cron.jobs[0])
    await cron.until(lambda: cron.active == [name_at("2026-01-01T00:10:00Z")])


async def test_replace_deletes_the_running_job(cron: Cron) -> None:
    await cron.create(concurrencyPolicy="Replace")
    await cron.to("2026-01-01T00:05:00Z")
    await cron.until(lambda: cron.active)
    await cron.to("2026-01-01T00:10:00Z")
    await cron.until(lambda: cron.active == [name_at("2026-01-01T00:10:00Z")])
    await eventually(lambda: len(cron.jobs) == 1)
    assert await cron.emitted("SuccessfulDelete") == [("Normal", f"Deleted job {name_at('2026-01-01T00:05:00Z')}")]


async def test_the_oldest_finished_jobs_go_beyond_the_limits(cron: Cron) -> None:
    await cron.create(schedule="* * * * *", successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for minute, kind in enumerate(("Complete", "Failed", "Complete", "Complete", "Failed"), start=1):
        await cron.to(f"2026-01-01T00:{minute:02d}:00Z")
        name = name_at(f"2026-01-01T00:{minute:02d}:00Z")
        await cron.until(lambda name=name: name in cron.active)
        [job] = [job for job in cron.jobs if job["metadata"]["name"] == name]
        await cron.finish(job, kind)
        await cron.until(lambda: not cron.active)
    kept = [name_at(f"2026-01-01T00:{minute:02d}:00Z") for minute in (3, 4, 5)]
    await eventually(lambda: [job["metadata"]["name"] for job in cron.jobs] == kept)


async def test_a_suspended_cronjob_starts_nothing_and_catches_up_with_the_latest_time(
    cluster: Harness, cron: Cron
) -> None:
    await cron.create(suspend=True)
    await cron.to("2026-01-01T01:02:00Z")
    assert cron.jobs == []
    await cluster.client.patch(CRONJOBS, "tick", "default", {"spec": {"suspend": False}})
    await cron.until(lambda: cron.active == [name_at("2026-01-01T01:00:00Z")])
    assert len(cron.jobs) == 1


async def test_a_time_is_missed_after_its_deadline(cluster: Harness, cron: Cron) -> None:
    await cron.create(suspend=True, startingDeadlineSeconds=60)
    await cron.to("2026-01-01T00:07:00Z")
    await cluster.client.patch(CRONJOBS, "tick", "default", {"spec": {"suspend": False}})
    await cron.to("2026-01-01T00:09:59Z")
    assert cron.jobs == []
    await cron.to("2026-01-01T00:10:00Z")
    await cron.until(lambda: cron.active == [name_at("2026-01-01T00:10:00Z")])


async def test_too_many_missed_times_are_reported_and_the_latest_is_started(cluster: Harness, cron: Cron) -> None:
    await cron.create(schedule="* * * * *", suspend=True)
    await cron.to("2026-01-01T03:00:00Z")
    await cluster.client.patch(CRONJOBS, "tick", "default", {"spec": {"suspend": False}})
    await cron.until(lambda: cron.active == [name_at("2026-01-01T03:00:00Z")])
    message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    assert await cron.emitted("TooManyMissedTimes") == [("Warning", message)]


async def test_the_schedule_is_read_in_its_time_zone(cron: Cron) -> None:
    await cron.create(schedule="30 9 * * *", timeZone="Asia/Tokyo")
    await cron.to("2026-01-01T00:29:59Z")
    assert cron.jobs == []
    await cron.to("2026-01-01T00:30:00Z")
    await cron.until(lambda: cron.active)
    assert cron.jobs[0]["metadata"]["annotations"][SCHEDULED] == "2026-01-01T09:30:00+09:00"


async def test_a_job_that_vanished_is_no_longer_active(cluster: Harness, cron: Cron) -> None:
    await cron.create()
    await cron.to("2026-01-01T00:05:00Z")
    await cron.until(lambda: cron.active)
    [name] = cron.active
    await cluster.client.delete(JOBS, name, "default", propagation="Background")
    await cron.until(lambda: not cron.active)
    assert await cron.emitted("MissingJob") == [("Normal", f"Active job went missing: {name}")]


async def test_the_job_of_a_time_is_made_once_even_when_its_status_was_lost(cluster: Harness, cron: Cron) -> None:
    await cron.create()
    await cron.to("2026-01-01T00:05:00Z")
    await cron.until(lambda: cron.active)
    await cluster.client.patch(
        CRONJOBS, "tick", "default", {"status": {"active": None, "lastScheduleTime": None}}, subresource="status"
    )
    await cluster.client.patch(CRONJOBS, "tick", "default", {"spec": {"successfulJobsHistoryLimit": 7}})
    await cron.until(lambda: cron.active and cron.status.get("lastScheduleTime"))
    assert len(cron.jobs) == 1
    assert cron.status["lastScheduleTime"] == "2026-01-01T00:05:00Z"


async def test_nothing_starts_for_a_cronjob_that_is_deleted(cluster: Harness, cron: Cron) -> None:
    await cron.create()
    await cluster.client.delete(CRONJOBS, "tick", "default")
    await cron.to("2026-01-01T00:05:00Z")
    assert cron.jobs == []
