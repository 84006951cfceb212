"""The watchdog: a loop that does not answer is counted, with what it was doing; one that waits is left alone."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType, SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import watchdog
from karmada.kube.runtime.controller import Controller, Reconciler, Watch
from karmada.kube.runtime.current_work import Work, describes_work
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.quarantine import Quarantine
from karmada.kube.runtime.watchdog import (
    EXIT_CODE,
    LongCallback,
    Stalls,
    Verdict,
    Watchdog,
    watching_for_stalls,
)
from tests.support.cases import cases
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


@cases(busy, locked)
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


@cases(
    (0.0, {2.0: Verdict.REPORT}),
    (30.0, {2.0: Verdict.REPORT, 30.0: Verdict.END}),
    (1.0, {0.5: Verdict.REPORT, 1.0: Verdict.END}),
)
def test_a_callback_is_reported_once_and_ends_the_process_at_the_limit(
    limit: float, verdicts: dict[float, Verdict]
) -> None:
    callback, frame = LongCallback(limit), object()
    assert callback.seen(frame, 0.0) is Verdict.WAIT
    for _ in range(int((limit or 60.0) / 0.25)):
        verdict = callback.seen(frame, 0.25)
        assert verdict is verdicts.get(callback.seconds, Verdict.WAIT)


def test_many_callbacks_in_a_row_are_not_one_that_hangs() -> None:
    callback = LongCallback(1.0)
    assert {callback.seen(frame, 10.0) for frame in (object(), object(), object())} == {Verdict.WAIT}
    assert callback.seconds == 0.0


def hanging_until(ended: threading.Event, seconds: float) -> None:
    """Hold the loop for so long, of CPU time, or until the process would have ended."""
    end = time.thread_time() + seconds
    while time.thread_time() < end and not ended.is_set():
        pass


@pytest.mark.parametrize("known_only", [True, False])
async def test_what_is_no_controllers_ends_a_process_only_after_its_start(
    known_only: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ended = threading.Event()
    dog = Watchdog(Stalls(), limit=0.5, known_only=known_only, leave=lambda _code: ended.set())
    with caplog.at_level(logging.WARNING):
        dog.start()

        def over() -> bool:
            hanging_until(ended, 2.0)
            return ended.is_set() or any("The event loop stalled" in record.message for record in caplog.records)

        await eventually(over)
        dog.stop()
    assert ended.is_set() is not known_only


class Looper(Reconciler):
    """A reconciler that loops until the watchdog has ended the process, so to say."""

    name = "looper"

    def __init__(self, ended: threading.Event, *watches: Watch) -> None:
        self.ended = ended
        self.watches = watches

    async def reconcile(self, _key: Key) -> None:
        while not self.ended.is_set():
            pass


@cases("reconcile", "handler")
async def test_a_hang_names_the_key_or_object_while_it_lasts_and_ends_the_process(
    where: str, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    ended, codes, quarantine = threading.Event(), list[int](), Quarantine()

    def leave(code: int) -> None:
        codes.append(code)
        ended.set()

    def loops(_old: Obj | None, new: Obj | None) -> bool:
        while where == "handler" and not ended.is_set():
            pass
        return new is not None

    await client.create(PODS, {"metadata": {"name": "web", "namespace": "ns"}})
    informers = Informers(client)
    controller = Controller(Looper(ended, Watch(PODS, when=loops)), informers)
    dog = Watchdog(Stalls(), limit=1.0, known_only=True, blame=quarantine.blame, leave=leave)
    with caplog.at_level(logging.WARNING):
        dog.start()
        informers.start()
        await controller.start()
        await eventually(ended.is_set)
        dog.stop()
    await controller.stop(grace=0)
    await informers.stop()
    (entry,) = quarantine.entries()
    name = "ns/web" if where == "reconcile" else "pods ns/web"
    assert (codes, entry.controller, entry.key) == ([EXIT_CODE], "looper", name)
    assert entry.fingerprint
    lines = [(record.message, record.__dict__["pairs"]) for record in caplog.records if record.name.endswith("dog")]
    hang = next(pairs for message, pairs in lines if message == "The event loop hangs")
    assert hang["key" if where == "reconcile" else "object"] == f"looper {name}"
    assert "test_watchdog.py" in hang["stack"]
    assert any("the process ends to be started again" in message for message, _ in lines)


def test_the_process_ends_even_if_its_last_words_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    never, codes = threading.Event(), list[int]()
    monkeypatch.setattr(watchdog, "_LAST_WORDS_SECONDS", 0.01)

    def hang(_work: Sequence[Work], _seconds: float, _stack: str) -> None:
        never.wait()

    dog = Watchdog(Stalls(), blame=hang, leave=codes.append)
    dog._end(30.0, [])
    never.set()
    assert codes == [EXIT_CODE]


def registry_of(stalls: Stalls) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(stalls)
    return registry


async def test_the_request_and_the_function_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(line: str) -> None:
        assert line
        busy(0.5)

    @describes_work
    def describe(frame: FrameType) -> Work | None:
        return Work("request", frame.f_locals["line"]) if frame.f_code is serve.__code__ else None

    async def logged() -> bool:
        await serve("GET /slow")
        pairs = [record.__dict__["pairs"] for record in caplog.records if "stalled" in record.message]
        return any(found.get("request") == "GET /slow" and found["stack"].startswith("busy (") for found in pairs)

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
