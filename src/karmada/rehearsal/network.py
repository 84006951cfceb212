"""The network between the control plane and a member that are both in this process: calls that can be cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

import orjson

from karmada.kube.client.transport import Call, ConnectionFailed, RawResponse, Transport, TransportDecorator, WatchEvent
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout
from karmada.members.access import TIMEOUT

T = TypeVar("T")


class State(Enum):
    UP = "up"
    DOWN = "down"
    """Unreachable."""
    HANGING = "hanging"
    """Connections are accepted, and nothing comes back."""
    FAILING = "failing"
    """Every request is answered with 503."""


class Network:
    """The way to one member."""

    def __init__(self, clock: Clock) -> None:
        self.state = State.UP
        self._clock = clock
        self._changed = asyncio.Event()

    def change(self, state: State) -> None:
        """Change the state and end all open requests and watches."""
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()

    async def enter(self) -> None:
        """Let a request through; ConnectionFailed or ApiError when it does not get through."""
        if self.state is State.HANGING:
            try:
                await with_timeout(self._clock, self.until_changed(), TIMEOUT)
            except TimeoutError:
                raise ConnectionFailed(f"no response within {TIMEOUT:g}s") from None
        if self.state is State.FAILING:
            raise ApiError("the server is currently unable to handle the request", code=503)
        if self.state is not State.UP:
            raise ConnectionFailed("connection refused")

    async def until_changed(self) -> None:
        await self._changed.wait()


class InMemoryTransport(TransportDecorator):
    """A member in this process, behind its network."""

    def __init__(self, below: Transport, network: Network) -> None:
        super().__init__(below)
        self._network = network

    async def call(self, call: Call) -> Any:
        await self._network.enter()
        return await self.below.call(call)

    async def answer(self, call: Call, headers: Mapping[str, str] | None = None) -> RawResponse:
        """Return the answer to a request; an error is an answer, too."""
        try:
            await self._network.enter()
        except ApiError as error:
            return RawResponse(error.code, {}, orjson.dumps(error.status()))
        return await self.below.answer(call, headers)

    async def body(self, call: Call) -> bytes:
        await self._network.enter()
        return await self.below.body(call)

    async def create_all(self, call: Call, objects: Sequence[Obj]) -> list[ApiError | None] | None:
        await self._network.enter()
        return await self.below.create_all(call, objects)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self._until_cut(self.below.watch(call))

    def lines(self, call: Call) -> AsyncIterator[bytes]:
        return self._until_cut(self.below.lines(call))

    async def _until_cut(self, events: AsyncIterator[T]) -> AsyncIterator[T]:
        await self._network.enter()
        cut = asyncio.create_task(self._network.until_changed())
        following: asyncio.Task[T | None] | None = None
        try:
            while True:
                following = asyncio.create_task(_next(events))
                await asyncio.wait({following, cut}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    raise ConnectionFailed("the connection broke")
                event = following.result()
                if event is None:
                    return
                yield event
        finally:
            await cancel_and_wait(cut, *([] if following is None else [following]))


async def _next(events: AsyncIterator[T]) -> T | None:
    """Return the next event; None at the end."""
    return await anext(events, None)
