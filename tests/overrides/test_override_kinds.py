"""Every kind of overrider but that of images."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import json_equal
from karmada.kube.schema.yamlio import load_yaml
from karmada.overrides.command_args import edited
from karmada.overrides.errors import OverrideError
from karmada.overrides.field_overrider import patched_json, patched_yaml
from tests.support.cases import cases
from tests.support.overriding import config_map, container, containers_of, deployment, overridden


def why(obj: Obj, **overriders: Any) -> str:
    """Why something cannot be overridden."""
    with pytest.raises(OverrideError) as refused:
        overridden(obj, **overriders)
    return refused.value.why


# --- plaintext -------------------------------------------------------------------------------------------------------


def patch(operator: str, path: str, *value: Any) -> Obj:
    return {"operator": operator, "path": path, **({"value": value[0]} if value else {})}


def patched(*items: Obj, **fields: Any) -> Obj:
    """`fields` of an object, after a patch, by a name that is not theirs."""
    made = overridden(
        {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "default"}, **fields},
        plaintext=[*items],
    )
    return {key: value for key, value in made.items() if key not in ("apiVersion", "kind", "metadata")}


@cases(
    ([patch("add", "/a", 1)], {}, {"a": 1}),
    ([patch("add", "/a", 1)], {"a": 0}, {"a": 1}),
    ([patch("add", "/a/1", "x")], {"a": [1, 2]}, {"a": [1, "x", 2]}),
    ([patch("add", "/a/2", "x")], {"a": [1, 2]}, {"a": [1, 2, "x"]}),
    ([patch("add", "/a/-", "x")], {"a": [1, 2]}, {"a": [1, 2, "x"]}),
    ([patch("add", "/a/-1", "x")], {"a": [1, 2]}, {"a": [1, 2, "x"]}),
    ([patch("add", "/a/-2", "x")], {"a": [1, 2]}, {"a": [1, "x", 2]}),
    ([patch("replace", "/a/-1", "x")], {"a": [1, 2]}, {"a": [1, "x"]}),
    ([patch("replace", "/a", {"b": [True]})], {"a": 0}, {"a": {"b": [True]}}),
    ([patch("replace", "/a")], {"a": 0}, {"a": None}),
    ([patch("add", "/a")], {}, {"a": None}),
    ([patch("remove", "/a")], {"a": 0, "b": 1}, {"b": 1}),
    ([patch("remove", "/a/0")], {"a": [1, 2]}, {"a": [2]}),
    ([patch("remove", "/a", "ignored")], {"a": 0}, {}),
    ([patch("add", "/a~1b", 1), patch("add", "/c~0d", 2)], {}, {"a/b": 1, "c~d": 2}),
    ([patch("add", "/a", {}), patch("add", "/a/b", 1), patch("replace", "/a/b", 2)], {}, {"a": {"b": 2}}),
    ([patch("replace", "/n", 4)], {"n": 3}, {"n": 4}),
    ([], {"a": 1}, {"a": 1}),
)
def test_plain_patches(items: list[Obj], before: Obj, after: Obj) -> None:
    made = patched(*items, **before)
    assert json_equal(made, after)


@cases(
    (patch("add", "/x/y", 1), 'add operation does not apply: doc is missing path: "/x/y": missing value'),
    (patch("add", "/n/y", 1), 'add operation does not apply: doc is missing path: "/n/y": missing value'),
    (patch("replace", "/x", 1), "replace operation does not apply: doc is missing key: /x: missing value"),
    (patch("replace", "/x/y", 1), "replace operation does not apply: doc is missing path: /x/y: missing value"),
    (patch("replace", "/l/7", 1), "replace operation does not apply: doc is missing key: /l/7: missing value"),
    (patch("remove", "/x"), "error in remove for path: '/x': unable to remove nonexistent key: x: missing value"),
    (
        patch("remove", "/m/a~1b"),
        "error in remove for path: '/m/a~1b': unable to remove nonexistent key: a/b: missing value",
    ),
    (patch("remove", "/x/y"), 'remove operation does not apply: doc is missing path: "/x/y": missing value'),
    (patch("remove", ""), 'remove operation does not apply: doc is missing path: "": missing value'),
    (patch("add", "spec", 1), 'add operation does not apply: doc is missing path: "spec": missing value'),
    (patch("add", "/l/3", 1), "error in add for path: '/l/3': path '/l/3': index 3 is out of range"),
    (patch("add", "/l/x", 1), "error in add for path: '/l/x': path '/l/x': 'x' is no array index"),
    (patch("remove", "/l/2"), "error in remove for path: '/l/2': path '/l/2': index 2 is out of range"),
    (patch("move", "/m", 1), "Unexpected kind: move"),
    (patch("remove", "/kind"), "Object 'Kind' is missing in the patched document"),
    (patch("add", "", [1]), "Object 'Kind' is missing in the patched document"),
    (patch("remove", "/metadata/name"), "metadata.name is missing in the patched document"),
    (patch("replace", "/metadata", "x"), "metadata.name is missing in the patched document"),
)
def test_a_patch_that_does_not_fit(item: Obj, expected: str) -> None:
    obj = {**config_map(), "m": {}, "n": 1, "l": [1, 2]}
    assert why(obj, plaintext=[item]) == expected


def test_all_items_are_one_patch() -> None:
    obj = config_map(a="1")
    items = [patch("add", "/data/b", "2"), patch("remove", "/data/b"), patch("remove", "/data/b")]
    assert why(obj, plaintext=items).startswith("error in remove for path: '/data/b'")


def test_a_patch_can_replace_the_whole_object() -> None:
    identity = {field: config_map()[field] for field in ("apiVersion", "kind", "metadata")}
    other = {**identity, "binaryData": {"only": "this"}}
    assert overridden(config_map(), plaintext=[patch("add", "", other)]) == other


def test_what_a_patch_does_not_touch_is_shared() -> None:
    obj = deployment()
    made = overridden(obj, plaintext=[patch("add", "/metadata/labels", {"a": "b"})])
    assert made["spec"] is obj["spec"]


# --- command and args ------------------------------------------------------------------------------------------------


@cases(
    (["a", "b"], "add", ["b", "c"], ["a", "b", "b", "c"]),
    (None, "add", ["c"], ["c"]),
    (None, "add", [], []),
    (["a"], "add", [], ["a"]),
    (["a", "b", "a", "c"], "remove", ["a", "x"], ["b", "c"]),
    (["a"], "remove", [], ["a"]),
    (["ab"], "remove", ["a"], ["ab"]),
    (None, "remove", ["a"], []),
    (["a"], "replace", ["b"], ["a"]),
)
def test_words_are_appended_or_taken_out(
    words: list[str] | None, operator: str, value: list[str], expected: list[str]
) -> None:
    assert edited(words, operator, value) == expected
    for field, overrider in (("command", "commandOverrider"), ("args", "argsOverrider")):
        given_words: dict[str, Any] = {} if words is None else {field: words}
        obj = deployment(container("other", **given_words), container("web", **given_words))
        made = overridden(obj, **{overrider: [{"containerName": "web", "operator": operator, "value": value}]})
        first, second = containers_of(made)
        assert first is containers_of(obj)[0]
        assert second == container("web", **dict[str, Any]({field: expected}))


def test_null_words_are_words_never_given() -> None:
    made = overridden(deployment(container(args=None)), argsOverrider=[word("add", "x")])
    assert containers_of(made)[0]["args"] == ["x"]


def word(operator: str, *value: str, name: str = "web") -> Obj:
    return {"containerName": name, "operator": operator, "value": [*value]}


@cases("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job", "Pod")
def test_commands_of_every_workload(kind: str) -> None:
    obj = {**deployment(), "kind": kind}
    if kind == "Pod":
        obj["spec"] = {"containers": [container()], "initContainers": [container()]}
    made = overridden(obj, commandOverrider=[word("add", "run")])
    assert containers_of(made) == [container(command=["run"])]
    if kind == "Pod":
        assert made["spec"]["initContainers"] == [container()]


def test_commands_of_nobody() -> None:
    for obj in (
        {**deployment(), "kind": "CronJob"},
        {**deployment(), "spec": {}},
        {**deployment(), "spec": {"template": {"spec": {"containers": []}}}},
        deployment(container("other")),
        deployment("not a container"),  # type: ignore[arg-type]
    ):
        assert overridden(obj, commandOverrider=[word("add", "run")]) is obj


def test_commands_of_containers_that_are_no_list() -> None:
    obj = {**deployment(), "spec": {"template": {"spec": {"containers": {"a": 1}}}}}
    assert why(obj, argsOverrider=[word("add", "x")]) == (
        "failed to retrieves path(spec/template/spec/containers) from rawObj, error: .spec.template.spec.containers "
        "accessor error: map[a:1] is of the type map[string]interface {}, expected []interface {}"
    )
    assert why(deployment(container(args="x")), argsOverrider=[word("add", "x")]).endswith("expected []interface {}")


def test_every_container_of_the_name_is_changed() -> None:
    made = overridden(deployment(container(), container()), argsOverrider=[word("add", "x"), word("add", "y")])
    assert [found["args"] for found in containers_of(made)] == [["x", "y"], ["x", "y"]]


# --- labels and annotations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("before", "operator", "value", "after"),
    [
        ({"a": "1"}, "add", {"a": "2", "x.io/b": "3"}, {"a": "2", "x.io/b": "3"}),
        (None, "add", {"a": "1"}, {"a": "1"}),
        ({"a": 1}, "add", {"b": "1"}, {"b": "1"}),
        ("none", "add", {"b": "1"}, {"b": "1"}),
        ({"a": "1", "b": "2"}, "replace", {"a": "9", "c": "9"}, {"a": "9", "b": "2"}),
        (None, "replace", {"a": "1"}, None),
        ({"a": "1", "b": "2"}, "remove", {"a": "whatever", "c": ""}, {"b": "2"}),
        (None, "remove", {"a": ""}, None),
        ({"a": "1"}, "addIfAbsent", {"a": "2", "b": "2"}, {"a": "1", "b": "2"}),
        (None, "addIfAbsent", {"a": "1"}, {"a": "1"}),
        ({"a": "1"}, "addIfAbsent", {"a": "2"}, {"a": "1"}),
        ({"a": "1"}, "add", {}, {"a": "1"}),
        ({"a": "1"}, "swap", {"a": "2"}, {"a": "1"}),
    ],
)
def test_labels_and_annotations(field: str, before: Any, operator: str, value: Obj, after: Any) -> None:
    obj = deployment() if before is None else deployment(**{field: before})
    made = overridden(obj, **{f"{field}Overrider": [{"operator": operator, "value": value}]})
    assert made["metadata"].get(field) == after
    assert made["spec"] is obj["spec"]
    if before == after:
        assert made is obj


# --- documents in fields ---------------------------------------------------------------------------------------------


def sub(operator: str, path: str, *value: Any) -> Obj:
    return {"operator": operator, "subPath": path, **({"value": value[0]} if value else {})}


def field(path: str = "/data/x", **documents: list[Obj]) -> list[Obj]:
    return [{"fieldPath": path, **documents}]


def test_a_document_in_a_field_is_changed() -> None:
    obj = config_map(y="\nkey: \n  key1: value\n", j='{"key":{"key1":"value"}}')
    change = [sub("replace", "/key/key1", "updated_value")]
    made = overridden(obj, fieldOverrider=[*field("/data/y", yaml=change), *field("/data/j", json=change)])
    assert made["data"] == {"y": "key:\n  key1: updated_value\n", "j": '{"key":{"key1":"updated_value"}}'}


def ops(*items: tuple[Any, ...]) -> list[Obj]:
    return [{"op": op, "path": path, "value": value[0] if value else None} for op, path, *value in items]


@cases(
    ('{ "b": 1,\n "a": 2 }', [("add", "/c", 3)], '{"b":1,"a":2,"c":3}'),
    ('{"a":1.50,"b":1e3,"c":123456789012345678901234567890}', [("remove", "/b")],
     '{"a":1.50,"c":123456789012345678901234567890}'),
    ('{"a":"x"}', [("replace", "/a", "<b> & c")], '{"a":"\\u003cb\\u003e \\u0026 c"}'),
    ('{"a":"<"}', [("add", "/b", "\u2028")], '{"a":"\\u003c","b":"\\u2028"}'),
    ("[1,2]", [("add", "/-", {"x": None})], '[1,2,{"x":null}]'),
    ('{"a":"ü"}', [("add", "/b", True)], '{"a":"ü","b":true}'),
    ("", [("add", "/b", True)], ""),
    ('{"a":1}', [("add", "", {"b": 1})], '{"b":1}'),
)  # fmt: skip
def test_json_documents(before: str, items: list[tuple[Any, ...]], after: str) -> None:
    assert patched_json(before, ops(*items)) == after


@cases(
    ("b: yes\na: 0x10 # hex\n", [("add", "/c", ["x", {"k": 1, "j": None}])],
     "a: 16\nb: true\nc:\n- x\n- j: null\n  k: 1\n"),
    ("1: one\ntrue: two\n", [("replace", "/1", "eins")], '"1": eins\n"true": two\n'),
    ("- a\n- b\n", [("remove", "/0")], "- b\n"),
    ('{"a": [1]}', [("add", "/a/-", "on")], 'a:\n- 1\n- "on"\n'),
    ("a: |\n  one\n  two\nb: 1\n", [("remove", "/b")], "a: |\n  one\n  two\n"),
)  # fmt: skip
def test_yaml_documents(before: str, items: list[tuple[Any, ...]], after: str) -> None:
    made = patched_yaml(before, ops(*items))
    assert load_yaml(made) == load_yaml(after)
    assert made.replace("'", '"') == after


@cases(
    (field("", json=[sub("add", "/a", 1)]), "Get object's value by overrider's path() is not string"),
    (field("/data", json=[sub("add", "/a", 1)]), "Get object's value by overrider's path(/data) is not string"),
    (field("/data/no", json=[sub("add", "/a", 1)]), 'doc is missing path: "/data/no": missing value'),
    (field("/data/x/0", json=[sub("add", "/a", 1)]), 'doc is missing path: "/data/x/0": missing value'),
    (field("/l/7", json=[sub("add", "/a", 1)]), 'doc is missing path: "/l/7": missing value'),
    (field("/l/x", json=[sub("add", "/a", 1)]), 'doc is missing path: "/l/x": missing value'),
    (field(json=[sub("add", "/a", 1)]), "invalid JSON: Expecting value: line 1 column 1 (char 0)"),
    (field("/data/nan", json=[sub("add", "/a", 1)]), "invalid JSON: NaN is no JSON"),
    (
        field("/data/y", yaml=[sub("replace", "/b", 1)]),
        "replace operation does not apply: doc is missing key: /b: missing value",
    ),
    (
        field("/data/empty", yaml=[sub("add", "/b", 1)]),
        'add operation does not apply: doc is missing path: "/b": missing value',
    ),
)
def test_a_document_that_cannot_be_changed(item: list[Obj], expected: str) -> None:
    obj = {**config_map(x="text", y="a: 1", empty="", nan='{"a":NaN}'), "l": ["{}"]}
    assert why(obj, fieldOverrider=item) == expected


def test_what_is_no_yaml_is_an_error() -> None:
    assert why(config_map(x="a: [1"), fieldOverrider=field(yaml=[sub("add", "/b", 1)])).startswith(
        "error converting YAML to JSON: yaml:"
    )


def test_a_document_in_a_list_and_behind_escapes() -> None:
    obj = {**config_map(**{"a/b": "{}"}), "l": ["{}"]}
    change = [sub("add", "/x", 1)]
    made = overridden(obj, fieldOverrider=[*field("/data/a~1b", json=change), *field("/l/0", json=change)])
    assert (made["data"], made["l"]) == ({"a/b": '{"x":1}'}, ['{"x":1}'])


def test_yaml_wins_over_json_and_neither_empties_the_field() -> None:
    both = field(yaml=[sub("add", "/b", 1)], json=[sub("add", "/b", 2)])
    assert overridden(config_map(x='{"a":0}'), fieldOverrider=both)["data"]["x"] == "a: 0\nb: 1\n"
    assert overridden(config_map(x="text"), fieldOverrider=field())["data"]["x"] == ""


def test_a_secret_is_not_decoded() -> None:
    obj = {**config_map(x="eyJhIjoxfQ=="), "kind": "Secret"}
    assert why(obj, fieldOverrider=field(json=[sub("add", "/b", 1)])).startswith("invalid JSON")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4), json_values)
def test_documents_keep_their_meaning(document: Obj, value: Any) -> None:
    change = [{"op": "add", "path": "/new~1key", "value": value}]
    expected = {**document, "new/key": value}
    assert json_equal(json.loads(patched_json(json.dumps(document), change)), expected)
    assert json_equal(load_yaml(patched_yaml(json.dumps(document), change)), expected)


# --- older forms -----------------------------------------------------------------------------------------------------


@cases(
    ("Deployment", {"replicas": 1}, {"replicas": 3}),
    ("Deployment", {}, {"replicas": 3}),
    ("ReplicaSet", {"replicas": 1}, {"replicas": 3}),
    ("StatefulSet", {"replicas": 1}, {"replicas": 3}),
    ("Job", {"parallelism": 1}, {"parallelism": 3}),
    ("DaemonSet", {}, {}),
    ("Pod", {}, {}),
    ("CronJob", {}, {}),
    ("Rollout", {"replicas": 1}, {"replicas": 3}),
    ("Rollout", {}, {}),
)
def test_replicas_are_set(kind: str, spec: Obj, after: Obj) -> None:
    obj = {**deployment(), "kind": kind, "spec": spec}
    assert overridden(obj, replicasOverrider=[{"value": 9}, {"value": 3}])["spec"] == after


def test_zero_replicas_are_replicas() -> None:
    assert overridden(deployment(), replicasOverrider=[{"value": 0}])["spec"]["replicas"] == 0


def test_resources_of_a_container_are_set() -> None:
    obj = deployment(container("other"), container(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "claims": []}))
    value = {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}}
    made = overridden(obj, resourcesOverrider=[{"containerName": "web", "value": value}])
    assert containers_of(made) == [container("other"), container(resources={**value, "claims": []})]


def test_resources_that_are_not_given_stay() -> None:
    obj = deployment(container(resources={"requests": {"cpu": "1"}}))
    made = overridden(obj, resourcesOverrider=[{"containerName": "web", "value": {"limits": {"cpu": "2"}}}])
    assert containers_of(made)[0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    for nothing in ({"containerName": "no", "value": {"limits": {"cpu": "2"}}}, {"containerName": "web", "value": {}}):
        assert overridden(obj, resourcesOverrider=[nothing]) is obj


# --- together --------------------------------------------------------------------------------------------------------


def test_overriders_of_a_rule_have_an_order_of_their_own() -> None:
    """Each of these can only come out so when the one before it came first."""
    obj = deployment(container(image="r.io/x:1"))
    image = "/spec/template/spec/containers/0/image"
    made = overridden(
        obj,
        plaintext=[
            patch("replace", image, "final"),
            patch("replace", "/metadata/labels/a", "last"),
            patch("replace", "/spec/replicas", 7),
            patch("replace", "/metadata/annotations/doc", "patched"),
        ],
        fieldOverrider=field("/metadata/annotations/doc", json=[sub("add", "/x", 1)]),
        annotationsOverrider=[{"operator": "add", "value": {"doc": "{}"}}],
        labelsOverrider=[{"operator": "add", "value": {"a": "first"}}],
        argsOverrider=[word("add", "arg")],
        commandOverrider=[word("add", "cmd")],
        imageOverrider=[{"component": "Tag", "operator": "replace", "value": "2"}],
        replicasOverrider=[{"value": 5}],
    )
    assert made["metadata"]["labels"] == {"a": "last"}
    assert made["metadata"]["annotations"] == {"doc": "patched"}
    assert made["spec"]["replicas"] == 7
    assert containers_of(made) == [container(image="final", command=["cmd"], args=["arg"])]
