"""The law of the bounded cache, against a list of what was used, and what becomes of what it has dropped."""

from __future__ import annotations

import gc
import weakref
from math import inf
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.doc import Doc, SharedObject
from karmada.kube.objects.memo import Memo, Recognised

KEYS = st.integers(0, 6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 60)),
        st.tuples(st.just("get"), KEYS, st.just(0)),
        st.tuples(st.just("drop"), KEYS, st.just(0)),
        st.tuples(st.just("wait"), st.just(0), st.integers(1, 6)),
        st.tuples(st.just("clear"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


class Entry(NamedTuple):
    key: int
    value: object
    weight: int
    at: float


@given(STEPS, st.integers(0, 5), st.just(inf) | st.integers(0, 100), st.none() | st.integers(0, 8))
def test_exactly_what_was_used_last_is_kept_within_count_weight_and_age(
    steps: list[tuple[str, int, int]], most: int, most_weight: float, seconds: float | None
) -> None:
    clock, used = FakeClock(), list[Entry]()
    memo: Memo[int, object] = Memo(most, most_weight=most_weight, seconds=seconds, clock=clock)

    def counts(entry: Entry) -> bool:
        return seconds is None or clock.monotonic() - entry.at < seconds

    for step, key, number in steps:
        found = next((entry for entry in used if entry.key == key), None)
        others = [entry for entry in used if entry.key != key]
        if step == "put":
            value = object()
            used = [*others, Entry(key, value, number, clock.monotonic())]
            assert memo.put(key, value, number) is value
            while len(used) > most or (len(used) > 1 and sum(entry.weight for entry in used) > most_weight):
                used.pop(0)
            while used and not counts(used[0]):
                used.pop(0)
        elif step == "get":
            expected = found if found is not None and counts(found) else None
            assert memo.get(key) is (None if expected is None else expected.value)
            used = others if expected is None else [*others, expected]
        elif step == "drop":
            memo.drop(key)
            used = others
        elif step == "wait":
            clock._now += number
        else:
            memo.clear()
            used = []
        assert [id(value) for value in memo.values()] == [id(entry.value) for entry in used]
        assert len(memo) == len(used) <= most


def test_what_is_dropped_is_freed() -> None:
    memo: Memo[Doc, SharedObject] = Memo(2, most_weight=1 << 20)
    objects: list[weakref.ref[SharedObject]] = []
    for size in range(3):
        obj = Doc.of({"text": "x" * size}).object()
        objects.append(weakref.ref(obj))
        memo.put(obj.source, obj, obj.source.weight)
    del obj
    gc.collect()
    assert [reference() is not None for reference in objects] == [False, True, True]


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_value_is_recognised_by_its_bytes_until_many_others_came(size: int) -> None:
    recent = Recognised()
    value = {"text": "x" * size}
    raw = recent.unknown(value)
    assert raw
    assert len(raw) < 20_000
    recent.add(raw)
    assert recent.unknown({"text": "x" * size}) is None
    assert recent.unknown({"text": "y" * size})
    for number in range(1_000):
        other = recent.unknown(number)
        assert other
        recent.add(other)
    assert recent.unknown(value) == raw


def test_what_cannot_be_written_is_never_recognised() -> None:
    recent = Recognised()
    for _ in range(2):
        assert recent.unknown({"x": object()}) == b""
        recent.add(b"")
