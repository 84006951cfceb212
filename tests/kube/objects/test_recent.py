"""What stays parsed is bounded in number and in bytes."""

from __future__ import annotations

import gc
import weakref

from karmada.kube.objects.recent import Recent
from karmada.kube.objects.shared import Packed, SharedObject


def parsed(size: int) -> SharedObject:
    return Packed.of({"text": "x" * size}).object()


def keep(recent: Recent[Packed, SharedObject], obj: SharedObject) -> None:
    assert recent.put(obj.source, obj, obj.source.weight) is obj


def test_the_last_ones_are_kept() -> None:
    recent: Recent[Packed, SharedObject] = Recent(2, 1 << 20)
    objects: list[weakref.ref[SharedObject]] = []
    for _ in range(3):
        obj = parsed(10)
        objects.append(weakref.ref(obj))
        keep(recent, obj)
    del obj
    gc.collect()
    assert [reference() is not None for reference in objects] == [False, True, True]


def test_fewer_are_kept_of_large_ones_but_always_the_last() -> None:
    recent: Recent[Packed, SharedObject] = Recent(100, 10_000)
    for _ in range(50):
        keep(recent, parsed(1_000))
    assert len(recent) == 9
    keep(recent, parsed(20_000))
    assert len(recent) == 1
    keep(recent, parsed(1_000))
    assert len(recent) == 1
    for _ in range(50):
        keep(recent, parsed(1_000))
    assert len(recent) == 9


def test_nothing_is_left_once_it_is_cleared() -> None:
    recent: Recent[Packed, SharedObject] = Recent(100, 10_000)
    keep(recent, parsed(9_000))
    recent.clear()
    assert len(recent) == 0
    for _ in range(3):
        keep(recent, parsed(1_000))
    assert len(recent) == 3


def test_what_is_kept_again_counts_once_and_is_the_latest() -> None:
    recent: Recent[Packed, SharedObject] = Recent(2, 1 << 20)
    first, second, third = parsed(1), parsed(2), parsed(3)
    for obj in (first, second, first, third):
        keep(recent, obj)
    assert [recent.get(obj.source) for obj in (first, second, third)] == [first, None, third]


def test_what_is_dropped_leaves_its_place_to_others() -> None:
    recent: Recent[Packed, SharedObject] = Recent(100, 10_000)
    large = parsed(9_000)
    keep(recent, large)
    recent.drop(large.source)
    recent.drop(large.source)
    assert recent.get(large.source) is None
    for _ in range(3):
        keep(recent, parsed(3_000))
    assert len(recent) == 3
