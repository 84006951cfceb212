"""The watchdog: a loop that does not answer is counted, with what it was doing; one that waits is left alone."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from karmada.kube.runtime import watchdog
from karmada.kube.runtime.watchdog import Stalls, Watchdog, describe_requests, watching_for_stalls
from tests.support.eventually import LIMIT, eventually


def busy(seconds: float) -> None:
    """Of CPU time, however long that takes beside others."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def locked(seconds: float) -> None:
    """One call into C that never lets another thread run."""
    amount = 1_000_000
    while True:
        began = time.monotonic()
        sum(range(amount))
        if time.monotonic() - began > seconds:
            return
        amount *= 2


@pytest.mark.parametrize("work", [busy, locked])
async def test_a_long_callback_is_counted_with_its_stack(
    work: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    stalls = Stalls()

    async def counted() -> bool:
        """Tried again: a callback that gets little CPU time is no stall, since others use the machine."""
        work(0.4)
        return stalls.longest > 0.2

    with caplog.at_level(logging.WARNING), watching_for_stalls(stalls):
        await eventually(counted)
    assert any("The event loop stalled" in record.message for record in caplog.records)
    page = generate_latest(registry_of(stalls)).decode()
    assert f"event_loop_stalls_total {stalls.count}.0" in page


def registry_of(stalls: Stalls) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(stalls)
    return registry


async def test_the_request_and_the_function_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(line: str) -> None:
        assert line
        busy(0.5)

    describe_requests(lambda frame: frame.f_locals["line"] if frame.f_code is serve.__code__ else None)

    async def logged() -> bool:
        await serve("GET /slow")
        pairs = [record.__dict__["pairs"] for record in caplog.records if "stalled" in record.message]
        return any(found["request"] == "GET /slow" and found["stack"].startswith("busy (") for found in pairs)

    with caplog.at_level(logging.WARNING), watching_for_stalls(Stalls()):
        await eventually(logged)


async def test_a_loop_that_waits_is_not_woken_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, beats, stalls = list[int](), list[int](), Stalls()

    def process_time() -> float:
        looks.append(1)
        return 0.0

    monkeypatch.setattr(Watchdog, "_beat", lambda _self: beats.append(1))
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=time.monotonic, process_time=process_time))
    with watching_for_stalls(stalls):
        await eventually(lambda: len(looks) > 5)
    assert not beats
    assert stalls.count == 0


class ClearedLate(threading.Event):
    """Its clearing begins before it is set, and takes effect afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.clearing, self.was_set = threading.Event(), threading.Event()

    def clear(self) -> None:
        self.clearing.set()
        self.was_set.wait()
        super().clear()

    def set(self) -> None:
        super().set()
        self.was_set.set()


def test_a_stop_at_the_moment_of_a_beat_ends_the_thread() -> None:
    async def stop_during_a_beat() -> None:
        dog = Watchdog(Stalls())
        dog._answered = answered = ClearedLate()
        dog.start()
        while not answered.clearing.is_set():
            busy(0.02)
        dog.stop()

    running = threading.Thread(target=lambda: asyncio.run(stop_during_a_beat()), daemon=True)
    running.start()
    running.join(LIMIT)
    assert not running.is_alive(), "the loop waits for the watchdog, and the watchdog for the loop"
