from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.patch.fieldset import difference, intersection, union
from karmada.kube.patch.ownership import ANY, Place, added, applied, collapse, compare, created, root_place
from karmada.kube.schema.node import Node
from tests.support.cases import cases

STRING = Node(type="string")
PORT = Node(
    type="object",
    properties={"port": Node(type="integer"), "protocol": Node(type="string", default="TCP"), "name": STRING},
)
SPEC = Node(
    type="object",
    properties={
        "leaf": STRING,
        "struct": Node(type="object", properties={"x": STRING, "y": STRING}),
        "map": Node(type="object", values=STRING),
        "maps": Node(type="object", values=Node(type="object", values=STRING)),
        "atomicMap": Node(type="object", values=STRING, map_type="atomic"),
        "atomicList": Node(type="array", items=PORT),
        "set": Node(type="array", items=STRING, list_type="set"),
        "ports": Node(type="array", items=PORT, list_type="map", list_keys=("port", "protocol")),
        "free": Node(type="object", preserve=True),
        "amount": Node(special="int-or-string"),
    },
)
PLACE = Place(SPEC, True)
PORT_80 = 'k:{"port":80,"protocol":"TCP"}'


@cases(
    ({"leaf": "a", "amount": "5%"}, {"f:leaf": {}, "f:amount": {}}),
    ({"leaf": None}, {"f:leaf": {}}),
    ({"struct": {"x": "1"}}, {"f:struct": {"f:x": {}}}),
    ({"struct": {}}, {"f:struct": {}}),
    ({"struct": None}, {"f:struct": {}}),
    ({"map": {"a": "1"}}, {"f:map": {"f:a": {}}}),
    ({"maps": {"a": {"b": "1"}}}, {"f:maps": {"f:a": {".": {}, "f:b": {}}}}),
    ({"atomicMap": {"a": "1"}}, {"f:atomicMap": {}}),
    ({"atomicList": [{"port": 1}]}, {"f:atomicList": {}}),
    ({"set": ["a", "b"]}, {"f:set": {'v:"a"': {}, 'v:"b"': {}}}),
    ({"set": []}, {}),
    (
        {"ports": [{"port": 80, "name": "http"}]},
        {"f:ports": {PORT_80: {".": {}, "f:port": {}, "f:name": {}}}},
    ),
    ({"free": {"a": {"b": [1]}}}, {"f:free": {"f:a": {".": {}, "f:b": {}}}}),
)
def test_a_configuration_owns_its_leaves_map_keys_and_items(config: Any, owned: Any) -> None:
    assert applied(PLACE, config) == owned


@cases(
    ({"leaf": "a"}, {"leaf": "a"}, {}, {}),
    ({"leaf": "a"}, {"leaf": "b"}, {"f:leaf": {}}, {}),
    ({"leaf": "a"}, {}, {}, {"f:leaf": {}}),
    ({}, {"struct": {"x": "1"}}, {"f:struct": {".": {}, "f:x": {}}}, {}),
    ({}, {"struct": {}}, {"f:struct": {}}, {}),
    ({"struct": {"x": "1"}}, {"struct": {"x": "1", "y": "2"}}, {"f:struct": {"f:y": {}}}, {}),
    ({"struct": {"x": "1"}}, {}, {}, {"f:struct": {".": {}, "f:x": {}}}),
    ({"struct": {"x": "1"}}, {"struct": {}}, {}, {"f:struct": {"f:x": {}}}),
    ({"struct": None}, {"struct": {"x": "1"}}, {"f:struct": {"f:x": {}}}, {}),
    ({"struct": {}}, {"struct": None}, {"f:struct": {}}, {}),
    ({"map": {"a": "1"}}, {"map": {"a": "2", "b": "3"}}, {"f:map": {"f:a": {}, "f:b": {}}}, {}),
    ({"atomicMap": {"a": "1"}}, {"atomicMap": {"a": "2"}}, {"f:atomicMap": {}}, {}),
    ({"atomicList": [{"port": 1}]}, {"atomicList": []}, {"f:atomicList": {}}, {}),
    ({"set": ["a", "b"]}, {"set": ["b", "c"]}, {"f:set": {'v:"c"': {}}}, {"f:set": {'v:"a"': {}}}),
    ({"set": ["a", "b"]}, {"set": ["b", "a"]}, {}, {}),
    (
        {"ports": [{"port": 80, "name": "a"}]},
        {"ports": [{"port": 81}, {"port": 80, "protocol": "TCP", "name": "b"}]},
        {
            "f:ports": {
                PORT_80: {"f:name": {}, "f:protocol": {}},
                'k:{"port":81,"protocol":"TCP"}': {".": {}, "f:port": {}},
            }
        },
        {},
    ),
    (
        {"free": {"a": [1]}},
        {"free": {"a": [2], "b": {"c": 1}}},
        {"f:free": {"f:a": {}, "f:b": {".": {}, "f:c": {}}}},
        {},
    ),
    ({"free": {"a": {"b": 1}}}, {"free": {"a": 1}}, {"f:free": {"f:a": {}}}, {"f:free": {"f:a": {"f:b": {}}}}),
    ({"free": {"a": 1}}, {"free": {"a": {"b": 1}}}, {"f:free": {"f:a": {".": {}, "f:b": {}}}}, {}),
)
def test_a_comparison_finds_what_appeared_changed_and_went(old: Any, new: Any, changed: Any, removed: Any) -> None:
    assert compare(PLACE, old, new) == (changed, removed)


def port(name: str) -> dict[str, Any]:
    return {"port": 80, "protocol": "TCP", "name": name}


@cases(
    ([port("a"), port("b")], [port("a"), port("b")], {}, {}),
    ([port("a"), port("b")], [port("a"), port("c")], {PORT_80: {}}, {}),
    ([port("a")], [port("a"), port("b")], {PORT_80: {}}, {PORT_80: {"f:port": {}, "f:protocol": {}, "f:name": {}}}),
    ([port("a"), port("b")], [port("a")], {PORT_80: {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}}}, {}),
    ([port("a"), port("b")], [], {}, {PORT_80: {}}),
)
def test_items_with_the_same_key_are_owned_as_one(old: Any, new: Any, changed: Any, removed: Any) -> None:
    found = compare(PLACE, {"ports": old}, {"ports": new})
    assert found == ({"f:ports": changed} if changed else {}, {"f:ports": removed} if removed else {})


def test_a_new_object_is_compared_with_the_empty_form_of_its_type() -> None:
    held = Node(type="object", properties={"x": STRING, "list": SPEC.properties["ports"]}, omit_empty=frozenset({"x"}))
    node = Node(type="object", properties={"held": held, "pointer": SPEC.properties["struct"]}, always=("held",))
    value = {"held": {"x": "1", "list": [{"port": 80}]}, "pointer": {"x": "1"}}
    fields = {
        "f:held": {"f:x": {}, "f:list": {PORT_80: {".": {}, "f:port": {}}}},
        "f:pointer": {".": {}, "f:x": {}},
    }
    assert created(Place(node, False), value) == fields
    assert created(Place(node, False), {"held": {}}) == {}
    assert created(Place(node, True), value)["f:held"]["."] == {}


def test_below_a_value_that_became_atomic_nothing_is_owned() -> None:
    fields = {"f:atomicMap": {"f:a": {}, "f:b": {}}, "f:ports": {PORT_80: {".": {}, "f:port": {}}}}
    assert collapse(PLACE, fields) == {"f:atomicMap": {}, "f:ports": {PORT_80: {".": {}, "f:port": {}}}}
    granular: Any = {"f:map": {"f:a": {}}, "f:unknown": {"f:x": {}}}
    assert collapse(PLACE, granular) is granular


def test_recursive_types_have_places_as_deep_as_the_object() -> None:
    tree = Node(type="object", properties={"value": STRING})
    tree.properties["child"] = tree
    assert applied(Place(tree, True), {"child": {"child": {"value": "x"}}}) == {"f:child": {"f:child": {"f:value": {}}}}


def test_metadata_is_divided_the_same_way_for_every_kind() -> None:
    obj = {"metadata": {"finalizers": ["a"], "ownerReferences": [{"uid": "u", "name": "n"}], "labels": {"l": "1"}}}
    owned: Any = {
        "f:metadata": {
            "f:finalizers": {'v:"a"': {}},
            "f:ownerReferences": {'k:{"uid":"u"}': {}},
            "f:labels": {"f:l": {}},
        }
    }
    assert applied(root_place(None, True), obj) == owned
    assert applied(root_place(Node(type="object", properties={"metadata": Node(type="object")}), True), obj) == owned


texts = st.sampled_from(["1", "2"])
ports = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(80, 82)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": texts}
    ),
    max_size=3,
)
free = st.recursive(
    texts | st.none(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2)
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "leaf": texts,
        "struct": st.fixed_dictionaries({}, optional={"x": texts, "y": texts}),
        "map": st.dictionaries(texts, texts, max_size=2),
        "set": st.lists(texts, max_size=3, unique=True),
        "ports": ports,
        "atomicMap": st.dictionaries(texts, texts, max_size=2),
        "free": st.dictionaries(texts, free, max_size=2),
    },
)


@given(specs, specs)
def test_comparing_backwards_swaps_added_and_removed(old: Any, new: Any) -> None:
    changed, removed = compare(PLACE, old, new)
    back_changed, back_removed = compare(PLACE, new, old)
    assert compare(PLACE, old, old) == ({}, {})
    assert difference(removed, back_changed) == {}
    assert difference(back_removed, changed) == {}
    everything = union(added(PLACE, old), added(PLACE, new))
    assert difference(difference(union(changed, removed), everything), {".": {}}) == {}


@given(specs)
def test_whatever_a_configuration_owns_a_create_owns_too(config: Any) -> None:
    owned, made = applied(PLACE, config), added(PLACE, config)
    assert intersection(owned, made) == owned


def test_schemaless_objects_own_every_key() -> None:
    assert applied(ANY, {"a": {"b": 1}, "c": [1]}) == {"f:a": {".": {}, "f:b": {}}, "f:c": {}}
