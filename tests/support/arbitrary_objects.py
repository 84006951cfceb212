"""Arbitrary objects of built-in kinds, for properties that hold for all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from karmada.kube.schema.node import Node

SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "quantity": st.sampled_from(["0", "1", "100m", "1536Mi", "-3", "5e3"]),
    "int-or-string": st.integers(-(2**31), 2**31 - 1) | st.text(min_size=1, max_size=4),
    "time": st.sampled_from(["2026-01-02T03:04:05Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:01Z"]),
    "micro-time": st.sampled_from(["2026-01-02T03:04:05.000001Z", "1969-12-31T23:59:59.999999Z"]),
    "bytes": st.sampled_from(["", "AA==", "YWJj"]),
    "json": st.dictionaries(st.text(max_size=3), st.none() | st.integers(-5, 5) | st.booleans(), max_size=2),
    "fields-v1": st.just({"f:a": {".": {}}}),
    "schema-or-bool": st.booleans(),
    "schema-or-array": st.just([{"type": "string"}]),
    "schema-or-strings": st.just(["a"]),
}
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=5),
    "boolean": st.booleans(),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
}


@st.composite
def values(draw: st.DrawFn, node: Node, depth: int) -> Any:
    if node.special:
        return draw(SPECIAL[node.special])
    if node.values is not None:
        return draw(st.dictionaries(st.text(max_size=3), values(node.values, depth), min_size=1, max_size=2))
    if node.items is not None:
        return draw(st.lists(values(node.items, depth), min_size=1, max_size=2))
    if node.type == "object":
        names = sorted(set(node.properties) - {"apiVersion", "kind"}) if depth else []
        chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) if names else []
        return {name: draw(values(node.properties[name], depth - 1)) for name in chosen}
    if node.type == "integer":
        limit = 2**31 if node.format == "int32" else 2**63
        return draw(st.integers(-limit, limit - 1))
    return draw(SCALARS[node.type])
