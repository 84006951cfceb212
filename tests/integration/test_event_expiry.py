"""What goes by itself after its time, on a clock that the test moves: Events and finished Jobs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import EVENTS, JOBS
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.callers import server_with_clock
from tests.support.eventually import eventually
from tests.support.wire import Http

PATH = "/api/v1/namespaces/default/events"


@pytest.fixture
async def moved(certificates: Path) -> AsyncIterator[tuple[ApiServer, FakeClock]]:
    async with server_with_clock(certificates) as pair:
        yield pair


def event(name: str) -> Obj:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": about,
        "reason": "R",
        "type": "Normal",
    }


def names(server: ApiServer) -> set[str]:
    return {e["metadata"]["name"] for e in server.cache.list(EVENTS.group_resource, "default")}


async def test_an_event_goes_an_hour_after_it_was_last_written(moved: tuple[ApiServer, FakeClock]) -> None:
    server, clock = moved
    client = server.client(user_agent="tests")
    for name in ("old", "counted", "touched"):
        await client.create(EVENTS, {"apiVersion": "v1", "kind": "Event", **event(name)})
    await clock.advance(minutes=40)
    await client.patch(EVENTS, "counted", "default", {"count": 2, "lastTimestamp": rfc3339(clock.now())})
    await client.patch(EVENTS, "touched", "default", {"message": "changed without any time in it"})
    await clock.advance(minutes=18)
    assert names(server) == {"old", "counted", "touched"}
    await clock.advance(minutes=4)
    await eventually(lambda: names(server) == {"counted", "touched"}, show=lambda: names(server))
    await clock.advance(minutes=36)
    assert names(server) == {"counted", "touched"}
    await clock.advance(minutes=4)
    await eventually(lambda: names(server) == set())


async def test_a_watch_sees_the_deletion_of_an_expired_event(moved: tuple[ApiServer, FakeClock]) -> None:
    server, clock = moved
    http = Http(server)
    assert (await http("POST", PATH, event("old"))).code == 201
    async with http.stream(f"{PATH}?watch=true") as response:
        assert json.loads(await response.content.readline())["type"] == "ADDED"
        await clock.advance(minutes=62)
        assert json.loads(await response.content.readline())["type"] == "DELETED"
    await http.close()


async def test_more_events_than_a_page_go_in_one_sweep(moved: tuple[ApiServer, FakeClock]) -> None:
    server, clock = moved
    client = server.client(user_agent="tests")
    for number in range(450):
        await client.create(EVENTS, {"apiVersion": "v1", "kind": "Event", **event(f"e{number}")})
    await clock.advance(minutes=62)
    await eventually(lambda: names(server) == set())


async def job(client: Client, name: str, clock: FakeClock, *, ttl: int | None, condition: str = "Complete") -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    spec: Obj = {"template": template}
    if ttl is not None:
        spec["ttlSecondsAfterFinished"] = ttl
    meta = {"name": name, "namespace": "default"}
    await client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})
    if condition:
        now = rfc3339(clock.now())
        first = "SuccessCriteriaMet" if condition == "Complete" else "FailureTarget"
        conditions = [{"type": t, "status": "True", "lastTransitionTime": now} for t in (first, condition)]
        status: Obj = {"startTime": now, "conditions": conditions}
        if condition == "Complete":
            status |= {"completionTime": now, "succeeded": 1}
        await client.patch(JOBS, name, "default", {"status": status}, subresource="status")


def jobs(server: ApiServer) -> set[str]:
    return {j["metadata"]["name"] for j in server.cache.list(JOBS.group_resource, "default")}


async def test_finished_jobs_go_after_their_time_to_live(moved: tuple[ApiServer, FakeClock]) -> None:
    server, clock = moved
    client = server.client(user_agent="tests")
    await job(client, "done", clock, ttl=60)
    await job(client, "failed", clock, ttl=60, condition="Failed")
    await job(client, "at-once", clock, ttl=0)
    await job(client, "running", clock, ttl=60, condition="")
    await job(client, "kept", clock, ttl=None)
    await eventually(lambda: "at-once" not in jobs(server))
    await clock.advance(55)
    assert jobs(server) == {"done", "failed", "running", "kept"}
    await clock.advance(10)
    await eventually(lambda: jobs(server) == {"running", "kept"}, show=lambda: jobs(server))


async def test_a_time_to_live_can_be_prolonged(moved: tuple[ApiServer, FakeClock]) -> None:
    server, clock = moved
    client = server.client(user_agent="tests")
    await job(client, "done", clock, ttl=60)
    await clock.advance(30)
    await client.patch(JOBS, "done", "default", {"spec": {"ttlSecondsAfterFinished": 300}})
    await clock.advance(60)
    assert jobs(server) == {"done"}
    await clock.advance(300)
    await eventually(lambda: jobs(server) == set())
