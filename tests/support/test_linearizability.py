"""The checker accepts what one register can do, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import cases
from tests.support.linearizability import Kind, Operation, Outcome, Seen, State, check, out_of_order, step, watch_errors


def op(kind: Kind, called: float, returned: float, outcome: Outcome = "ok", **more: Any) -> Operation:
    return Operation("k", kind, called, returned, outcome, **more)


def write(token: int, called: float, returned: float = float("inf"), outcome: Outcome = "ok") -> Operation:
    return op("create", called, returned, outcome, token=token)


LOST = write(1, 0, outcome="unknown")


@cases(
    [write(1, 0, 1), op("read", 2, 3, token=1)],
    [write(1, 0, 4), op("read", 1, 2), op("read", 2.5, 3, token=1)],
    [LOST, op("read", 5, 6), op("read", 7, 8, token=1)],
    [LOST, op("read", 5, 6), write(2, 7, 8)],
    [LOST, write(2, 7, 8, "refused")],
    [write(1, 0, 1), op("update", 2, 5, token=2, expected=1), op("update", 3, 4, "refused", token=3, expected=1)],
    [write(1, 0, 1), op("delete", 2, 3), op("delete", 4, 5, "refused"), write(2, 6, 7)],
)
def test_what_a_register_can_do_is_accepted(history: list[Operation]) -> None:
    assert check(history) == []


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([write(1, 0, 1), op("read", 2, 3)], id="a lost write"),
        pytest.param([write(1, 0, 4), op("read", 1, 2, token=1), op("read", 2.5, 3)], id="a read that goes back"),
        pytest.param([write(1, 0, 1), write(2, 2, 3)], id="created twice"),
        pytest.param(
            [write(1, 0, 1)] + [op("update", 2, 5, token=token, expected=1) for token in (2, 3)], id="two swaps of one"
        ),
        pytest.param([op("read", 0, 1, token=9)], id="from nowhere"),
        pytest.param([write(1, 0, 1), op("delete", 2, 3, "refused")], id="not found although it is there"),
        pytest.param([LOST, op("read", 5, 6, token=1), op("read", 7, 8)], id="lost after it was seen"),
    ],
)
def test_what_no_register_can_do_is_found(history: list[Operation]) -> None:
    assert len(check(history)) == 1


@given(st.lists(st.tuples(st.sampled_from(["read", "create", "update", "delete"]), st.floats(0, 3), st.booleans())))
def test_every_history_of_a_register_is_accepted_however_much_its_operations_overlap(
    steps: list[tuple[Kind, float, bool]],
) -> None:
    state: State = None
    history = []
    for moment, (kind, spread, known) in enumerate(steps):
        token = state if kind == "read" else moment
        made = op(kind, moment - spread, moment + spread, token=token, expected=state)
        if kind != "read" and (state is None) != (kind == "create"):
            made.outcome = "refused"
        state = step(state, made)
        if not known:
            made.outcome, made.returned = "unknown", float("inf")
        history.append(made)
    assert check(history) == []


def test_revisions_follow_the_clock() -> None:
    first, second = write(1, 0, 1), write(2, 2, 3)
    first.version, second.version = 10, 11
    assert out_of_order([first, second]) == []
    first.version = 12
    assert out_of_order([first, second]) == [(second, first)]


@cases(
    ([Seen("ADDED", "k", 1, 10), Seen("MODIFIED", "k", 2, 11)], ""),
    ([Seen("ADDED", "k", 1, 10), Seen("MODIFIED", "k", 2, 10)], "comes after revision 10"),
    ([Seen("ADDED", "k", 1, 10), Seen("ADDED", "k", 2, 11)], "the key was present"),
    ([Seen("MODIFIED", "k", 1, 10)], "the key was absent"),
    ([Seen("ADDED", "k", 3, 10)], "acknowledged, but shown as"),
    ([Seen("ADDED", "other", 1, 11)], "acknowledged, but shown as None"),
)
def test_gaps_repetitions_and_wrong_order_of_a_watch_are_found(events: list[Seen], error: str) -> None:
    made = write(1, 0, 1)
    made.version = 10
    errors = watch_errors(events, [made])
    assert (error in "\n".join(errors)) if error else errors == []
