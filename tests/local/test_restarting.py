"""A control plane that hung is started again, a few times; other ends are for people to look at."""

from __future__ import annotations

from karmada.kube.runtime.watchdog import EXIT_CODE
from karmada.local.restarting import MOST, WITHIN_SECONDS, Restarts
from tests.support.cases import cases


@cases(0, 1, 2, -9)
def test_what_did_not_hang_is_not_started_again(code: int) -> None:
    restarts = Restarts()
    assert not restarts.take(code)
    assert restarts.recent == 0


def test_there_are_so_many_restarts_in_ten_minutes() -> None:
    now = [0.0]
    restarts = Restarts(lambda: now[0])
    assert [restarts.take(EXIT_CODE) for _ in range(MOST + 2)] == [True] * MOST + [False, False]
    now[0] += WITHIN_SECONDS
    assert restarts.take(EXIT_CODE)
    assert restarts.recent == 1
