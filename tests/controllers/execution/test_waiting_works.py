"""Works that wait for their cluster or for the control plane."""

from __future__ import annotations

from karmada.controllers.execution.waiting_works import WaitingWorks
from karmada.kube.runtime.keys import Key

A1, A2, B1 = Key("karmada-es-a", "one"), Key("karmada-es-a", "two"), Key("karmada-es-b", "one")


def test_what_waits_for_one_thing_is_taken_once_and_without_what_waits_for_another() -> None:
    waiting = WaitingWorks()
    for awaited, key in (("a", A1), ("a", A2), ("a", A1), ("b", B1)):
        waiting.add(awaited, key)
    assert sorted(waiting.take("a")) == [A1, A2]
    assert list(waiting.take("a")) == []
    assert list(waiting.take("b")) == [B1]


def test_several_namespaces_may_wait_for_the_same() -> None:
    waiting = WaitingWorks()
    waiting.add("", A1)
    waiting.add("", B1)
    assert sorted(waiting.take("")) == [A1, B1]


def test_what_is_set_aside_again_while_it_is_taken_waits_for_the_next_time() -> None:
    waiting = WaitingWorks()
    waiting.add("a", A1)
    for key in waiting.take("a"):
        waiting.add("a", key)
    assert list(waiting.take("a")) == [A1]


def test_what_is_dropped_is_not_taken() -> None:
    waiting = WaitingWorks()
    waiting.add("a", A1)
    waiting.drop("a")
    assert list(waiting.take("a")) == []
