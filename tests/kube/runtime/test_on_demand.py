"""Informers that keep bytes: the same answers as others, from less memory."""

from __future__ import annotations

import orjson
import pytest

from karmada.kube.objects import doc
from karmada.kube.objects.doc import _KEPT_PARSED, _UNCOMPRESSED, Doc, Part, detect_mutations, parse_custom
from karmada.kube.objects.meta import without_managed_fields
from karmada.kube.objects.shapes import BARE_DOCS, METADATA, WHOLE
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import Cache
from karmada.kube.runtime.keys import Key, key_of
from tests.support.objects import kube_object


def config_map(name: str, colour: str = "red", namespace: str = "default") -> Obj:
    return kube_object("v1", "ConfigMap", name, namespace, uid=name, managedFields=[{"manager": "x"}]) | {
        "data": {"colour": colour, "text": "a" * 600}
    }


def colours(obj: Obj) -> list[str]:
    return [obj["data"]["colour"]]


DOCS = WHOLE._replace(name="documents", as_docs=True)


@pytest.fixture(params=[WHOLE, DOCS], ids=["whole", "on demand"])
def cache(request: pytest.FixtureRequest) -> Cache:
    return Cache({"colour": colours}, request.param)


def put(cache: Cache, *objects: Obj) -> None:
    for obj in objects:
        cache.set(key_of(obj), obj)


def test_what_goes_in_comes_out(cache: Cache) -> None:
    put(cache, config_map("a"), config_map("b", "blue", "other"))
    assert cache.get(Key("default", "a")) == config_map("a")
    assert cache.get(Key("default", "b")) is None
    assert cache.list() == [config_map("a"), config_map("b", "blue", "other")]
    assert cache.list("other") == [config_map("b", "blue", "other")]
    assert cache.keys("other") == [Key("other", "b")]
    assert Key("default", "a") in cache


def test_indexes_follow_changes(cache: Cache) -> None:
    put(cache, config_map("a"), config_map("b"))
    assert cache.set(Key("default", "a"), config_map("a", "blue")) == config_map("a")
    assert cache.by_index("colour", "red") == [config_map("b")]
    assert cache.keys_by_index("colour", "blue") == [Key("default", "a")]
    assert cache.has("colour", "blue")
    assert cache.pop(Key("default", "a")) == config_map("a", "blue")
    assert not cache.has("colour", "blue")
    assert set(cache.index_values("colour")) == {"red"}


def test_an_unchanged_index_value_shows_the_new_object(cache: Cache) -> None:
    put(cache, config_map("a"))
    changed = {**config_map("a"), "immutable": True}
    put(cache, changed)
    assert cache.by_index("colour", "red") == [changed]


def test_an_index_may_come_later(cache: Cache) -> None:
    put(cache, config_map("a"), config_map("b", "blue"))
    cache.add_index("name", lambda obj: [obj["metadata"]["name"]])
    assert cache.by_index("name", "b") == [config_map("b", "blue")]


def test_an_object_of_this_process_is_kept_by_its_own_bytes() -> None:
    cache = Cache(shape=BARE_DOCS)
    packed = Doc.of(config_map("a"))
    put(cache, packed.object())
    assert cache._objects[Key("default", "a")] is packed
    shown = cache.get(Key("default", "a"))
    assert shown is not None
    assert "managedFields" not in shown["metadata"]


def test_of_an_object_from_elsewhere_only_what_is_shown_is_kept() -> None:
    cache = Cache(shape=BARE_DOCS)
    put(cache, config_map("a"))
    assert b"managedFields" not in cache._objects[Key("default", "a")].raw


def test_many_objects_are_squeezed_and_still_right() -> None:
    cache = Cache({"colour": colours}, DOCS)
    many = [config_map(f"n{number}", str(number)) for number in range(600)]
    put(cache, *many)
    assert cache.list() == many
    assert cache.by_index("colour", "17") == [many[17]]
    assert sum(held.is_packed for held in cache._objects.values()) > 300


def test_what_many_caches_keep_beside_the_bytes_is_bounded_for_all_of_them() -> None:
    """A thousand members have a cache each: none of them has enough objects to be compressed by itself."""
    caches = [Cache(shape=DOCS) for _ in range(400)]
    for number, each in enumerate(caches):
        put(each, *(config_map(f"{number}-{name}") for name in "abcd"))
    parsed = sum(held.alive() is not None for each in caches for held in each._objects.values())
    assert parsed <= _KEPT_PARSED
    compressed = [held for each in caches for held in each._objects.values() if held.is_packed]
    assert len(compressed) >= 4 * len(caches) - _UNCOMPRESSED - 1
    assert caches[0].get(Key("default", "0-a")) == config_map("0-a")


def test_what_is_listed_is_not_kept_parsed(cache: Cache) -> None:
    key = Key("default", "listed")
    doc._kept.clear()
    listed = cache.replace(key, None, config_map("listed", "blue"), keep=False)
    assert listed == cache.peek(key) == config_map("listed", "blue")
    assert cache.keys_by_index("colour", "blue") == [key]
    assert not doc._kept
    assert cache.get(key) == config_map("listed", "blue")
    assert bool(doc._kept) is (cache.shape is DOCS)


def work(name: str) -> Obj:
    metadata: Obj = {"name": name, "namespace": "default", "labels": {"of": name}, "managedFields": [{"manager": "x"}]}
    return {"apiVersion": "v1", "kind": "Work", "metadata": metadata, "spec": {"text": "a" * 600}}


def test_what_a_cache_parses_in_its_own_way_is_parsed_once_for_all_that_read_it_soon() -> None:
    parsed: list[bytes] = []

    def parse(raw: bytes) -> Obj:
        parsed.append(raw)
        return parse_custom(raw)

    detect_mutations(on=False)
    indexes = {"of": lambda obj: [obj["metadata"]["labels"]["of"]]}
    cache = Cache(indexes, BARE_DOCS._replace(of_bytes=parse))
    kept = [Doc("", "", "", 0, orjson.dumps(work(f"w-{number}"))) for number in range(_KEPT_PARSED + 2)]
    for packed in kept:
        obj = parse_custom(packed.raw)
        shown = cache.replace(key_of(obj), None, Part.of(packed, obj), keep=False)
        assert shown == without_managed_fields(work(key_of(obj).name))
    assert not parsed
    first, last = Key("default", "w-0"), Key("default", f"w-{_KEPT_PARSED + 1}")
    for key in (first, first, last, first):
        assert cache.get(key) == without_managed_fields(work(key.name))
    assert len(parsed) == 2
    assert cache.by_index("of", "w-5") == [without_managed_fields(work("w-5"))]
    cache.list()
    assert len(doc._kept) == _KEPT_PARSED, "no more are kept"


def test_a_cache_of_metadata_parses_nothing_else() -> None:
    cache = Cache(shape=METADATA._replace(as_docs=True))
    packed = Doc("", "", "", 0, orjson.dumps(work("w")))
    cache.replace(Key("default", "w"), None, Part.of(packed, {"metadata": packed.metadata()}), keep=False)
    assert cache.get(Key("default", "w")) == {"metadata": work("w")["metadata"]} == cache.peek(Key("default", "w"))
    assert packed.alive() is None


def _names(raw: bytes) -> Obj:
    obj: Obj = orjson.loads(raw)
    return {"metadata": {"name": obj["metadata"]["name"]}}


def test_an_object_that_is_skimmed_is_parsed_only_as_far_as_needed(cache: Cache) -> None:
    put(cache, *(config_map(f"c{number}") for number in range(_KEPT_PARSED + 10)))
    detect_mutations(on=False)
    try:
        found = cache.peek(Key("default", "c0"), _names)
        held = cache.peek(Key("default", f"c{_KEPT_PARSED}"), _names)
    finally:
        detect_mutations()
    assert found == ({"metadata": {"name": "c0"}} if (cache.shape is DOCS) else config_map("c0"))
    assert held == config_map(f"c{_KEPT_PARSED}"), "it is parsed already"
    assert cache.peek(Key("default", "none"), _names) is None
