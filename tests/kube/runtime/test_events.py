from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock, RealClock
from karmada.kube.objects.errors import ApiError, Forbidden, ServiceUnavailable
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import (
    NORMAL,
    QUEUE_FULL,
    TOO_MANY,
    WARNING,
    EventRecorder,
    EventWriter,
    _is_busy,
)
from tests.support.cases import cases
from tests.support.fake_api import FakeApi
from tests.support.objects import kube_object

Outcomes = Sequence[ApiError | ConnectionFailed | None]
POD: Obj = kube_object("v1", "Pod", "web", "ns", uid="u1", resourceVersion="7")
NODE: Obj = kube_object("v1", "Node", "n1", uid="u2")


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


def about(number: int) -> Obj:
    return {**POD, "metadata": {**POD["metadata"], "uid": f"{number}"}}


async def test_an_event_that_equals_one_that_waits_raises_its_count(
    client: Client, fake: FakeApi, clock: FakeClock
) -> None:
    recorder = EventRecorder(client, "scheduler", clock=clock)
    for _ in range(3):
        recorder.event(POD, NORMAL, "Pulled", "image")
        await clock.advance(1)
    await recorder.start()
    await recorder.flush()
    await recorder.stop()
    (event,) = fake.listed(EVENTS)
    assert (event["count"], event["firstTimestamp"]) == (3, "2023-11-14T22:13:20Z")
    assert event["lastTimestamp"] == "2023-11-14T22:13:22Z"
    assert len(fake.calls) == 1


def samples(writer: EventWriter, name: str) -> dict[tuple[str, ...], float]:
    found = [sample for family in writer.collect() for sample in family.samples if sample.name == name]
    return {tuple(sample.labels.values()): sample.value for sample in found}


@cases(
    (["image"] * 40, [("image", 40)]),
    ([f"attempt {n}" for n in range(9)], [(f"attempt {n}", 1) for n in range(9)]),
    (
        [f"attempt {n}" for n in range(20)],
        [*((f"attempt {n}", 1) for n in range(9)), ("(combined from similar events): attempt 19", 11)],
    ),
    ids=["equal", "different", "similar"],
)
async def test_events_that_correlate_with_one_that_waits_are_written_with_it_and_none_is_lost_from_its_count(
    messages: list[str], written: list[tuple[str, int]], client: Client, fake: FakeApi, clock: FakeClock
) -> None:
    writer = EventWriter(client, clock=clock)
    recorder = EventRecorder(client, "scheduler", writer=writer)
    for message in messages:
        recorder.event(POD, NORMAL, "Pulled", message)
    await writer.start()
    await writer.flush()
    await writer.stop()
    assert sorted((event["message"], event["count"]) for event in fake.listed(EVENTS)) == sorted(written)
    assert len(fake.calls) == len(written), "one write for each object"
    merged = {("scheduler",): len(messages) - len(written)} if len(messages) > len(written) else {}
    assert samples(writer, "event_recorder_merged_events_total") == merged
    assert not writer.dropped


async def test_an_event_whose_create_had_no_response_is_not_written_twice(
    recorder: EventRecorder, fake: FakeApi, clock: FakeClock
) -> None:
    broken = [True]

    handle = fake.handle

    async def cut(call: Call) -> Any:
        done = await handle(call)
        if broken.pop() if broken else False:
            raise ConnectionFailed("no response")
        return done

    fake.handle = cut  # type: ignore[method-assign]
    recorder.event(POD, NORMAL, "Pulled", "image")
    flushed = asyncio.ensure_future(recorder.flush())
    await clock.advance(30)
    await flushed
    recorder.event(POD, NORMAL, "Pulled", "image")
    await recorder.flush()
    (event,) = fake.listed(EVENTS)
    assert event["count"] == 2


async def test_a_response_that_makes_no_sense_does_not_end_the_writer(
    recorder: EventRecorder, fake: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any) -> Outcomes:
        return []

    monkeypatch.setattr(client, "create_all", nothing)
    recorder.event(POD, NORMAL, "Lost", "text")
    await recorder.flush()
    monkeypatch.undo()
    recorder.event(POD, NORMAL, "Pulled", "image")
    await recorder.flush()
    assert [event["reason"] for event in fake.listed(EVENTS)] == ["Pulled"]


async def test_what_does_not_fit_into_the_queue_is_dropped_and_counted_by_component_and_cause(
    client: Client, clock: FakeClock, fake: FakeApi
) -> None:
    made: list[str] = []

    def message() -> str:
        made.append("a message")
        return "text"

    writer = EventWriter(client, clock=clock, waiting=10)
    execution, detector = (EventRecorder(client, name, writer=writer) for name in ("execution", "detector"))
    for number in range(12):
        execution.event(about(number), NORMAL, "Synced", message)
        detector.event(about(number), WARNING, "Failed", "text")
    assert len(made) == 10, "no message is made for an event that is dropped"
    assert writer.dropped == {("execution", QUEUE_FULL): 2, ("detector", QUEUE_FULL): 2}
    assert (execution.dropped, detector.dropped) == (2, 2)
    assert samples(writer, "event_recorder_dropped_events_total") == {
        ("execution", QUEUE_FULL): 2,
        ("detector", QUEUE_FULL): 2,
    }
    await writer.start()
    await writer.flush()
    await writer.stop()
    written = [event["type"] for event in fake.listed(EVENTS)]
    assert (written.count("Warning"), written.count("Normal")) == (10, 10)


async def test_equal_events_take_the_space_of_one_in_the_queue(client: Client, clock: FakeClock, fake: FakeApi) -> None:
    writer = EventWriter(client, clock=clock, waiting=10)
    recorder = EventRecorder(client, "execution", writer=writer)
    for _ in range(50):
        recorder.event(about(0), NORMAL, "Synced", "text")
    for number in range(1, 10):
        recorder.event(about(number), NORMAL, "Synced", "text")
    await writer.start()
    await writer.flush()
    await writer.stop()
    assert sorted(event["count"] for event in fake.listed(EVENTS)) == [1] * 9 + [50]
    assert not writer.dropped


async def test_nobody_waits_for_events_that_are_all_dropped(client: Client, clock: FakeClock, fake: FakeApi) -> None:
    writer = EventWriter(client, clock=clock)
    recorder = EventRecorder(client, "execution", writer=writer)
    await writer.start()
    for number in range(25):
        recorder.event(POD, NORMAL, f"Reason{number}", "text")
    await writer.flush()
    recorder.event(POD, NORMAL, "Reason25", "text")
    await writer.flush()
    assert writer.dropped == {("execution", TOO_MANY): 1}
    recorder.event(NODE, NORMAL, "Ready", "up")
    await writer.flush()
    await writer.stop()
    assert len(fake.listed(EVENTS)) == 26


class SlowClient(Client):
    """Each group takes a tenth of a second."""

    def __init__(self, client: Client, clock: FakeClock) -> None:
        super().__init__(client.transport)
        self.written: list[str] = []
        self._clock = clock

    async def create_all(self, kind: GVR | GVK, objects: Sequence[Obj], namespace: str, **_: Any) -> Outcomes:
        await self._clock.sleep(0.1)
        self.written += [obj["reason"] for obj in objects]
        return await super().create_all(kind, objects, namespace)


@pytest.fixture
async def slow(client: Client, clock: FakeClock) -> SlowClient:
    return SlowClient(client, clock)


@pytest.fixture
async def behind(slow: SlowClient, clock: FakeClock) -> AsyncIterator[EventRecorder]:
    writer = EventWriter(slow, clock=clock, behind=True, waiting=1000)
    await writer.start()
    yield EventRecorder(slow, "execution", writer=writer)
    await writer.stop()


async def test_normal_events_gather_and_are_written_together(
    behind: EventRecorder, slow: SlowClient, clock: FakeClock
) -> None:
    for number in range(15):
        behind.event(about(number), NORMAL, "Synced", "text")
        await clock.advance(0.005)
    assert slow.written == []
    await clock.advance(0.15)
    assert len(slow.written) == 15


async def test_a_warning_waits_for_nothing(behind: EventRecorder, slow: SlowClient, clock: FakeClock) -> None:
    behind.event(POD, NORMAL, "Synced", "text")
    await clock.advance(0.05)
    behind.event(POD, WARNING, "Failed", "text")
    await clock.advance(0.1)
    assert slow.written == ["Synced", "Failed"]


async def test_warnings_overtake_normal_events_of_which_many_wait(
    behind: EventRecorder, slow: SlowClient, clock: FakeClock
) -> None:
    for number in range(400):
        behind.event(about(number), NORMAL, "Synced", "text")
    behind.event(POD, WARNING, "Failed", "text")
    await clock.advance(0.1)
    assert (len(slow.written), slow.written[-1]) == (256, "Failed")


async def test_of_many_that_wait_many_are_written_at_once_so_that_a_burst_loses_none(
    behind: EventRecorder, slow: SlowClient, clock: FakeClock
) -> None:
    for number in range(1000):
        behind.event(about(number), NORMAL, "Synced", "text")
    await clock.advance(0.1)
    assert len(slow.written) == 256
    await clock.advance(1.0)
    assert len(slow.written) == 1000
    assert behind.dropped == 0


@cases((300, 256), (20_000, 256), (24_000, 1_000), (100_000, 4_096))
async def test_the_more_events_wait_the_more_are_written_at_once(
    waiting: int, written: int, slow: SlowClient, clock: FakeClock
) -> None:
    writer = EventWriter(slow, clock=clock)
    recorder = EventRecorder(slow, "execution", writer=writer)
    for number in range(waiting):
        recorder.event(about(number), NORMAL, "Synced", "text")
    await writer.start()
    await clock.advance(0.1)
    await writer.stop()
    assert len(slow.written) == written


async def test_on_a_busy_event_loop_events_wait_some_seconds_or_until_a_fifth_of_the_queue_is_used(
    behind: EventRecorder, slow: SlowClient, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(_clock: object) -> bool:
        return True

    monkeypatch.setattr("karmada.kube.runtime.events._is_busy", busy)
    for number in range(200):
        behind.event(about(number), NORMAL, "Synced", "text")
    await clock.advance(3)
    assert slow.written == []
    await clock.advance(2)
    assert len(slow.written) == 200
    for number in range(200, 968):
        behind.event(about(number), NORMAL, "Synced", "text")
    await clock.advance(1)
    assert len(slow.written) == 968
    assert behind.dropped == 0


async def test_500_works_a_second_on_a_busy_event_loop_lose_no_event(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a tenth of the queue, more than which is emitted; a group takes 60 µs for each event."""

    class Counting(Client):
        written = 0

        async def create_all(self, kind: GVR | GVK, objects: Sequence[Obj], namespace: str, **_: Any) -> Outcomes:  # noqa: ARG002
            await clock.sleep(len(objects) * 60e-6)
            self.written += len(objects)
            return [None] * len(objects)

    async def busy(_clock: object) -> bool:
        return True

    monkeypatch.setattr("karmada.kube.runtime.events._is_busy", busy)
    counting = Counting(client.transport)
    writer = EventWriter(counting, clock=clock, behind=True, waiting=10_000)
    recorder = EventRecorder(counting, "execution", writer=writer)
    await writer.start()
    deployments, seconds = 250, 4
    for second in range(seconds):
        for number in range(deployments):
            template = about(second * deployments + number)
            for event in range(17):
                recorder.event(template, NORMAL, f"Synced{event}", "text")
            await clock.advance(1 / deployments)
    flushed = asyncio.ensure_future(writer.flush())
    await clock.advance(10)
    assert flushed.done()
    await writer.stop()
    assert not writer.dropped
    assert counting.written == deployments * seconds * 17


def in_namespace(number: int, namespace: int) -> Obj:
    metadata = {**POD["metadata"], "uid": f"{number}", "namespace": f"karmada-es-m{namespace}"}
    return {**POD, "metadata": metadata}


class Stalled(Client):
    """A group takes a second, however many there are: some turns of a loop that others keep busy."""

    def __init__(self, client: Client, clock: FakeClock) -> None:
        super().__init__(client.transport)
        self.groups: list[tuple[str, list[str]]] = []
        self.most, self._under_way = 0, set[str]()
        self._clock = clock

    async def create_all(self, kind: GVR | GVK, objects: Sequence[Obj], namespace: str, **_: Any) -> Outcomes:  # noqa: ARG002
        assert namespace not in self._under_way
        self._under_way.add(namespace)
        self.most = max(self.most, len(self._under_way))
        await self._clock.sleep(1.0)
        self._under_way.remove(namespace)
        self.groups.append((namespace, [obj["involvedObject"]["uid"] for obj in objects]))
        return [None] * len(objects)


@pytest.fixture
def stalled(client: Client, clock: FakeClock) -> Stalled:
    return Stalled(client, clock)


async def test_a_burst_to_many_clusters_on_a_stalled_event_loop_loses_no_event(
    stalled: Stalled, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A twentieth of the queue, and 860 events a second: one batch of 256 at a time would lose most of them."""

    async def busy(_clock: object) -> bool:
        return True

    monkeypatch.setattr("karmada.kube.runtime.events._is_busy", busy)
    writer = EventWriter(stalled, clock=clock, behind=True, waiting=5_000)
    recorder = EventRecorder(stalled, "execution", writer=writer)
    await writer.start()
    clusters, works = 100, 3_000
    for number in range(works):
        for event in range(4):
            recorder.event(in_namespace(number, number % clusters), NORMAL, f"Synced{event}", "text")
        await clock.advance(4 / 860)
    flushed = asyncio.ensure_future(writer.flush())
    await clock.advance(60)
    assert flushed.done()
    await writer.stop()
    assert not writer.dropped
    assert sum(len(uids) for _, uids in stalled.groups) == 4 * works


async def test_events_of_one_namespace_are_written_together_and_in_their_order(
    stalled: Stalled, clock: FakeClock
) -> None:
    writer = EventWriter(stalled, clock=clock, waiting=10_000)
    recorder = EventRecorder(stalled, "execution", writer=writer)
    clusters, works = 40, 20
    for number in range(clusters * works):
        recorder.event(in_namespace(number, number % clusters), NORMAL, "Synced", "text")
    await writer.start()
    flushed = asyncio.ensure_future(writer.flush())
    await clock.advance(10)
    assert flushed.done()
    await writer.stop()
    found: dict[str, list[int]] = {}
    for namespace, uids in stalled.groups:
        found.setdefault(namespace, []).extend(map(int, uids))
    assert found == {f"karmada-es-m{n}": list(range(n, clusters * works, clusters)) for n in range(clusters)}
    assert len(stalled.groups) < 2 * clusters, "each namespace is in one batch, or at the end of one and in the next"


async def test_an_event_that_repeats_one_under_way_raises_its_count(
    client: Client, fake: FakeApi, clock: FakeClock
) -> None:
    """Others of its queue are written meanwhile, but none of its namespace."""
    slow = SlowClient(client, clock)
    writer = EventWriter(slow, clock=clock, waiting=100)
    recorder = EventRecorder(slow, "execution", writer=writer)
    await writer.start()
    recorder.event(POD, NORMAL, "Pulled", "image")
    await clock.advance(0.05)
    for number in range(50):
        recorder.event(in_namespace(number, number), NORMAL, "Synced", "text")
    recorder.event(POD, NORMAL, "Pulled", "image")
    flushed = asyncio.ensure_future(writer.flush())
    await clock.advance(1)
    assert flushed.done()
    await writer.stop()
    assert [event["count"] for event in fake.listed(EVENTS, "ns")] == [2]
    assert len(fake.listed(EVENTS)) == 51


async def test_what_is_under_way_ends_with_the_writer(stalled: Stalled, clock: FakeClock) -> None:
    before = asyncio.all_tasks()
    writer = EventWriter(stalled, clock=clock, waiting=100)
    recorder = EventRecorder(stalled, "execution", writer=writer)
    await writer.start()
    for number in range(60):
        recorder.event(in_namespace(number, number), NORMAL, "Synced", "text")
    await clock.advance(0.1)
    await writer.stop()
    assert asyncio.all_tasks() == before


async def test_the_turns_of_an_event_loop_show_whether_it_is_busy() -> None:
    clock = RealClock()
    working = asyncio.create_task(work())
    assert await _is_busy(clock)
    working.cancel()


async def work() -> None:
    while True:
        end = time.monotonic() + 0.005
        while time.monotonic() < end:
            pass
        await asyncio.sleep(0)


async def test_a_flush_lets_nothing_gather(behind: EventRecorder, slow: SlowClient, clock: FakeClock) -> None:
    for reason in ("First", "Second"):
        behind.event(POD, NORMAL, reason, "text")
        flushed = asyncio.ensure_future(behind.flush())
        await clock.advance(0.1)
        assert flushed.done()
    assert slow.written == ["First", "Second"]
