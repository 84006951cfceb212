"""Indexes of a cache: those of the objects that are there, and not computed for reports that cannot change them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.doc import Doc
from karmada.kube.objects.shapes import BARE_DOCS, WHOLE, Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import Cache, ignores_status
from karmada.kube.runtime.keys import Key

KEY = Key("default", "web")
WORDS = st.sampled_from(["a", "b", "c"])
LABELS = st.dictionaries(WORDS, WORDS, max_size=2)
SPECS: list[Obj] = [{"cluster": "a"}, {"cluster": "b"}]


def state(version: int, labels: Obj, spec: Obj, phase: str) -> Obj:
    metadata: Obj = {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": str(version)}
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


@ignores_status
def by_placement(obj: Obj) -> Iterable[str]:
    labels = obj["metadata"].get("labels") or {}
    return [obj["spec"]["cluster"], *(f"{key}={value}" for key, value in labels.items())]


def by_phase(obj: Obj) -> Iterable[str]:
    return (obj["status"]["phase"],)


@given(
    st.lists(st.tuples(LABELS, st.sampled_from(SPECS), WORDS), min_size=1, max_size=6),
    st.sampled_from([WHOLE, BARE_DOCS]),
)
def test_indexes_are_those_of_the_last_state(states: list[tuple[Obj, Obj, str]], shape: Shape) -> None:
    indexes = {"placement": by_placement, "phase": by_phase}
    cache = Cache(indexes, shape)
    for version, parts in enumerate(states):
        cache.set(KEY, state(version, *parts))
    last = state(len(states) - 1, *states[-1])
    for name, function in indexes.items():
        assert set(cache.index_values(name)) == set(function(last))
        assert all(cache.keys_by_index(name, value) == [KEY] for value in function(last))


def test_a_report_computes_the_indexes_that_may_depend_on_the_status_and_no_others() -> None:
    computed: list[str] = []

    @ignores_status
    def of_spec(obj: Obj) -> Iterable[str]:
        computed.append("spec")
        return by_placement(obj)

    def of_status(obj: Obj) -> Iterable[str]:
        computed.append("status")
        return by_phase(obj)

    cache = Cache({"spec": of_spec, "status": of_status})
    first = state(1, {"a": "b"}, SPECS[0], "a")
    cache.set(KEY, first)
    computed.clear()
    metadata = {**first["metadata"], "resourceVersion": "2", "managedFields": [{"manager": "reporter"}]}
    cache.set(KEY, {**first, "metadata": metadata, "status": {"phase": "b"}})
    assert computed == ["status", "status"]
    assert cache.keys_by_index("status", "b") == [KEY]
    assert cache.keys_by_index("spec", "a") == [KEY]


@pytest.mark.parametrize("shape", [WHOLE, BARE_DOCS])
def test_keys_of_a_namespace_are_found_without_reading_objects(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(shape=shape)
    for key in (Key("a", "x"), Key("b", "x"), Key("a", "y")):
        cache.set(key, {"metadata": {"name": key.name, "namespace": key.namespace}})
    with monkeypatch.context() as patched:
        patched.setattr(Doc, "shaped", None)
        assert cache.keys("a") == [Key("a", "x"), Key("a", "y")]
    cache.set(Key("a", "z"), {"metadata": {"name": "z", "namespace": "a"}})
    cache.pop(Key("a", "x"))
    assert cache.keys("a") == [Key("a", "y"), Key("a", "z")]
    assert cache.keys("c") == []
