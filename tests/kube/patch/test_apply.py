from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError, BadRequest, Conflict
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.patch.apply import LAST_APPLIED, apply
from karmada.kube.patch.managedfields import MAIN, entries_of, status_reset, update_managers, with_entries
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.node import Node
from tests.support.cases import cases

DEFINITIONS = Definitions.load("1.36")
DEPLOYMENT = DEFINITIONS.node_for(GVK("apps", "v1", "Deployment"))
CONFIG_MAP = DEFINITIONS.node_for(GVK("", "v1", "ConfigMap"))
T1, T2, T3 = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", "2026-01-02T03:04:07Z"


def config_map(data: Any = None, **metadata: Any) -> Obj:
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "ns", **metadata}}
    return obj if data is None else {**obj, "data": data}


def deployment(pod: Any = None, **spec: Any) -> Obj:
    if pod is not None:
        spec["template"] = {"spec": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ns"}, "spec": spec}


def ssa(live: Obj | None, config: Obj, manager: str = "me", now: str = T1, **options: Any) -> Obj:
    node = DEPLOYMENT if config["kind"] == "Deployment" else CONFIG_MAP
    version = options.pop("api_version", "apps/v1" if node is DEPLOYMENT else "v1")
    before = copy_json([live, config])
    result = apply(live, config, node, manager=manager, api_version=version, now=now, **options)
    assert [live, config] == before, "an input was changed"
    return result


def update(live: Obj | None, new: Obj, manager: str, now: str = T1) -> Obj:
    node = DEPLOYMENT if new["kind"] == "Deployment" else CONFIG_MAP
    entries = update_managers(live, new, node, manager=manager, api_version=new["apiVersion"], now=now)
    return with_entries(new, entries)


def without_entries(obj: Obj) -> Obj:
    return with_entries(obj, [])


def fields_of(obj: Obj, manager: str, operation: str = "Apply") -> Any:
    found = [e["fieldsV1"] for e in entries_of(obj) if (e["manager"], e["operation"]) == (manager, operation)]
    assert len(found) <= 1
    return found[0] if found else None


def test_the_first_apply_creates_the_object_and_owns_the_configuration() -> None:
    obj = ssa(None, config_map({"a": "1"}, labels={"l": "1"}))
    assert without_entries(obj) == config_map({"a": "1"}, labels={"l": "1"})
    assert entries_of(obj) == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}},
        }
    ]


def test_items_own_their_keys_and_take_defaults_for_missing_ones() -> None:
    obj = ssa(None, deployment({"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}))
    item = fields_of(obj, "me")["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    port: Any = {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}
    assert item == {".": {}, "f:name": {}, "f:ports": port}


def test_a_port_without_protocol_is_the_port_with_the_default_one() -> None:
    live = deployment({"containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]})
    live = update(None, live, "creator")
    config = deployment({"containers": [{"name": "c", "ports": [{"containerPort": 80, "name": "http"}]}]})
    ports = ssa(live, config)["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "protocol": "TCP", "name": "http"}]


def test_applying_again_changes_nothing() -> None:
    config = deployment({"containers": [{"name": "c", "image": "i"}]}, replicas=1)
    live = ssa(None, config)
    assert ssa(live, config, now=T2) is live


def test_what_the_manager_no_longer_mentions_is_removed() -> None:
    live = ssa(None, config_map({"a": "1", "b": "2"}, labels={"l": "1"}))
    result = ssa(live, config_map({"b": "2"}), now=T2)
    assert without_entries(result) == config_map({"b": "2"})
    assert fields_of(result, "me") == {"f:data": {"f:b": {}}}
    assert entries_of(result)[0]["time"] == T2


def test_server_set_metadata_survives_giving_up_all_other_metadata() -> None:
    live = ssa(None, config_map({"a": "1"}, labels={"l": "1"}))
    live = {**live, "metadata": {**live["metadata"], "uid": "u", "resourceVersion": "7", "creationTimestamp": T1}}
    result = ssa(live, {**config_map({"a": "1"}, creationTimestamp=None)}, now=T2)
    assert without_entries(result) == config_map({"a": "1"}, uid="u", resourceVersion="7", creationTimestamp=T1)


def test_what_another_manager_owns_too_stays() -> None:
    live = ssa(None, config_map({"a": "1", "b": "2"}), "one")
    live = ssa(live, config_map({"a": "1"}), "two", T2)
    assert [(e["manager"], e.get("time")) for e in entries_of(live)] == [("two", None), ("one", T1)]
    live = ssa(live, config_map({}), "one", T3)
    assert live["data"] == {"a": "1"}
    assert ssa(live, config_map({}), "two", T3).get("data") == {}


def test_a_value_given_up_but_owned_by_an_updater_stays() -> None:
    live = ssa(None, config_map({"a": "1", "b": "1"}))
    live = update(live, config_map({"a": "2", "b": "1"}), "editor", T2)
    live = ssa(live, config_map({"b": "1"}), now=T3)
    assert live["data"] == {"a": "2", "b": "1"}


def test_an_applier_takes_away_its_item_with_what_others_set_in_it() -> None:
    live = ssa(None, deployment({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}))
    changed = copy_json(live)
    changed["spec"]["template"]["spec"]["containers"][1]["image"] = "2"
    live = update(live, changed, "editor", T2)
    live = ssa(live, deployment({"containers": [{"name": "a", "image": "1"}]}), now=T3)
    assert live["spec"]["template"]["spec"]["containers"] == [{"name": "a", "image": "1"}]
    assert fields_of(live, "editor", "Update") is None


def test_an_item_that_another_applier_has_loses_only_the_fields_given_up() -> None:
    live = ssa(None, deployment({"containers": [{"name": "c", "image": "1", "args": ["x"]}]}), "one")
    live = ssa(live, deployment({"containers": [{"name": "c", "image": "1"}]}), "two", T2)
    live = ssa(live, deployment({}, replicas=1), "one", T3)
    assert live["spec"] == {"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "1"}]}}}


def test_a_struct_given_up_goes_with_what_nobody_owns_in_it() -> None:
    live = ssa(None, deployment(strategy={"type": "RollingUpdate"}, replicas=1))
    live = {**live, "spec": {**live["spec"], "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    assert ssa(live, deployment(replicas=1), now=T2)["spec"] == {"replicas": 1}


def test_changing_what_another_manager_owns_is_a_conflict() -> None:
    live = update(None, deployment(replicas=1, paused=True), "kubectl-client-side-apply")
    with pytest.raises(Conflict) as error:
        ssa(live, deployment(replicas=2), now=T2)
    assert error.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: '
        ".spec.replicas",
        "reason": "Conflict",
        "details": {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "kubectl-client-side-apply" using apps/v1',
                    "field": ".spec.replicas",
                }
            ]
        },
        "code": 409,
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = ssa(None, config_map({"x": "1", "y": "1"}), "b")
    live = update(live, {**live, "data": {**live["data"], "z": "1", "k": "1"}}, "a", T2)
    with pytest.raises(Conflict) as error:
        ssa(live, config_map({"x": "2", "y": "2", "z": "2"}), now=T2)
    assert error.value.message == (
        'Apply failed with 3 conflicts: conflicts with "a" using v1:\n- .data.z\n'
        'conflicts with "b":\n- .data.x\n- .data.y'
    )
    assert [cause["field"] for cause in error.value.causes] == [".data.z", ".data.x", ".data.y"]


def test_conflicts_name_items_and_subresources() -> None:
    live = deployment({"containers": [{"name": "c", "image": "1"}]})
    live = {**live, "status": {"replicas": 1}}
    live = update(None, live, "creator")
    entry = {**entries_of(live)[0], "subresource": "status"}
    live = with_entries(live, [entry])
    with pytest.raises(Conflict) as error:
        ssa(live, deployment({"containers": [{"name": "c", "image": "2"}]}))
    assert error.value.message == (
        'Apply failed with 1 conflict: conflict with "creator" with subresource "status" using apps/v1: '
        '.spec.template.spec.containers[name="c"].image'
    )


def test_force_takes_the_field_over() -> None:
    live = ssa(None, config_map({"a": "1", "b": "1"}), "one")
    live = ssa(live, config_map({"a": "2"}), "two", T2, force=True)
    assert live["data"] == {"a": "2", "b": "1"}
    assert fields_of(live, "one") == {"f:data": {"f:b": {}}}
    assert fields_of(live, "two") == {"f:data": {"f:a": {}}}


def test_equal_values_are_shared() -> None:
    live = ssa(None, config_map({"a": "1"}), "one")
    result = ssa(live, config_map({"a": "1"}), "two", T2)
    assert result["data"] == {"a": "1"}
    assert fields_of(result, "one") == fields_of(result, "two") == {"f:data": {"f:a": {}}}
    assert ssa(result, config_map({"a": "1"}), "two", T3) is result


def test_a_manager_left_with_nothing_has_no_entry() -> None:
    live = ssa(None, config_map({"a": "1"}))
    result = ssa(live, config_map(), now=T2)
    assert entries_of(result) == []
    assert "managedFields" not in result["metadata"]


def test_the_first_apply_on_an_unowned_object_credits_what_is_there() -> None:
    live = config_map({"a": "1", "b": "1"})
    with pytest.raises(Conflict, match=r'conflict with "before-first-apply" using v1: \.data\.a$'):
        ssa(live, config_map({"a": "2"}))
    result = ssa(live, config_map({"a": "2"}), force=True)
    assert fields_of(result, "before-first-apply", "Update") == {"f:data": {".": {}, "f:b": {}}}


@cases(
    ("abc", "b", "abc"),
    ("abc", "bd", "abcd"),
    ("abc", "da", "dabc"),
    ("ab", "ba", "ba"),
    ("bax", "ab", "axb"),
    ("abc", "cxa", "bcxa"),
    ("", "ba", "ba"),
    ("ab", "", "ab"),
)
def test_items_keep_the_order_of_the_configuration_and_their_neighbours(live: str, config: str, merged: str) -> None:
    def containers(names: str) -> list[Obj]:
        return [{"name": name, "image": "i"} for name in names]

    obj = update(None, deployment({"containers": containers(live)}), "creator")
    result = ssa(obj, deployment({"containers": containers(config)}))
    assert "".join(c["name"] for c in result["spec"]["template"]["spec"]["containers"]) == merged
    finalizers = ssa(config_map(finalizers=list(live)), config_map(finalizers=list(config)))["metadata"]["finalizers"]
    assert "".join(finalizers) == merged


def test_atomic_values_are_the_configurations() -> None:
    live = update(None, deployment(selector={"matchLabels": {"a": "1"}}), "creator")
    result = ssa(live, deployment(selector={"matchLabels": {"b": "1"}}), force=True)
    assert result["spec"]["selector"] == {"matchLabels": {"b": "1"}}
    assert fields_of(result, "me") == {"f:spec": {"f:selector": {}}}


def test_null_removes_a_field_but_not_the_members_of_a_map() -> None:
    live = ssa(None, deployment(replicas=1, paused=True))
    result = ssa(live, deployment(replicas=None, paused=True), now=T2)
    assert result["spec"] == {"paused": True}
    assert fields_of(result, "me") == {"f:spec": {"f:replicas": {}, "f:paused": {}}}
    assert ssa(result, deployment(replicas=None, paused=True), now=T3) is result
    shared = ssa(config_map({"a": "1"}), {**config_map(), "data": None})
    assert shared["data"] == {"a": "1"}


CONTAINERS = ".spec.template.spec.containers"


@cases(
    (deployment(foo=1), ".spec.foo: field not declared in schema"),
    ({**deployment(), "bar": 1}, ".bar: field not declared in schema"),
    (
        {**deployment(), "metadata": {"name": "d", "namespace": "ns", "x": 1}},
        ".metadata.x: field not declared in schema",
    ),
    (deployment(selector={"x": 1}), ".spec.selector.x: field not declared in schema"),
    (
        deployment({"containers": [{"name": "c"}, {"name": "c"}]}),
        f'{CONTAINERS}: duplicate entries for key [name="c"]',
    ),
    (
        deployment({"containers": [None]}),
        f"{CONTAINERS}: element 0: associative list with keys may not have a null element",
    ),
    (
        deployment({"containers": ["a"]}),
        f"{CONTAINERS}: element 0: associative list with keys may not have non-map elements",
    ),
    (deployment({"containers": {}}), f"{CONTAINERS}: expected list, got &{{map[]}}"),
    (deployment(replicas="1"), ".spec.replicas: expected numeric (int or float), got string"),
    (deployment(paused="yes"), ".spec.paused: expected boolean, got &{yes}"),
    (deployment(template=[]), ".spec.template: expected map, got &{[]}"),
    (
        deployment({"containers": [{"name": "c", "env": [{"name": "E", "value": 8080}]}]}),
        f'{CONTAINERS}[name="c"].env[name="E"].value: expected string, got &value.valueUnstructured{{Value:8080}}',
    ),
    (
        deployment(strategy={"rollingUpdate": {"maxSurge": {}}}),
        ".spec.strategy.rollingUpdate.maxSurge: expected any scalar, got &{map[]}",
    ),
    (
        deployment(replicas="1", paused=1),
        "errors:\n  .spec.replicas: expected numeric (int or float), got string\n"
        "  .spec.paused: expected boolean, got &{1}",
    ),
)
def test_a_configuration_that_does_not_fit_its_type_is_refused(config: Obj, problem: str) -> None:
    with pytest.raises(ApiError) as error:
        ssa(None, config)
    assert (error.value.http_code, error.value.status_reason) == (500, "")
    assert error.value.message == f"failed to create typed patch object (ns/d; apps/v1, Kind=Deployment): {problem}"


def test_core_kinds_are_named_with_an_empty_group() -> None:
    with pytest.raises(ApiError, match=r"^failed to create typed patch object \(ns/m; /v1, Kind=ConfigMap\): \.x: "):
        ssa(None, {**config_map(), "x": 1})


def test_the_configuration_must_have_the_version_of_the_endpoint_and_no_managed_fields() -> None:
    with pytest.raises(BadRequest) as error:
        ssa(None, {**deployment(), "apiVersion": "apps/v1beta1"})
    assert error.value.message == (
        "Incorrect version specified in apply patch. Specified patch version: apps/v1beta1, expected: apps/v1"
    )
    with pytest.raises(BadRequest) as error:
        ssa(None, config_map({}, managedFields=[]))
    assert error.value.message == "metadata.managedFields must be nil"


def test_the_main_endpoint_does_not_own_status() -> None:
    config = {**deployment(replicas=1), "status": {"replicas": 5}}
    obj = ssa(None, config, reset=MAIN)
    assert fields_of(obj, "me") == {"f:spec": {"f:replicas": {}}}
    applied = ssa(obj, config, "me", T2, subresource="status", reset=status_reset())
    entries = {entry.get("subresource", ""): entry["fieldsV1"] for entry in entries_of(applied)}
    assert entries == {"": {"f:spec": {"f:replicas": {}}}, "status": {"f:status": {"f:replicas": {}}}}


def test_entries_of_other_versions_are_kept_and_count() -> None:
    live = ssa(None, config_map({"a": "1", "b": "1"}), "one")
    live = with_entries(live, [{**entries_of(live)[0], "apiVersion": "v0"}])
    with pytest.raises(Conflict, match=r'conflict with "one": \.data\.a$'):
        ssa(live, config_map({"a": "2"}), "two")
    result = ssa(live, config_map({"b": "1"}), "two", T2)
    assert [e["apiVersion"] for e in entries_of(result)] == ["v1", "v0"]
    (entry,) = entries_of(ssa(live, config_map({"a": "1", "b": "1"}), "one", T2))
    assert entry["apiVersion"] == "v1"


def client_side_applied(config: Obj) -> Obj:
    said = orjson.dumps(config).decode()
    obj = {**config, "metadata": {**config["metadata"], "annotations": {LAST_APPLIED: said}}}
    return update(None, obj, "kubectl-client-side-apply")


def test_kubectl_takes_over_what_it_applied_client_side() -> None:
    live = client_side_applied(config_map({"a": "1", "b": "1"}))
    with pytest.raises(Conflict):
        ssa(live, config_map({"a": "2", "b": "1"}), "someone")
    result = ssa(live, config_map({"a": "2", "b": "<1>"}), "kubectl", T2)
    assert result["data"] == {"a": "2", "b": "<1>"}
    annotation = result["metadata"]["annotations"][LAST_APPLIED]
    assert orjson.loads(annotation) == config_map({"a": "2", "b": "<1>"})
    assert annotation.endswith("\n")
    assert "\\u003c1\\u003e" in annotation
    assert ssa(result, config_map({"a": "2", "b": "<1>"}), "kubectl", T3) is result


def test_kubectl_still_conflicts_over_what_others_changed_since() -> None:
    live = client_side_applied(config_map({"a": "1", "b": "1"}))
    changed = {**live, "data": {"a": "1", "b": "9"}}
    live = update(live, changed, "editor", T2)
    with pytest.raises(Conflict) as error:
        ssa(live, config_map({"a": "2", "b": "2"}), "kubectl", T3)
    assert error.value.message == 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.b'


def test_without_the_annotation_kubectl_writes_none() -> None:
    assert "annotations" not in ssa(None, config_map({"a": "1"}), "kubectl")["metadata"]
    live = update(None, config_map({"a": "1"}), "kubectl-create")
    with pytest.raises(Conflict):
        ssa(live, config_map({"a": "2"}), "kubectl")


CUSTOM = Node(
    type="object",
    properties={
        "spec": Node(
            type="object",
            properties={
                "list": Node(type="array", items=Node(type="object", properties={"x": Node(type="string")})),
                "empty": Node(type="object"),
                "nothing": Node(type="string", nullable=True),
                "free": Node(type="object", preserve=True),
            },
        )
    },
)


def custom(live: Obj | None, spec: Obj, manager: str = "me", node: Node | None = CUSTOM, **options: Any) -> Obj:
    config = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "k"}, "spec": spec}
    return apply(live, config, node, manager=manager, api_version="g/v1", now=T1, custom=True, **options)


def test_custom_resources_follow_their_schema() -> None:
    obj = custom(None, {"list": [{"x": "1"}], "free": {"a": {"b": [1]}}, "nothing": None})
    assert obj["spec"] == {"list": [{"x": "1"}], "free": {"a": {"b": [1]}}, "nothing": None}
    fields: Any = {"f:list": {}, "f:free": {"f:a": {".": {}, "f:b": {}}}, "f:nothing": {}}
    assert fields_of(obj, "me") == {"f:spec": fields}
    with pytest.raises(ApiError, match=r"\.spec\.empty\.x: field not declared in schema"):
        custom(None, {"empty": {"x": 1}})
    with pytest.raises(ApiError, match=r"\.spec\.list\[0\]\.y: field not declared in schema"):
        custom(None, {"list": [{"y": 1}]})


def test_without_a_schema_maps_are_granular_and_lists_atomic() -> None:
    live = custom(None, {"a": {"x": 1}, "l": [1]}, "one", None)
    live = custom(live, {"a": {"y": 2}}, "two", None)
    assert live["spec"] == {"a": {"x": 1, "y": 2}, "l": [1]}
    with pytest.raises(Conflict, match=r"\.spec\.l$"):
        custom(live, {"l": [1, 2]}, "two", None)


def test_metadata_is_checked_even_without_a_schema() -> None:
    config: Obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "k", "labels": ["a"]}}
    with pytest.raises(ApiError, match=r"\.metadata\.labels: expected map, got &\{\[a\]\}$"):
        apply(None, config, None, manager="m", api_version="g/v1", now=T1, custom=True)


def test_a_configuration_too_deep_to_describe_is_refused() -> None:
    deep: Any = {}
    for _ in range(900):
        deep = {"x": deep}
    with pytest.raises(BadRequest, match="exceeded max depth"):
        custom(None, {"free": deep})


# Laws.

names = st.sampled_from("abc")
texts = st.sampled_from("12")
ports = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.sampled_from([80, 81])},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": texts},
    ),
    max_size=3,
    unique_by=lambda p: (p["containerPort"], p.get("protocol", "TCP")),
)
container = st.fixed_dictionaries(
    {"name": names},
    optional={"image": texts, "args": st.lists(texts, max_size=2), "ports": ports, "tty": st.none() | st.booleans()},
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.none() | st.integers(0, 2),
        "selector": st.fixed_dictionaries({"matchLabels": st.dictionaries(names, texts, max_size=1)}),
        "strategy": st.fixed_dictionaries({}, optional={"type": texts}),
        "template": st.fixed_dictionaries(
            {},
            optional={
                "metadata": st.fixed_dictionaries({"labels": st.dictionaries(names, texts, max_size=2)}),
                "spec": st.fixed_dictionaries(
                    {"containers": st.lists(container, max_size=3, unique_by=lambda c: c["name"])}
                ),
            },
        ),
    },
)
configs = specs.map(lambda spec: deployment(**spec))


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), st.booleans(), configs), max_size=4), configs)
def test_applying_twice_is_applying_once(history: list[tuple[str, bool, Obj]], config: Obj) -> None:
    live: Obj | None = None
    for manager, by_apply, wanted in history:
        if by_apply or live is None:
            live = ssa(live, wanted, manager, force=True)
        else:
            live = update(live, with_entries(wanted, entries_of(live)), manager)
    once = ssa(live, config, "me", T2, force=True)
    assert ssa(once, config, "me", T3) is once


def bare(value: Any) -> Any:
    """Without empty lists and maps: those own nothing, so nobody takes them away."""
    if not isinstance(value, dict):
        return value
    return {name: left for name, item in value.items() if (left := bare(item)) not in ({}, [])}


@given(configs)
def test_what_one_manager_applied_and_gave_up_leaves_nothing(config: Obj) -> None:
    live = ssa(None, config)
    gone = ssa(live, deployment(), now=T2)
    assert bare(without_entries(gone)) == bare(deployment())


@given(st.dictionaries(names, texts), st.dictionaries(st.sampled_from("xyz"), texts))
def test_managers_of_different_fields_commute(one: dict[str, str], two: dict[str, str]) -> None:
    def both(first: tuple[str, Any], second: tuple[str, Any]) -> Obj:
        base = ssa(None, config_map(labels={"base": "1"}), "base")
        return ssa(ssa(base, config_map(first[1]), first[0]), config_map(second[1]), second[0])

    def timeless(obj: Obj) -> tuple[Obj, list[Obj]]:
        """Without times, which an apply that changes nothing does not set, and by which entries are sorted."""
        entries = [{key: value for key, value in entry.items() if key != "time"} for entry in entries_of(obj)]
        return with_entries(obj, []), sorted(entries, key=lambda entry: str(entry["manager"]))

    assert timeless(both(("one", one), ("two", two))) == timeless(both(("two", two), ("one", one)))


@given(st.dictionaries(names, st.just("1")), st.dictionaries(names, st.just("1")), st.sets(names))
def test_a_field_given_up_is_removed_only_if_nobody_else_owns_it(
    mine: dict[str, str], theirs: dict[str, str], given_up: set[str]
) -> None:
    live = ssa(ssa(None, config_map(mine)), config_map(theirs), "they", T2)
    kept = {key: value for key, value in mine.items() if key not in given_up}
    result = ssa(live, config_map(kept), now=T3)
    assert (result.get("data") or {}) == kept | theirs
    assert ((fields_of(result, "they") or {}).get("f:data") or {}).keys() == {f"f:{key}" for key in theirs}


@given(configs, configs)
def test_a_forced_apply_makes_its_configuration_true(before: Obj, config: Obj) -> None:
    live = update(None, before, "creator")
    result = ssa(live, config, now=T2, force=True)
    assert ssa(result, config, "other", T3) is not None, "a second manager with the same wishes meets no conflict"


@cases(
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"type": "object", "additionalProperties": True},
)
def test_a_definition_is_applied_whatever_stands_in_the_place_of_a_schema(schema: Obj) -> None:
    gvk = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

    def definition(of: Obj) -> Obj:
        version = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": of}}}}
        head = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "things.example.io"}}
        return {**head, "spec": {"group": "example.io", "versions": [version]}}

    def applied(live: Obj | None, of: Obj) -> Obj:
        node = DEFINITIONS.node_for(gvk)
        return apply(live, definition(of), node, manager="me", api_version=gvk.api_version, now=T1)

    first = applied(None, schema)
    assert without_entries(first)["spec"] == definition(schema)["spec"]
    again = applied(first, {"type": "array", "items": {"type": "integer"}})
    changed = again["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["a"]
    assert changed == {"type": "array", "items": {"type": "integer"}}


def test_metadata_that_says_nothing_is_not_owned() -> None:
    config: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "1"}}
    assert fields_of(ssa(None, config), "me") == {"f:data": {"f:a": {}}}
    named = {**config, "metadata": {"name": "x", "namespace": "ns"}}
    assert fields_of(ssa(None, named), "me") == {"f:data": {"f:a": {}}}
