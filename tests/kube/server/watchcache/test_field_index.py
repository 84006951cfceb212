"""Objects by the value of a field: found without a look at all, and always as they are now."""

from __future__ import annotations

import random

from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.field_index import FieldIndex
from tests.kube.server.watchcache.cached_stores import Writer, names


class Counted:
    """How many objects were looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self, obj: Obj) -> str:
        self.looks += 1
        return str((obj["metadata"].get("labels") or {}).get("color", ""))


async def test_it_finds_what_a_look_at_all_objects_finds(pods: Collection, write: Writer) -> None:
    chance, value_of = random.Random(3), Counted()
    index = FieldIndex(pods, value_of)
    for _ in range(80):
        where = (chance.choice("ab"), f"p{chance.randrange(6)}")
        if where in write.revisions and chance.random() < 0.3:
            await write.delete(*where)
        else:
            await write.put(*where, color=chance.choice(["red", "blue"]))
        if chance.random() < 0.3:
            for color in ("red", "blue", "none"):
                assert index.find(color) == [entry for entry in pods.list() if value_of(entry.object()) == color]


async def test_a_look_costs_what_has_changed_since_the_last_one(pods: Collection, write: Writer) -> None:
    for number in range(20):
        await write.put("a", f"p{number}", color="red")
    value_of = Counted()
    index = FieldIndex(pods, value_of)
    assert len(index.find("red")) == 20
    index.find("blue")
    assert value_of.looks == 20
    await write.put("a", "p3", color="blue")
    assert names(index.find("blue")) == ["a/p3"]
    assert value_of.looks == 21


async def test_after_a_gap_it_is_made_again(pods: Collection, write: Writer) -> None:
    index = FieldIndex(pods, Counted())
    await write.put("a", "x", color="red")
    assert names(index.find("red")) == ["a/x"]
    pods.reset(pods.revision)
    assert index.find("red") == []
    await write.put("a", "y", color="red")
    assert names(index.find("red")) == ["a/y"]
