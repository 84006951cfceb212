"""How long what failed waits."""

from __future__ import annotations

import pytest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.keys import Key
from karmada.scheduler.service.pauses import Doubling, Limits, Short

A, B = Key("default", "a"), Key("default", "b")


def test_every_failure_doubles_the_pause_up_to_a_limit() -> None:
    pauses = Doubling(FakeClock(), Limits(base_delay=0.005, max_delay=1.0, burst=100))
    assert [pauses.failed(A) for _ in range(10)] == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]
    assert pauses.failed(B) == 0.005
    pauses.triggered(A)
    assert pauses.failed(A) == 1.0
    pauses.forget(A)
    assert pauses.failed(A) == 0.005


def test_it_never_grows_beyond_what_a_number_can_hold() -> None:
    pauses = Doubling(FakeClock(), Limits(rate=1e9, burst=10))
    assert [pauses.failed(A) for _ in range(5000)][-1] == 1000.0


async def test_all_together_wait_for_tokens() -> None:
    clock = FakeClock()
    pauses = Doubling(clock, Limits(rate=10.0, burst=3))
    keys = [Key("default", str(number)) for number in range(6)]
    assert [pauses.failed(key) for key in keys] == pytest.approx([0.005, 0.005, 0.005, 0.1, 0.2, 0.3])
    await clock.advance(0.3)
    assert pauses.failed(Key("default", "later")) == pytest.approx(0.1)
    await clock.advance(100)
    assert [pauses.failed(Key("later", str(n))) for n in range(4)] == pytest.approx([0.005, 0.005, 0.005, 0.1])


def test_with_priorities_pauses_are_short() -> None:
    pauses = Short()
    assert [pauses.failed(A) for _ in range(6)] == [1, 2, 4, 8, 10, 10]


def test_with_priorities_what_has_no_room_waits_for_a_change() -> None:
    pauses = Short()
    assert pauses.failed(A, no_room=True) == 300
    pauses.triggered(A)
    assert pauses.failed(A) == 1
