"""Watches as clients read them: one JSON event a line, read with a deadline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.support.wire import Http

SECONDS = 30.0


class Events:
    """The events of one open watch."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self._read = bytearray()

    async def next(self, seconds: float = SECONDS) -> Any:
        """The next event; None when the server has ended the stream."""
        async with asyncio.timeout(seconds):
            while (end := self._read.find(b"\n")) < 0:
                part = await self.response.content.readany()
                if not part:
                    assert not self._read, f"the stream ended within an event: {bytes(self._read)!r}"
                    return None
                self._read += part
        line = bytes(self._read[: end + 1])
        del self._read[: end + 1]
        return json.loads(line)

    async def take(self, count: int) -> list[Any]:
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[Any]:
        """All that comes until the server ends the stream."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found

    async def until(self, kind: str) -> list[Any]:
        """All events up to and including the first one of this type."""
        found: list[Any] = []
        while not found or found[-1]["type"] != kind:
            event = await self.next()
            assert event is not None, f"the stream ended before a {kind}: {found}"
            found.append(event)
        return found


@asynccontextmanager
async def watching(http: Http, path: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[Events]:
    async with asyncio.timeout(SECONDS):
        response = await http.stream(path, headers)
    async with response:
        assert response.status == 200, await response.read()
        yield Events(response)


def types_and_names(events: list[Any]) -> list[tuple[str, str]]:
    """(type, name) of each event."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def revision(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, *, labels: Mapping[str, str] | None = None, **data: str) -> dict[str, Any]:
    meta = {"name": name, **({"labels": dict(labels)} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


async def create(http: Http, name: str, *, path: str = CONFIGMAPS, **kwargs: Any) -> Any:
    answer = await http("POST", path, config_map(name, **kwargs))
    assert answer.code == 201, answer.body
    return answer.json()


async def put(http: Http, name: str, *, path: str = CONFIGMAPS, **kwargs: Any) -> Any:
    answer = await http("PUT", f"{path}/{name}", config_map(name, **kwargs))
    assert answer.code == 200, answer.body
    return answer.json()


async def served(http: Http, path: str, code: int = 200) -> None:
    """Wait until this path answers so."""
    async with asyncio.timeout(SECONDS):
        while (await http("GET", path)).code != code:
            pass  # each round is a request, so others get their turn
