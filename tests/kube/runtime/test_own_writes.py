"""Reading what one has just written, while the informer has not heard of it."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.own_writes import OwnWrites

KEY = Key("n", "x")


class FakeInformer:
    """An informer that hears what the test says."""

    def __init__(self) -> None:
        self.objects: dict[Key, Obj] = {}
        self.resource_version = "0"
        self.handlers: list[Any] = []

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def get(self, key: Key) -> Obj | None:
        return self.objects.get(key)

    def hear(self, obj: Obj, *, gone: bool = False) -> None:
        old = self.objects.pop(KEY, None)
        if not gone:
            self.objects[KEY] = obj
        for handler in self.handlers:
            handler(obj if gone else old, None if gone else obj)
        self.resource_version = obj["metadata"]["resourceVersion"]


def made(version: int, uid: str = "u") -> Obj:
    return {"metadata": {"namespace": "n", "name": "x", "uid": uid, "resourceVersion": str(version)}}


@pytest.fixture
def informer() -> FakeInformer:
    return FakeInformer()


@pytest.fixture
def own(informer: FakeInformer) -> OwnWrites:
    return OwnWrites(informer)  # type: ignore[arg-type]


def test_a_write_counts_until_the_informer_has_it(own: OwnWrites, informer: FakeInformer) -> None:
    own.wrote(made(5))
    assert own.get(KEY) == made(5)
    assert own.unheard() == [made(5)]
    informer.hear(made(3))
    assert own.get(KEY) == made(5)
    informer.hear(made(5))
    assert own.get(KEY) is informer.objects[KEY]
    assert own.unheard() == []
    informer.hear(made(7))
    assert own.get(KEY) == made(7)


def test_an_older_write_does_not_hide_a_newer_one(own: OwnWrites) -> None:
    own.wrote(made(6))
    own.wrote(made(5))
    assert own.get(KEY) == made(6)


def test_a_write_that_the_informer_knows_already_is_not_kept(own: OwnWrites, informer: FakeInformer) -> None:
    informer.hear(made(8))
    own.wrote(made(8))
    assert own.unheard() == []


def test_what_is_gone_is_gone(own: OwnWrites, informer: FakeInformer) -> None:
    own.wrote(made(5))
    informer.hear(made(6), gone=True)
    assert own.get(KEY) is None


def test_the_end_of_the_object_before_is_not_the_end_of_this_one(own: OwnWrites, informer: FakeInformer) -> None:
    own.wrote(made(5, "new"))
    informer.hear(made(4, "old"), gone=True)
    assert own.get(KEY) == made(5, "new")


def test_an_informer_that_has_come_further_is_believed_even_if_it_never_saw_the_object(
    own: OwnWrites, informer: FakeInformer
) -> None:
    own.wrote(made(5))
    informer.resource_version = "9"
    assert own.get(KEY) is None
    assert own.unheard() == []
