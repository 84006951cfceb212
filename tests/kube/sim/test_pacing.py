from __future__ import annotations

from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.controllers.pacing import Pacing

A, B = Key("ns", "a"), Key("ns", "b")


async def test_changes_join_the_wait_that_the_first_one_began() -> None:
    clock = FakeClock(1000.0)
    pacing = Pacing(clock, 1.0)
    assert pacing.left(A) == 1.0
    await clock.advance(0.75)
    assert pacing.left(A) == 0.25
    assert pacing.left(B) == 1.0
    await clock.advance(0.25)
    assert pacing.left(A) == 0


async def test_only_work_that_succeeded_ends_a_wait() -> None:
    clock = FakeClock(1000.0)
    pacing = Pacing(clock, 1.0)
    pacing.left(A)
    await clock.advance(1.0)
    assert pacing.left(A) == 0
    assert pacing.left(A) == 0
    pacing.done(A)
    await clock.advance(60.0)
    assert pacing.left(A) == 1.0


async def test_a_key_that_keeps_changing_waits_longer() -> None:
    clock = FakeClock(1000.0)
    pacing = Pacing(clock, 1.0)
    pacing.left(A)
    await clock.advance(1.0)
    pacing.done(A)
    assert pacing.left(A) == 4.0
    assert pacing.left(B) == 1.0
