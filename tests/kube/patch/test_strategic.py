from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK
from karmada.kube.patch.mergepatch import apply_merge_patch
from karmada.kube.patch.strategic import apply_strategic_merge_patch
from karmada.kube.schema.builtin import Definitions
from tests.support.cases import cases

DEFINITIONS = Definitions.load("1.36")
DEPLOYMENT = DEFINITIONS.node_for(GVK("apps", "v1", "Deployment"))
POD = DEFINITIONS.node_for(GVK("", "v1", "Pod"))
SERVICE = DEFINITIONS.node_for(GVK("", "v1", "Service"))
BUDGET = DEFINITIONS.node_for(GVK("policy", "v1", "PodDisruptionBudget"))


def in_pod(pod_spec: Any, patch: Any) -> Any:
    before = copy_json([pod_spec, patch])
    result = apply_strategic_merge_patch({"spec": pod_spec}, {"spec": patch}, POD)["spec"]
    assert [pod_spec, patch] == before, "an input was changed"
    return result


def containers(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "image": f"{name}:1"} for name in names]


def names(items: list[Any]) -> list[str]:
    return [item["name"] for item in items]


def test_maps_merge_and_null_deletes() -> None:
    obj = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"replicas": 1, "paused": True}}
    patch = {"metadata": {"labels": {"b": None, "c": "3"}}, "spec": {"replicas": 5, "paused": None}}
    assert apply_strategic_merge_patch(obj, patch, DEPLOYMENT) == {
        "metadata": {"labels": {"a": "1", "c": "3"}},
        "spec": {"replicas": 5},
    }


def test_items_merge_by_key() -> None:
    spec = {"containers": [{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}, *containers("b")]}
    result = in_pod(spec, {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]})
    assert result["containers"] == [
        {"name": "a", "image": "a:1", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
        *containers("b"),
    ]


def test_a_new_item_comes_before_those_it_does_not_know() -> None:
    assert names(in_pod({"containers": containers("a", "b")}, {"containers": containers("x")})["containers"]) == [
        "x",
        "a",
        "b",
    ]


def test_other_lists_are_replaced() -> None:
    spec = {"tolerations": [{"key": "a"}], "containers": [{"name": "c", "args": ["1", "2"]}]}
    result = in_pod(spec, {"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["3"]}]})
    assert result == {"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["3"]}]}


def test_lists_of_scalars_with_a_merge_strategy_are_joined() -> None:
    obj = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patched = apply_strategic_merge_patch(obj, {"metadata": {"finalizers": ["d", "b"]}}, POD)
    assert patched["metadata"]["finalizers"] == ["d", "a", "b", "c"]


def test_replace_takes_the_place_of_a_map() -> None:
    spec = {"securityContext": {"runAsUser": 1, "fsGroup": 2}}
    assert in_pod(spec, {"securityContext": {"$patch": "replace", "runAsUser": 3}}) == {
        "securityContext": {"runAsUser": 3}
    }


def test_delete_drops_a_nested_map_and_empties_the_root() -> None:
    spec = {"securityContext": {"runAsUser": 1}, "hostNetwork": True}
    assert in_pod(spec, {"securityContext": {"$patch": "delete"}}) == {"hostNetwork": True}
    assert apply_strategic_merge_patch({"spec": spec}, {"$patch": "delete"}, POD) == {}
    assert apply_strategic_merge_patch({"spec": spec}, {"$patch": "replace", "kind": "Pod"}, POD) == {"kind": "Pod"}


def test_delete_removes_all_items_with_the_key() -> None:
    spec = {"containers": [*containers("a", "b"), {"name": "a", "image": "twice"}]}
    assert names(in_pod(spec, {"containers": [{"$patch": "delete", "name": "a"}]})["containers"]) == ["b"]
    unknown = {"containers": [{"$patch": "delete", "name": "none"}]}
    assert in_pod({"containers": containers("a", "b")}, unknown) == {"containers": containers("a", "b")}


def test_replace_as_an_item_makes_the_list_the_other_items() -> None:
    spec = {"containers": containers("a", "b")}
    patch = {"containers": [{"name": "b", "image": "new"}, {"$patch": "replace"}, {"name": "c"}]}
    assert in_pod(spec, patch)["containers"] == [{"name": "b", "image": "new"}, {"name": "c"}]


def test_retain_keys_drops_what_is_not_listed() -> None:
    obj = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert apply_strategic_merge_patch(obj, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_retain_keys_in_a_list_item_changes_the_source_of_a_volume() -> None:
    spec = {"volumes": [{"name": "v", "emptyDir": {}}]}
    patch = {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}
    assert in_pod(spec, patch) == {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}


def test_scalars_are_deleted_from_a_list_of_any_strategy() -> None:
    obj = {"metadata": {"finalizers": ["a", "b", "c"]}, "spec": {"containers": [{"name": "c", "args": ["x", "y"]}]}}
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "$deleteFromPrimitiveList/none": ["x"]},
        "spec": {"containers": [{"name": "c", "$deleteFromPrimitiveList/args": ["x"]}]},
    }
    assert apply_strategic_merge_patch(obj, patch, POD) == {
        "metadata": {"finalizers": ["a", "c"]},
        "spec": {"containers": [{"name": "c", "args": ["y"]}]},
    }


@cases(
    ("abc", "", "cba", "cba"),
    ("abc", "", "ca", "bca"),
    ("abcd", "", "db", "acdb"),
    ("ab", "x", "axb", "axb"),
    ("ab", "x", "xab", "xab"),
    ("abs", "x", "abx", "abxs"),
    ("sab", "x", "xba", "xsba"),
    ("ab", "", "", "ab"),
    ("", "ba", "ba", "ba"),
)
def test_items_take_the_order_that_is_requested(server: str, patch: str, order: str, result: str) -> None:
    spec = {"containers": containers(*server)} if server else {}
    body: dict[str, Any] = {"$setElementOrder/containers": [{"name": name} for name in order]}
    if patch:
        body["containers"] = containers(*patch)
    assert "".join(names(in_pod(spec, body)["containers"])) == result


def test_scalars_take_the_order_that_is_requested() -> None:
    obj = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {
        "metadata": {
            "$setElementOrder/finalizers": ["d", "c", "a"],
            "$deleteFromPrimitiveList/finalizers": ["b"],
            "finalizers": ["d"],
        }
    }
    assert apply_strategic_merge_patch(obj, patch, POD) == {"metadata": {"finalizers": ["d", "c", "a"]}}


def test_an_order_for_a_list_that_nobody_has_does_nothing() -> None:
    assert in_pod({"a": 1}, {"$setElementOrder/containers": [{"name": "a"}]}) == {"a": 1}


def test_what_is_new_is_taken_without_nulls_and_directives() -> None:
    patch = {
        "securityContext": {"$patch": "delete"},
        "affinity": {"nodeAffinity": None, "podAffinity": {"x": 1}, "podAntiAffinity": {"$patch": "delete"}},
        "containers": [
            {"name": "a", "env": [{"name": "E", "value": None}, {"name": "F", "$patch": "delete"}]},
            {"name": "b", "$patch": "delete"},
        ],
    }
    assert in_pod({}, patch) == {
        "affinity": {"podAffinity": {"x": 1}},
        "containers": [{"name": "a", "env": [{"name": "E"}]}],
    }


def test_a_value_of_another_type_is_replaced() -> None:
    obj = {"spec": {"ports": [{"port": 80, "targetPort": 8080}], "selector": {"a": "1"}}}
    patch = {"spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": None}}
    assert apply_strategic_merge_patch(obj, patch, SERVICE) == {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}}


def test_two_protocols_on_one_port_collide() -> None:
    obj = {"spec": {"ports": [{"port": 53, "protocol": "UDP"}]}}
    patched = apply_strategic_merge_patch(obj, {"spec": {"ports": [{"port": 53, "protocol": "TCP"}]}}, SERVICE)
    assert patched == {"spec": {"ports": [{"port": 53, "protocol": "TCP"}]}}


def test_a_map_with_the_replace_strategy_is_replaced() -> None:
    obj = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    assert apply_strategic_merge_patch(obj, patch, BUDGET) == patch


REJECTED = "the server rejected our request due to an error in our request"


@cases(
    (
        {"containers": containers("a")},
        {"containers": [{"image": "x", "n": [1, True, None]}]},
        500,
        "",
        "map: map[image:x n:[1 true <nil>]] does not contain declared merge key: name",
    ),
    (
        {"containers": containers("a")},
        {"containers": [{"$patch": "delete"}]},
        500,
        "",
        "map: map[$patch:delete] does not contain declared merge key: name",
    ),
    (
        {"securityContext": {"a": 1}},
        {"securityContext": {"$patch": "mend"}},
        500,
        "",
        "unknown patch type: mend in map: map[$patch:mend]",
    ),
    (
        {"containers": containers("a")},
        {"containers": [{"$patch": "merge"}]},
        500,
        "",
        "merging lists cannot yet be specified in the patch",
    ),
    (
        {"securityContext": {"a": 1}},
        {"securityContext": {"$retainKeys": ["a"], "b": 1}},
        400,
        "BadRequest",
        "invalid patch format of retainKeys",
    ),
    (
        {"securityContext": {"a": 1}},
        {"securityContext": {"$retainKeys": "a"}},
        400,
        "BadRequest",
        "invalid patch format of retainKeys",
    ),
    (
        {},
        {"$deleteFromPrimitiveList/x": "a"},
        400,
        "BadRequest",
        "invalid patch format of primitive list",
    ),
    (
        {"containers": containers("a")},
        {"$setElementOrder/containers": "a"},
        400,
        "BadRequest",
        "invalid patch format of setElementOrder list",
    ),
    ({}, {"$setElementOrder": []}, 400, "BadRequest", "invalid patch format of setElementOrder list"),
    (
        {"containers": containers("a", "b")},
        {
            "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
            "containers": [{"name": "b"}, {"name": "a"}],
        },
        400,
        "BadRequest",
        "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n"
        "[map[name:a] map[name:b]]\n",
    ),
    ({"containers": containers("a")}, {"containers": [["a"]]}, 422, "Invalid", REJECTED),
)
def test_bad_patches_get_the_errors_of_an_api_server(
    spec: Any, patch: Any, code: int, reason: str, message: str
) -> None:
    with pytest.raises(ApiError) as error:
        in_pod(spec, patch)
    assert (error.value.http_code, error.value.status_reason, error.value.message) == (code, reason, message)


def test_a_patch_must_be_an_object() -> None:
    with pytest.raises(ApiError) as error:
        apply_strategic_merge_patch({}, [], POD)
    assert error.value.http_code == 400


keys = st.sampled_from(["a", "b", "c"])
objects = st.dictionaries(
    keys,
    st.recursive(st.integers(0, 3) | st.text("xy", max_size=2), lambda inner: st.dictionaries(keys, inner, max_size=3)),
    max_size=3,
)


@given(objects, objects)
def test_without_lists_it_is_a_merge_patch(obj: Any, patch: Any) -> None:
    assert apply_strategic_merge_patch(obj, patch, None) == apply_merge_patch(obj, patch)


@given(st.permutations("abcdef"), st.sets(st.sampled_from("abcdef"), min_size=1), st.randoms())
def test_any_order_that_is_requested_is_given_and_nothing_is_lost(
    server: list[str], some: set[str], random: Any
) -> None:
    order = sorted(some)
    random.shuffle(order)
    body = {"$setElementOrder/containers": [{"name": name} for name in order]}
    result = names(in_pod({"containers": containers(*server)}, body)["containers"])
    assert sorted(result) == sorted(server)
    assert [name for name in result if name in some] == order
    assert [name for name in result if name not in some] == [name for name in server if name not in some]


def test_thousands_of_deleted_items_are_looked_up_and_not_searched_for() -> None:
    many = [f"c{number}" for number in range(6000)]
    gone = [{"name": name, "$patch": "delete"} for name in many[1:]]
    result = in_pod({"containers": containers(*many)}, {"containers": gone})
    assert names(result["containers"]) == ["c0"]
