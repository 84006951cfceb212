"""How the reports of a binding's Works are gathered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.controllers.binding_status.reports import MOST, Gathering, enough, pause
from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.keys import Key
from tests.support.cases import cases

WEB = Key("default", "web-deployment")
ROUNDING = 1e-5


@cases((0, 0, 0.0), (1, 1, 0.01), (8, 1, 0.08), (9, 2, 0.09), (100, 13, 1.0), (1_000, 125, 10.0), (5_000, 625, MOST))
def test_more_clusters_are_read_after_more_reports_or_a_longer_pause(
    clusters: int, reports: int, seconds: float
) -> None:
    assert enough(clusters) == reports
    assert pause(clusters) == pytest.approx(seconds)


@cases(0, 1, 8)
def test_every_report_of_few_clusters_is_read_at_once(clusters: int, clock: FakeClock) -> None:
    gathering = Gathering(clock)
    gathering.was_read(WEB, clusters)
    gathering.reported(WEB)
    assert gathering.remaining(WEB) == 0


async def test_one_report_of_many_clusters_is_read_after_the_pause(clock: FakeClock) -> None:
    gathering = Gathering(clock)
    gathering.reported(WEB)
    assert gathering.remaining(WEB) == 0
    gathering.was_read(WEB, 100)
    gathering.reported(WEB)
    assert gathering.remaining(WEB) == pytest.approx(pause(100))
    await clock.advance(pause(100))
    assert gathering.remaining(WEB) == 0


def test_an_eighth_of_the_clusters_ends_the_pause(clock: FakeClock) -> None:
    gathering = Gathering(clock)
    gathering.was_read(WEB, 100)
    for _ in range(enough(100) - 1):
        gathering.reported(WEB)
    assert gathering.remaining(WEB) > 0
    gathering.reported(WEB)
    assert gathering.remaining(WEB) == 0


async def test_clusters_that_do_not_report_are_waited_for_once(clock: FakeClock) -> None:
    gathering = Gathering(clock)
    assert gathering.await_missing(WEB, 2, 0.25) == pytest.approx(0.25)
    gathering.reported(WEB)
    assert gathering.remaining(WEB) == pytest.approx(0.25)
    gathering.reported(WEB)
    assert gathering.remaining(WEB) == 0, "both may have reported"
    await clock.advance(0.1)
    assert gathering.await_missing(WEB, 1, 0.25) == pytest.approx(0.15), "one had reported twice"
    await clock.advance(0.15)
    assert gathering.remaining(WEB) == 0
    assert gathering.await_missing(WEB, 1, 0.25) == 0


async def test_a_forgotten_binding_is_read_at_once(clock: FakeClock) -> None:
    gathering = Gathering(clock)
    gathering.was_read(WEB, 1_000)
    gathering.forget(WEB)
    assert gathering.remaining(WEB) == 0


@given(clusters=st.integers(1, 2_000), steps=st.lists(st.booleans(), max_size=200))
def test_no_report_is_read_later_than_the_pause(clusters: int, steps: list[bool]) -> None:
    """Whatever order reports and reads come in."""
    gathering = Gathering(FakeClock())
    for is_read in steps:
        if is_read:
            gathering.was_read(WEB, clusters)
        else:
            gathering.reported(WEB)
        assert 0 <= gathering.remaining(WEB) <= pause(clusters) + ROUNDING
