"""Whatever fails, in whatever order: the last copy that may serve stays, and everything ends at rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karmada.rehearsal.event_loop import RehearsalLoop
from karmada.rehearsal.network import State
from tests.controllers.failover.histories import MEMBERS, WORKLOADS, History, Play, Step

EXAMPLES = int(os.environ.get("HISTORIES", "12"))
"""So many in every run of the suite; `make histories` plays thousands."""

members = st.sampled_from(MEMBERS)
workloads = st.sampled_from(sorted(WORKLOADS))
down = st.sampled_from([State.DOWN, State.HANGING, State.FAILING])


def step(what: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(*arguments).map(lambda drawn: Step(what, *drawn))


steps = st.one_of(
    step("fail", members, down),
    *(step(what, members) for what in ("up", "taint", "untaint", "sicken", "cure", "flap")),
    step("scale", workloads, st.integers(min_value=1, max_value=6)),
    step("change", workloads, st.sampled_from(["nginx:1.26", "nginx:1.27"])),
    step("tolerate", workloads, st.sampled_from([0, 30, 300])),
    step("restart"),
    step("wait", st.just(""), st.sampled_from([3.0, 30.0, 60.0, 700.0])),
)


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """One fleet for all histories of the module, in a loop of its own."""
    loop = RehearsalLoop()
    history = History(tmp_path_factory.mktemp("histories"))
    loop.run_until_complete(history.start())
    yield lambda steps: loop.run_until_complete(history.play(steps))
    loop.run_until_complete(history.fleet.stop())
    loop.close()


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=3, max_size=9))
def test_no_history_loses_the_last_copy_and_all_end_at_rest(play: Play, history: list[Step]) -> None:
    play(history)


NAMED = {
    "a tainted cluster that nothing can replace": [Step("taint", "m1"), Step("wait", "", 1300.0)],
    "configuration in a cluster that is silent for more than an hour": [
        Step("fail", "m1", State.DOWN),
        Step("wait", "", 4000.0),
        Step("up", "m1"),
        Step("wait", "", 60.0),
    ],
    "a cluster that fails its health check for a while": [
        Step("fail", "m1", State.FAILING),
        Step("wait", "", 90.0),
        Step("up", "m1"),
        Step("scale", "pinned", 5),
        Step("wait", "", 60.0),
    ],
    "all clusters at once": [
        *(Step("fail", name, State.DOWN) for name in MEMBERS),
        Step("wait", "", 1000.0),
        Step("restart"),
        *(Step("up", name) for name in MEMBERS),
    ],
    "the replacement is sick": [
        Step("sicken", "m2"),
        Step("sicken", "m3"),
        Step("taint", "m1"),
        Step("wait", "", 1300.0),
    ],
}


@pytest.mark.parametrize("steps", NAMED.values(), ids=NAMED.keys())
def test_a_history_that_loses_something_elsewhere(play: Play, steps: list[Step]) -> None:
    play(steps)
