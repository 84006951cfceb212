"""Topics: what may be watched, and that a page is notified soon, rarely, and after every gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada.dashboard.live import MOST_TOPICS, BadTopic, Live, parse_topic
from karmada.dashboard.viewer import Identity, Viewer
from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import Call, ConnectionFailed, Transport, WatchEvent
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Expired, Forbidden
from tests.support.cases import cases
from tests.support.counting import let_others_run

PODS = "/api/v1/namespaces/default/pods"


@cases(
    (PODS, PODS, {}, ""),
    (f"{PODS}?resourceVersion=7", PODS, {}, "7"),
    (f"{PODS}?labelSelector=a%3Db&resourceVersion=7", PODS, {"labelSelector": "a=b"}, "7"),
    ("/apis/g/v1/a?fieldSelector=metadata.name%3Dx", "/apis/g/v1/a", {"fieldSelector": "metadata.name=x"}, ""),
)
def test_a_topic_is_the_path_of_a_list(topic: str, path: str, query: dict[str, str], version: str) -> None:
    assert parse_topic(topic) == (path, query, version)


@cases(
    "",
    "pods",
    "/metrics",
    "https://evil.example/api/v1/pods",
    "//evil.example/api/v1/pods",
    "/api/v1/../../metrics",
    f"{PODS}?limit=1",
    f"{PODS}?watch=false",
)
def test_nothing_else_is_watched(topic: str) -> None:
    with pytest.raises(BadTopic):
        parse_topic(topic)


class _Server(Transport):
    """A transport whose watches end as the test says."""

    def __init__(self) -> None:
        self.watches: list[tuple[str, asyncio.Queue[WatchEvent | Exception]]] = []
        self.opened = asyncio.Event()

    async def call(self, _call: Call) -> Any:
        return {"metadata": {"resourceVersion": "100"}, "items": []}

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        queue: asyncio.Queue[WatchEvent | Exception] = asyncio.Queue()
        self.watches.append((call.query["resourceVersion"], queue))
        self.opened.set()
        while True:
            event = await queue.get()
            if isinstance(event, Exception):
                raise event
            yield event

    async def latest(self) -> tuple[str, asyncio.Queue[WatchEvent | Exception]]:
        await self.opened.wait()
        self.opened.clear()
        return self.watches[-1]


def _changed(version: int) -> WatchEvent:
    return WatchEvent("MODIFIED", {"metadata": {"resourceVersion": str(version)}})


@pytest.fixture
def server() -> _Server:
    return _Server()


@pytest.fixture
def live(server: _Server, clock: FakeClock) -> Live:
    viewer = Viewer(Identity("a"), RestConfig("https://127.0.0.1:1"), clock)
    viewer.client.transport = server
    return Live(viewer, clock)


async def test_the_first_change_is_reported_at_once_and_the_following_ones_together(
    live: Live, server: _Server, clock: FakeClock
) -> None:
    topic = f"{PODS}?resourceVersion=7"
    events = live.stream([topic])
    first = asyncio.ensure_future(anext(events))
    version, watch = await server.latest()
    assert version == "7"
    watch.put_nowait(WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "8"}}))
    await let_others_run()
    assert not first.done()
    watch.put_nowait(_changed(9))
    assert await first == ("changed", topic)
    for number in range(10, 20):
        watch.put_nowait(_changed(number))
    second = asyncio.ensure_future(anext(events))
    await let_others_run()
    assert not second.done()
    await clock.advance(0.5)
    assert await second == ("changed", topic)
    third = asyncio.ensure_future(anext(events))
    await clock.advance(5)
    await let_others_run()
    assert not third.done(), "ten changes were one"
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)
    await events.aclose()
    assert len(live) == 0


async def test_after_a_gap_the_page_is_notified(live: Live, server: _Server, clock: FakeClock) -> None:
    topic = f"{PODS}?resourceVersion=7"
    events = live.stream([topic])
    notified = asyncio.ensure_future(anext(events))
    _, watch = await server.latest()
    watch.put_nowait(Expired("too old"))
    assert (await server.latest())[0] == "100"
    assert await notified == ("changed", topic)
    again = asyncio.ensure_future(anext(events))
    server.watches[-1][1].put_nowait(ConnectionFailed("gone"))
    await let_others_run()
    assert len(server.watches) == 2, "it backs off first"
    await clock.advance(1)
    await server.latest()
    assert await again == ("changed", topic)
    await events.aclose()


async def test_what_may_not_be_watched_is_said_once(live: Live, server: _Server) -> None:
    events = live.stream([PODS + "?resourceVersion=7"])
    notified = asyncio.ensure_future(anext(events))
    (await server.latest())[1].put_nowait(Forbidden("no"))
    assert (await notified)[0] == "refused"
    await events.aclose()


async def test_pages_of_a_session_share_a_watch_and_one_that_is_behind_is_notified(live: Live, server: _Server) -> None:
    first, second = live.stream([f"{PODS}?resourceVersion=7"]), live.stream([f"{PODS}?resourceVersion=3"])
    waiting = asyncio.ensure_future(anext(first))
    await server.latest()
    assert (await anext(second))[0] == "changed"
    assert len(server.watches) == len(live) == 1
    assert live.streams == 2
    await second.aclose()
    assert len(live) == 1
    live.close()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_topics_are_bounded(live: Live) -> None:
    with pytest.raises(ValueError, match="too many"):
        live.stream([f"{PODS}?labelSelector=a%3D{number}" for number in range(MOST_TOPICS + 1)])
