from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden, ServiceUnavailable
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder
from tests.support.fake_api import EVENTS, FakeApi

POD: Obj = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "ns", "uid": "u1", "resourceVersion": "7"},
}
NODE: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u2"}}


@pytest.fixture
async def recorder(client: Client, clock: FakeClock) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, "scheduler", clock=clock, host="h1")
    await recorder.start()
    yield recorder
    await recorder.stop()


async def test_an_event_reports_what_happened_to_whom(recorder: EventRecorder, fake: FakeApi) -> None:
    recorder.event(POD, WARNING, "Failed", "no room")
    await recorder.flush()
    (event,) = fake.listed(EVENTS)
    assert event["metadata"]["namespace"] == "ns"
    assert event["metadata"]["name"].startswith("web.")
    assert event["involvedObject"] == {
        "kind": "Pod",
        "namespace": "ns",
        "name": "web",
        "uid": "u1",
        "apiVersion": "v1",
        "resourceVersion": "7",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Failed", "no room")
    assert event["source"] == {"component": "scheduler", "host": "h1"}
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2023-11-14T22:13:20Z"
    assert event["count"] == 1


async def test_events_of_cluster_scoped_objects_go_to_the_default_namespace(
    recorder: EventRecorder, fake: FakeApi
) -> None:
    recorder.event(NODE, NORMAL, "Ready", "up")
    await recorder.flush()
    assert fake.listed(EVENTS)[0]["metadata"]["namespace"] == "default"


async def test_a_repeated_event_raises_the_count_of_the_first(
    recorder: EventRecorder, fake: FakeApi, clock: FakeClock
) -> None:
    for _ in range(3):
        recorder.event(POD, NORMAL, "Pulled", "image")
        await recorder.flush()
        await clock.advance(60)
    (event,) = fake.listed(EVENTS)
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2023-11-14T22:13:20Z"
    assert event["lastTimestamp"] == "2023-11-14T22:15:20Z"


async def test_a_repeated_event_whose_first_is_gone_is_written_anew(
    recorder: EventRecorder, fake: FakeApi, client: Client
) -> None:
    recorder.event(POD, NORMAL, "Pulled", "image")
    await recorder.flush()
    await client.delete_collection(EVENTS, "ns")
    recorder.event(POD, NORMAL, "Pulled", "image")
    await recorder.flush()
    assert [event["count"] for event in fake.listed(EVENTS)] == [1]


async def test_many_similar_events_are_combined(recorder: EventRecorder, fake: FakeApi) -> None:
    for number in range(20):
        recorder.event(POD, WARNING, "Failed", f"attempt {number}")
    await recorder.flush()
    events = fake.listed(EVENTS)
    assert len(events) == 10
    (combined,) = [e for e in events if e["message"].startswith("(combined from similar events): ")]
    assert combined["message"].endswith("attempt 19")
    assert combined["count"] == 11


async def test_an_object_cannot_flood_the_server(recorder: EventRecorder, fake: FakeApi, clock: FakeClock) -> None:
    for number in range(60):
        recorder.event(POD, NORMAL, f"Reason{number}", "text")
    recorder.event(NODE, NORMAL, "Ready", "another object has its own allowance")
    await recorder.flush()
    assert len(fake.listed(EVENTS)) == 26
    assert recorder.dropped == 35
    await clock.advance(minutes=5)
    recorder.event(POD, NORMAL, "Later", "one more")
    await recorder.flush()
    assert len(fake.listed(EVENTS)) == 27


async def test_a_server_that_is_away_for_a_moment_gets_the_event_later(
    recorder: EventRecorder, fake: FakeApi, clock: FakeClock
) -> None:
    fake.fail = lambda _: ServiceUnavailable("down")
    recorder.event(POD, NORMAL, "Pulled", "image")
    await clock.advance(15)
    assert fake.listed(EVENTS) == []
    fake.fail = lambda _: None
    await clock.advance(10)
    assert len(fake.listed(EVENTS)) == 1


async def test_a_refused_event_is_given_up_at_once(recorder: EventRecorder, fake: FakeApi) -> None:
    fake.fail = lambda _: Forbidden("namespace is terminating")
    recorder.event(POD, NORMAL, "Pulled", "image")
    await recorder.flush()
    assert len(fake.calls) == 1


@pytest.fixture
async def sparing(client: Client, clock: FakeClock) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, "execution", clock=clock, waiting=20, backlog=10)
    yield recorder
    await recorder.stop()


def about(number: int) -> Obj:
    return {**POD, "metadata": {**POD["metadata"], "uid": f"{number}"}}


async def test_normal_events_are_left_out_while_many_wait_and_minor_ones_first(
    sparing: EventRecorder, fake: FakeApi
) -> None:
    made: list[str] = []

    def emit(reason: str, sort: str = NORMAL, *, minor: bool = False) -> None:
        def message() -> str:
            made.append(reason)
            return reason

        for number in range(12):
            sparing.event(about(number), sort, reason, message, minor=minor)

    emit("Minor", minor=True)
    emit("Normal")
    emit("Bad", WARNING)
    assert [made.count(reason) for reason in ("Minor", "Normal", "Bad")] == [5, 5, 10]
    assert sparing.dropped == 7 + 7 + 2
    await sparing.start()
    await sparing.flush()
    assert [event["message"] for event in fake.listed(EVENTS)] == [*["Bad"] * 10, *["Minor"] * 5, *["Normal"] * 5]


class SlowClient(Client):
    """Each create takes a tenth of a second."""

    def __init__(self, client: Client, clock: FakeClock) -> None:
        super().__init__(client.transport)
        self.written: list[str] = []
        self._clock = clock

    async def create(self, kind: GVR | GVK, obj: Obj, *_: Any, **__: Any) -> Obj:
        await self._clock.sleep(0.1)
        self.written.append(obj["reason"])
        return await super().create(kind, obj)


async def test_the_slower_the_server_the_longer_normal_events_wait_and_warnings_do_not(
    client: Client, clock: FakeClock
) -> None:
    slow = SlowClient(client, clock)
    recorder = EventRecorder(slow, "execution", clock=clock, backlog=10)
    await recorder.start()
    for reason in ("First", "Second"):
        recorder.event(POD, NORMAL, reason, "text")
    await clock.advance(0.1)
    assert slow.written == ["First"]
    await clock.advance(0.5)
    recorder.event(POD, WARNING, "Failed", "text")
    await clock.advance(0.1)
    assert slow.written == ["First", "Failed"]
    await clock.advance(0.25)
    assert slow.written == ["First", "Failed"], "Normal events are written for a tenth of the time"
    await clock.advance(0.2)
    assert slow.written == ["First", "Failed", "Second"]
    await recorder.stop()
