"""How a watch of several sources goes on when streams end, break, or are too old; on scripted servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from karmada.cli.commands import get_watch
from karmada.cli.commands.get_watch import Change, Source
from karmada.cli.targeting.resources import Target
from karmada.cli.targeting.sources import ReadRequest, Trouble
from karmada.kube.client.discovery import Mapping
from karmada.kube.client.transport import Call, ConnectionFailed, Transport, WatchEvent
from karmada.kube.objects.errors import ApiError, Expired, Forbidden
from karmada.kube.objects.gvk import GVK, GVR
from tests.support.eventually import LIMIT

PODS = Mapping(GVR("", "v1", "pods"), GVK("", "v1", "Pod"), True)
REQUEST = ReadRequest(["pods"], "default", tables=False)


def pod(name: str, version: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "resourceVersion": str(version)}}


class Server(Transport):
    """Answers lists and watches with what is scripted, in this order; then watches stay open."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.watched_from: list[str] = []

    async def call(self, _call: Call) -> Any:
        return self.script.pop(0)

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self.watched_from.append(call.query["resourceVersion"])
        if not self.script:
            await asyncio.Event().wait()
        for event in self.script.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


def listing(version: int, *pods: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "PodList", "metadata": {"resourceVersion": str(version)}, "items": list(pods)}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(get_watch, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(get_watch, "_LONGEST_PAUSE", 0.004)


async def output(server: Server, count: int) -> tuple[list[tuple[str, str]], list[Trouble]]:
    """What the first `count` events are about, after the first list."""
    session = SimpleNamespace(name="m1", client=SimpleNamespace(transport=server), config=SimpleNamespace(server="x"))
    source = Source(cast(Any, session), Target(PODS, "default"))
    await get_watch._list(source, REQUEST)
    queue: asyncio.Queue[Change | Trouble] = asyncio.Queue()
    task = asyncio.create_task(get_watch._follow(source, REQUEST, queue))
    changes: list[tuple[str, str]] = []
    troubles: list[Trouble] = []
    async with asyncio.timeout(LIMIT):
        while len(changes) < count and not task.done():
            item = await queue.get()
            if isinstance(item, Trouble):
                troubles.append(item)
                if item.key == "over":
                    break
            else:
                changes += [(item.type, entry["metadata"]["name"]) for entry in get_watch._items(item.answer)]
    task.cancel()
    return changes, troubles


async def test_a_stream_that_ends_is_opened_where_it_was() -> None:
    server = Server(
        listing(5, pod("a", 3)),
        [WatchEvent("ADDED", pod("b", 6)), WatchEvent("BOOKMARK", pod("", 9))],
        [WatchEvent("MODIFIED", pod("b", 7))],
    )
    assert await output(server, 2) == ([("ADDED", "b"), ("MODIFIED", "b")], [])
    assert server.watched_from[:2] == ["5", "6"]


async def test_when_the_place_is_forgotten_the_difference_is_reported() -> None:
    server = Server(
        listing(5, pod("a", 3), pod("b", 4), pod("c", 5)),
        [Expired("too old")],
        listing(9, pod("a", 3), pod("b", 8), pod("d", 9)),
        [WatchEvent("DELETED", pod("d", 10))],
    )
    changes, troubles = await output(server, 4)
    assert changes == [("ADDED", "d"), ("MODIFIED", "b"), ("DELETED", "c"), ("DELETED", "d")]
    assert (troubles, server.watched_from[:2]) == ([], ["5", "9"])


async def test_a_connection_that_breaks_is_reported_only_when_it_stays_broken() -> None:
    broken = ConnectionFailed("https://x: gone")
    once = Server(listing(5), [broken], [WatchEvent("ADDED", pod("a", 6))])
    assert await output(once, 1) == ([("ADDED", "a")], [])
    longer = Server(listing(5), [broken], [broken], [broken], [WatchEvent("ADDED", pod("a", 6))])
    changes, troubles = await output(longer, 1)
    assert changes == [("ADDED", "a")]
    assert len(troubles) == 1
    assert "gone" in str(troubles[0])


@pytest.mark.parametrize(("error", "final"), [(Forbidden("no rights"), True), (ApiError("busy", code=503), False)])
async def test_a_refusal_ends_it_and_a_busy_server_does_not(error: ApiError, final: bool) -> None:
    server = Server(listing(5), [error], [WatchEvent("ADDED", pod("a", 6))])
    changes, troubles = await output(server, 1)
    assert bool(changes) != final
    assert [trouble.key for trouble in troubles] == (["over"] if final else [])
