from __future__ import annotations

from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from karmada.kube.sim.controllers.rollout import (
    Bounds,
    Part,
    Step,
    new_size,
    old_steps,
    proportional,
    rolling_bounds,
    share,
)
from tests.support.cases import cases


@cases(
    (3, 10, True, 3),
    (0, 10, False, 0),
    ("25%", 10, True, 3),
    ("25%", 10, False, 2),
    ("25%", 4, True, 1),
    ("25%", 4, False, 1),
    ("0%", 10, True, 0),
    ("100%", 7, False, 7),
    ("1%", 1, True, 1),
    ("150%", 3, True, 5),
)
def test_a_share_is_a_number_or_a_rounded_percentage(value: int | str, total: int, up: bool, result: int) -> None:
    assert share(value, total, up=up) == result


@cases(
    ("25%", "25%", 3, Bounds(1, 0)),
    ("25%", "25%", 4, Bounds(1, 1)),
    ("25%", "25%", 1, Bounds(1, 0)),
    ("25%", "25%", 10, Bounds(3, 2)),
    (0, 0, 5, Bounds(0, 1)),
    (0, "10%", 5, Bounds(0, 1)),
    (0, 1, 5, Bounds(0, 1)),
    (2, 9, 5, Bounds(2, 5)),
    ("25%", "25%", 0, Bounds(0, 0)),
)
def test_surge_rounds_up_and_unavailable_down_and_one_of_them_is_not_zero(
    surge: int | str, unavailable: int | str, wanted: int, result: Bounds
) -> None:
    assert rolling_bounds(surge, unavailable, wanted) == result


@cases(
    (3, 1, 0, 0, 3),
    (3, 1, 0, 3, 1),
    (3, 1, 1, 4, 1),
    (3, 1, 1, 3, 2),
    (10, 3, 0, 10, 3),
    (3, 1, 5, 5, 3),
    (3, 0, 0, 3, 0),
    (3, 1, 0, 9, 0),
    (0, 0, 2, 4, 0),
)
def test_the_new_set_grows_as_far_as_the_surge_allows(
    wanted: int, surge: int, new: int, total: int, result: int
) -> None:
    assert new_size(wanted, surge, new, total) == result


@cases(
    (3, 0, Part("new", 1, 0), [Part("a", 3, 3)], []),
    (3, 0, Part("new", 1, 1), [Part("a", 3, 3)], [Step("a", 2)]),
    (4, 1, Part("new", 1, 0), [Part("a", 4, 4)], [Step("a", 3)]),
    (3, 0, Part("new", 3, 3), [Part("a", 1, 1)], [Step("a", 0)]),
    (3, 0, Part("new", 3, 3), [], []),
    # pods that never came up go first, whichever set they are in
    (4, 1, Part("new", 1, 0), [Part("a", 2, 2), Part("b", 2, 0)], [Step("b", 1)]),
    (4, 1, Part("new", 2, 0), [Part("a", 3, 0), Part("b", 3, 3)], [Step("a", 0)]),
    # then the oldest set
    (4, 1, Part("new", 2, 2), [Part("a", 2, 2), Part("b", 2, 2)], [Step("a", 0), Step("b", 1)]),
    # one set may lose both
    (4, 2, Part("new", 1, 1), [Part("a", 4, 3)], [Step("a", 3), Step("a", 1)]),
)
def test_old_sets_shrink_as_far_as_enough_pods_stay_available(
    wanted: int, unavailable: int, new: Part, old: list[Part], steps: list[Step]
) -> None:
    assert old_steps(wanted, unavailable, new, old) == steps


@cases(
    (20, 3, [Part("a", 8, limit=13), Part("b", 5, limit=13)], {"a": 14, "b": 9}),
    (5, 2, [Part("a", 8, limit=13), Part("b", 5, limit=13)], {"a": 4, "b": 3}),
    (0, 0, [Part("a", 8, limit=13), Part("b", 5, limit=13)], {"a": 0, "b": 0}),
    # equal sets: what is left over goes to the newer one when growing, from the older one when shrinking
    (11, 0, [Part("a", 5, limit=10), Part("b", 5, limit=10)], {"a": 5, "b": 6}),
    (9, 0, [Part("a", 5, limit=10), Part("b", 5, limit=10)], {"a": 4, "b": 5}),
    # nobody noted for how many the sizes were meant
    (6, 0, [Part("a", 1), Part("b", 2)], {"a": 2, "b": 4}),
)
def test_a_changed_number_of_replicas_is_shared_out_by_size(
    wanted: int, surge: int, parts: list[Part], sizes: dict[str, int]
) -> None:
    assert dict(proportional(wanted, surge, parts, 3)) == sizes


counts = st.integers(0, 40)
amounts = st.one_of(st.integers(0, 10), st.integers(0, 100).map(lambda percent: f"{percent}%"))


@st.composite
def part_lists(draw: st.DrawFn) -> list[Part]:
    sizes = draw(st.lists(counts, max_size=5))
    return [Part(f"rs{n}", size, draw(st.integers(0, size)), draw(counts)) for n, size in enumerate(sizes)]


@given(part_lists(), counts, counts, counts)
def test_sharing_out_gives_exactly_what_is_allowed_and_never_less_than_nothing(
    parts: list[Part], wanted: int, surge: int, known: int
) -> None:
    assume(parts)
    sizes = dict(proportional(wanted, surge, parts, known))
    assert set(sizes) == {part.name for part in parts}
    assert all(size >= 0 for size in sizes.values())
    assert sum(sizes.values()) == (wanted + surge if wanted else 0)


@given(part_lists(), counts, counts, counts)
def test_sharing_out_moves_all_sets_the_same_way(parts: list[Part], wanted: int, surge: int, known: int) -> None:
    """With the sizes' own total as everyone's limit, as the notes on real sets have it."""
    before = sum(part.replicas for part in parts)
    assume(before)
    parts = [part._replace(limit=before) for part in parts]
    change = (wanted + surge if wanted else 0) - before
    sizes = dict(proportional(wanted, surge, parts, known))
    for part in parts:
        assert (sizes[part.name] - part.replicas) * change >= 0


@given(counts, amounts, amounts)
def test_the_bounds_leave_room_to_move_unless_nothing_is_wanted(
    wanted: int, surge: int | str, unavailable: int | str
) -> None:
    bounds = rolling_bounds(surge, unavailable, wanted)
    assert 0 <= bounds.unavailable <= wanted
    assert wanted == 0 or bounds.surge + bounds.unavailable > 0


@given(counts, amounts, amounts, part_lists(), st.randoms(use_true_random=False))
def test_every_rollout_ends_within_its_bounds(
    wanted: int,
    surge: int | str,
    unavailable: int | str,
    old: list[Part],
    random: Random,
) -> None:
    """Step by step, with pods that come up in any order; never too many, never too few that were there before."""
    bounds = rolling_bounds(surge, unavailable, wanted)
    new = Part("new", 0)
    most = max(wanted + bounds.surge, sum(part.replicas for part in old))
    for _ in range(500):
        total = new.replicas + sum(part.replicas for part in old)
        assert total <= most
        grown = new_size(wanted, bounds.surge, new.replicas, total)
        if grown != new.replicas:
            assert grown <= wanted
            assert total - new.replicas + grown <= max(total, wanted + bounds.surge)
            new = new._replace(replicas=grown)
            continue
        before = new.available + sum(part.available for part in old)
        for step in old_steps(wanted, bounds.unavailable, new, old):
            old = [shrunk(part, step) for part in old]
        after = new.available + sum(part.available for part in old)
        assert after >= min(before, wanted - bounds.unavailable)
        if new.replicas == wanted and not any(part.replicas for part in old):
            return
        new = new._replace(available=random.randint(min(new.replicas, new.available + 1), new.replicas))
    raise AssertionError(f"not done: {new} {old}")


def shrunk(part: Part, step: Step) -> Part:
    """Pods that are not available go first, as the set itself does it."""
    if part.name != step.name:
        return part
    assert step.replicas < part.replicas
    return part._replace(replicas=step.replicas, available=min(part.available, step.replicas))
