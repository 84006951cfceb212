"""Writing a token: tried again while the server is overloaded, and never as another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from karmada.cli.commands import token as tokens
from karmada.cli.targeting import connect
from karmada.joining.pull.tokens import Token
from karmada.kube.client.config import RestConfig
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import AlreadyExists, ApiError, Forbidden, TooManyRequests

TOKEN = Token("abcdef", "0123456789abcdef")


class Server:
    """Answers each write with the next of the given errors, then takes it."""

    def __init__(self, *errors: ApiError) -> None:
        self.errors = list(errors)
        self.tries = 0

    async def create(self, *_: object) -> None:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)


async def stored(monkeypatch: pytest.MonkeyPatch, server: Server) -> float:
    """How long it took; the error when it failed."""

    @asynccontextmanager
    async def connected(_config: RestConfig) -> AsyncIterator[Any]:
        yield server

    monkeypatch.setattr(connect, "connected", connected)
    clock = FakeClock()
    started = clock.now()
    task = asyncio.create_task(tokens._store(RestConfig(server="https://a"), TOKEN, clock))
    while not task.done():
        await clock.advance(1)
    await task
    return clock.now() - started


async def test_pauses_double_from_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(*(TooManyRequests("busy") for _ in range(4)))
    assert 75 <= await stored(monkeypatch, server) <= 77
    assert server.tries == 5


async def test_after_five_tries_the_error_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(*(TooManyRequests("busy") for _ in range(9)))
    with pytest.raises(TooManyRequests):
        await stored(monkeypatch, server)
    assert server.tries == 5


async def test_what_is_refused_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(Forbidden("no"))
    with pytest.raises(Forbidden):
        await stored(monkeypatch, server)
    assert server.tries == 1


async def test_an_id_that_is_taken_is_an_error_unless_an_earlier_try_took_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(connect.Failure, match='a token with id "abcdef" already exists'):
        await stored(monkeypatch, Server(AlreadyExists("there")))
    await stored(monkeypatch, Server(TooManyRequests("busy"), AlreadyExists("there")))
