"""Live pages: one stream of server-sent events per open page, which names topics and reports that one has changed.

A topic is the API path of a list (`/apis/cluster.karmada.io/v1alpha1/clusters?resourceVersion=…`). It is watched with
the viewer's own identity, once per session however many pages show it, metadata only; the page gets no data, only the
word that something changed, and requests the parts that show it again. Changes are coalesced: one at once, then at most
two a second. A page that is closed or hidden closes its stream, and the last one of a topic ends its watch.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from karmada.api.cluster import Cluster
from karmada.dashboard.viewer import Viewer
from karmada.kube.client.client import METADATA_FORM, METADATA_LIST_FORM, resource_path
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, Expired, Forbidden, Gone, Unauthorized

INTERVAL_SECONDS: Final = 0.5
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 30.0
MOST_TOPICS: Final = 12
MOST_STREAMS: Final = 32
_QUERY: Final = frozenset({"labelSelector", "fieldSelector", "resourceVersion"})
_NAME: Final = "[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_LIST: Final = rf"/(api/{_NAME}|apis/{_NAME}/{_NAME})(/namespaces/{_NAME})?/{_NAME}"
_PATH: Final = re.compile(rf"({re.escape(resource_path(Cluster.gvr))}/{_NAME}/proxy)?{_LIST}")
"""A path of the control plane, or of a member: no object, no subresource, nothing that a proxy would pass on."""


class BadTopic(ValueError):
    """It is no path of a list."""


class Parsed(NamedTuple):
    path: str
    query: dict[str, str]
    """Selectors."""
    version: str
    """The resourceVersion from which on changes are of interest; "" if from now on."""


def parse_topic(topic: str) -> Parsed:
    parts = urlsplit(topic)
    query = dict(parse_qsl(parts.query))
    if parts.scheme or parts.netloc or not topic.isprintable() or not _PATH.fullmatch(parts.path):
        raise BadTopic(f'"{topic}" is not the API path of a list')
    unknown = query.keys() - _QUERY
    if unknown:
        raise BadTopic(f'"{topic}": {", ".join(sorted(unknown))} is not a selector')
    version = query.pop("resourceVersion", "")
    return Parsed(parts.path, query, version)


class Topic:
    """One watch, and the callbacks of those who follow it."""

    def __init__(self, viewer: Viewer, path: str, query: dict[str, str], version: str, clock: Clock) -> None:
        self._viewer, self._clock = viewer, clock
        self._path, self._query, self._version = path, query, version
        self.listeners: list[Callable[[str], None]] = []
        self._changed = asyncio.Event()
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._emit())]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def is_behind(self, version: str) -> bool:
        """Return whether something may have changed since this version."""
        return not (version.isdigit() and self._version.isdigit() and int(version) >= int(self._version))

    async def _follow(self) -> None:
        """Watch for as long as somebody listens."""
        pause = FIRST_RETRY
        while True:
            try:
                if not self._version:
                    self._version = await self._latest()
                    self._changed.set()
                await self._watch()
                pause = FIRST_RETRY
            except (Expired, Gone):
                self._version = ""
            except (Forbidden, Unauthorized) as error:
                self._notify("refused" if isinstance(error, Forbidden) else "logout")
                return
            except (ApiError, ConnectionFailed):
                await self._clock.sleep(pause)
                pause = min(LAST_RETRY, pause * 2)
                self._version = ""

    async def _latest(self) -> str:
        query = {**self._query, "limit": "1"}
        answer = await self._viewer.client.transport.call(Call("GET", self._path, query, accept=METADATA_LIST_FORM))
        return str(answer["metadata"].get("resourceVersion") or "")

    async def _watch(self) -> None:
        query = {**self._query, "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": self._version}
        events = self._viewer.client.transport.watch(Call("GET", self._path, query, accept=METADATA_FORM))
        async for kind, obj in events:
            self._version = str(obj["metadata"].get("resourceVersion") or self._version)
            if kind != "BOOKMARK":
                self._changed.set()

    async def _emit(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._notify("changed")
            await self._clock.sleep(INTERVAL_SECONDS)

    def _notify(self, what: str) -> None:
        for listener in [*self.listeners]:
            listener(what)


class _Events:
    """The events that one stream has to send, each once, however slowly the page reads. None is the end."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue()
        self._waiting: set[tuple[str, str] | None] = set()

    def put(self, event: tuple[str, str] | None) -> None:
        if event not in self._waiting:
            self._waiting.add(event)
            self._queue.put_nowait(event)

    async def get(self) -> tuple[str, str] | None:
        event = await self._queue.get()
        self._waiting.discard(event)
        return event


class Live:
    """The topics of one session."""

    def __init__(self, viewer: Viewer, clock: Clock) -> None:
        self._viewer, self._clock = viewer, clock
        self._topics: dict[str, Topic] = {}
        self._streams: set[_Events] = set()
        self._closed = False

    def __len__(self) -> int:
        """Return how many topics are watched."""
        return len(self._topics)

    @property
    def streams(self) -> int:
        return len(self._streams)

    def stream(self, wanted: Sequence[str]) -> AsyncGenerator[tuple[str, str], None]:
        """Yield (what, topic) for as long as it is iterated over; BadTopic, or ValueError when there are too many."""
        parsed = {topic: parse_topic(topic) for topic in wanted}
        if len(parsed) > MOST_TOPICS or len(self._streams) >= MOST_STREAMS:
            raise ValueError("too many topics or open pages")
        return self._events(parsed)

    async def _events(self, parsed: Mapping[str, Parsed]) -> AsyncGenerator[tuple[str, str], None]:
        if self._closed:
            return
        queue = _Events()
        self._streams.add(queue)
        following = [
            (self._key(path, query), self._listen(topic, path, query, version, queue))
            for topic, (path, query, version) in parsed.items()
        ]
        try:
            while True:
                event = await queue.get()
                if event is None:
                    return
                yield event
        finally:
            self._streams.discard(queue)
            for key, listener in following:
                self._leave(key, listener)

    @staticmethod
    def _key(path: str, query: dict[str, str]) -> str:
        return f"{path}?{sorted(query.items())}"

    def _listen(
        self, name: str, path: str, query: dict[str, str], version: str, queue: _Events
    ) -> Callable[[str], None]:
        key = self._key(path, query)
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = Topic(self._viewer, path, query, version, self._clock)
        elif topic.is_behind(version):
            queue.put(("changed", name))

        def listener(what: str) -> None:
            queue.put((what, name))

        topic.listeners.append(listener)
        return listener

    def _leave(self, key: str, listener: Callable[[str], None]) -> None:
        topic = self._topics.get(key)
        if topic is None:
            return
        topic.listeners.remove(listener)
        if not topic.listeners:
            del self._topics[key]
            topic.close()

    def close(self) -> None:
        self._closed = True
        for queue in [*self._streams]:
            queue.put(None)
        for topic in self._topics.values():
            topic.close()
        self._topics.clear()
