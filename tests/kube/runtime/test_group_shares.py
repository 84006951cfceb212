"""A bound for each group, first come first served, and no key is forgotten."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.runtime.group_shares import GroupShares


def test_a_group_has_so_many_turns_and_passes_them_on_in_order() -> None:
    queued: list[str] = []
    shares: GroupShares[str] = GroupShares(queued.append)
    assert [shares.take(key, "slow", 2) for key in "abcd"] == [True, True, False, False]
    assert shares.take("x", "other", 2)
    assert shares.take("a", "slow", 2), "it has one already"
    shares.give_up("a")
    assert queued == ["c"]
    assert shares.take("c", "slow", 2), "passed on"
    assert not shares.take("a", "slow", 2)
    shares.give_up("b")
    shares.give_up("c")
    assert queued == ["c", "d", "a"]


def test_a_key_that_changes_its_group_frees_its_turn_in_the_old_one() -> None:
    queued: list[str] = []
    shares: GroupShares[str] = GroupShares(queued.append)
    assert shares.take("a", "one", 1)
    assert not shares.take("b", "one", 1)
    assert shares.take("a", "two", 1)
    assert queued == ["b"]


def test_a_dropped_group_starts_anew() -> None:
    queued: list[str] = []
    shares: GroupShares[str] = GroupShares(queued.append)
    assert shares.take("a", "gone", 1)
    assert not shares.take("b", "gone", 1)
    assert shares.take("c", "stays", 1)
    assert not shares.take("d", "stays", 1)
    shares.drop(lambda group: group == "gone")
    assert shares.take("e", "gone", 1)
    shares.give_up("a")
    assert not shares.take("f", "gone", 1), "a turn of before does not count twice"
    shares.give_up("c")
    assert queued == ["d"]


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(("one", "two", "")))))
def test_every_key_gets_its_turn_and_no_group_has_more_than_its_limit(
    limit: int, changes: list[tuple[str, str]]
) -> None:
    """Keys are queued as their group changes ("" needs no turn); every other one runs while the next starts."""
    group_of: dict[str, str] = {}
    queue: list[str] = []
    running: dict[str, str] = {}
    again: set[str] = set()
    reconciled: dict[str, str] = {}
    shares: GroupShares[str] = GroupShares(queue.append)
    steps = 0
    while changes or queue or running:
        steps += 1
        assert steps < 1000, "keys are queued for ever"
        if changes:
            key, group = changes.pop(0)
            group_of[key] = group
            queue.append(key)
        if queue:
            key = queue.pop(0)
            group = group_of[key]
            if key in running:
                again.add(key)
            elif not group or shares.take(key, group, limit):
                running[key] = group
        assert all(count <= limit for group, count in Counter(running.values()).items() if group)
        if running and (steps % 2 or not queue):
            key, group = next(iter(running.items()))
            del running[key]
            reconciled[key] = group
            shares.give_up(key)
            if key in again:
                again.remove(key)
                queue.append(key)
    assert reconciled == group_of
