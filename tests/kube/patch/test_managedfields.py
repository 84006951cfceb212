from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.patch.fieldset import intersection
from karmada.kube.patch.managedfields import (
    CUSTOM_STATUS,
    MAIN,
    MAX_UPDATE_ENTRIES,
    after_admission,
    entries_of,
    intern_fields,
    same_but_times,
    status_reset,
    update_managers,
    with_entries,
)
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.node import Node
from tests.support.cases import cases
from tests.support.counting import counted_calls

DEFINITIONS = Definitions.load("1.36")
DEPLOYMENT = DEFINITIONS.node_for(GVK("apps", "v1", "Deployment"))
CONFIG_MAP = DEFINITIONS.node_for(GVK("", "v1", "ConfigMap"))
SERVICE = DEFINITIONS.node_for(GVK("", "v1", "Service"))
T1, T2, T3 = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", "2026-01-02T03:04:07Z"


def deployment(**spec: Any) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": T1,
            "labels": {"app": "web"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "resources": {},
                            "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        }
                    ],
                    "securityContext": {},
                },
            },
            **spec,
        },
        "status": {},
    }


def config_map(data: Any, entries: list[Obj] | None = None, **metadata: Any) -> Obj:
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", **metadata}, "data": data}
    return obj if entries is None else with_entries(obj, entries)


def write(old: Obj | None, new: Obj, manager: str = "me", now: str = T1, **options: Any) -> list[Obj]:
    return update_managers(old, new, CONFIG_MAP, manager=manager, api_version="v1", now=now, **options)


def owners(entries: list[Obj], key: str) -> list[str]:
    return [entry["manager"] for entry in entries if f"f:{key}" in entry["fieldsV1"].get("f:data", {})]


def test_creating_a_deployment_owns_all_but_identity_and_what_the_type_always_has() -> None:
    entries = update_managers(
        None,
        deployment(),
        DEPLOYMENT,
        manager="kubectl-client-side-apply",
        api_version="apps/v1",
        now=T1,
        reset=MAIN,
    )
    port = 'k:{"containerPort":80,"protocol":"TCP"}'
    container: Any = {
        ".": {},
        "f:image": {},
        "f:name": {},
        "f:resources": {},
        "f:ports": {".": {}, port: {".": {}, "f:containerPort": {}, "f:protocol": {}}},
    }
    assert entries == [
        {
            "manager": "kubectl-client-side-apply",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {
                    "f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}},
                    "f:labels": {".": {}, "f:app": {}},
                },
                "f:spec": {
                    "f:replicas": {},
                    "f:selector": {},
                    "f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
                    "f:template": {
                        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                        "f:spec": {"f:containers": {'k:{"name":"c"}': container}, "f:securityContext": {}},
                    },
                },
            },
        }
    ]


def test_creating_a_config_map_owns_its_data() -> None:
    (entry,) = write(None, config_map({"a": "1"}))
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}


def test_creating_a_service_owns_its_ports_by_port_and_protocol() -> None:
    spec = {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}], "selector": {"a": "b"}, "type": "ClusterIP"}
    obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
    (entry,) = update_managers(None, obj, SERVICE, manager="m", api_version="v1", now=T1)
    port: Any = {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}
    assert entry["fieldsV1"] == {
        "f:spec": {"f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': port}, "f:selector": {}, "f:type": {}}
    }


def test_creating_a_custom_resource_owns_its_spec_itself() -> None:
    node = Node(type="object", properties={"spec": Node(type="object", properties={"x": Node(type="integer")})})
    obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"x": 1}}
    (entry,) = update_managers(None, obj, node, manager="m", api_version="g/v1", now=T1, custom=True)
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:x": {}}}


def test_a_write_takes_what_it_changes_from_the_others() -> None:
    old = config_map({"a": "1", "b": "1"})
    old = with_entries(old, write(None, old, "one"))
    entries = write(old, config_map({"a": "2", "b": "1", "c": "1"}), "two", T2)
    assert [(e["manager"], e["time"]) for e in entries] == [("one", T1), ("two", T2)]
    assert entries[0]["fieldsV1"] == {"f:data": {".": {}, "f:b": {}}}
    assert entries[1]["fieldsV1"] == {"f:data": {"f:a": {}, "f:c": {}}}


def test_a_manager_that_lost_everything_is_gone() -> None:
    old = config_map({"a": "1"})
    entries = write(None, old, "one")
    entries = [{**entries[0], "fieldsV1": {"f:data": {"f:a": {}}}}]
    assert [e["manager"] for e in write(with_entries(old, entries), config_map({"a": "2"}), "two", T2)] == ["two"]


def test_removed_fields_vanish_from_all_and_give_the_writer_nothing() -> None:
    old = config_map({"a": "1", "b": "1"})
    old = with_entries(old, write(None, old, "one"))
    entries = write(old, config_map({"b": "1"}), "two", T2)
    assert [(e["manager"], e["time"], e["fieldsV1"]) for e in entries] == [
        ("one", T1, {"f:data": {".": {}, "f:b": {}}})
    ]


def test_a_second_write_of_a_manager_adds_to_its_entry() -> None:
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old))
    (entry,) = write(old, config_map({"a": "1", "b": "2"}), now=T2)
    assert (entry["time"], entry["fieldsV1"]) == (T2, {"f:data": {".": {}, "f:a": {}, "f:b": {}}})


def test_a_write_that_changes_nothing_leaves_the_list_alone() -> None:
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old))
    assert write(old, copy_json(old), "other", T2) is entries_of(old)
    assert write(old, config_map({"a": "1"}), "other", T2) is entries_of(old)


def test_an_update_by_the_applier_itself_leaves_its_apply_entry() -> None:
    applied = {"manager": "me", "operation": "Apply", "apiVersion": "v1", "time": T1, "fieldsType": "FieldsV1"}
    old = config_map({"a": "1"}, [{**applied, "fieldsV1": {"f:data": {"f:a": {}}}}])
    entries = write(old, config_map({"a": "2"}), "me", T2)
    assert [(e["operation"], e["fieldsV1"]) for e in entries] == [("Update", {"f:data": {"f:a": {}}})]


def test_versions_and_subresources_make_entries_of_their_own() -> None:
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old))
    new = config_map({"a": "1", "b": "2"})
    entries = update_managers(old, new, CONFIG_MAP, manager="me", api_version="v2", now=T2)
    assert [e["apiVersion"] for e in entries] == ["v1", "v2"]
    entries = write(old, new, now=T2, subresource="scale")
    assert [(e.get("subresource"), "time" in e) for e in entries] == [("scale", False), (None, True)]


@cases([], [{}])
def test_an_empty_list_wipes_and_untracked_stays_untracked(sent: list[Obj]) -> None:
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old))
    new = config_map({"a": "2"}, managedFields=sent)
    assert write(old, new) == []
    wiped = config_map({"a": "2"})
    assert write(wiped, config_map({"a": "3"})) == []


def test_a_body_may_bring_its_own_list_but_not_through_a_subresource() -> None:
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old, "one"))
    mine = [{**entries_of(old)[0], "manager": "mine", "operation": "Apply"}]
    assert write(old, config_map({"a": "1"}, managedFields=mine), "two", T2) is mine
    assert write(old, config_map({"a": "1"}, managedFields=mine), "two", T2, subresource="status") is entries_of(old)
    changed = write(old, config_map({"a": "2"}, managedFields=mine), "two", T2)
    assert [(e["manager"], e["fieldsV1"]) for e in changed] == [
        ("mine", {"f:data": {}}),
        ("two", {"f:data": {"f:a": {}}}),
    ]


@cases(
    {"operation": "Other"},
    {"apiVersion": ""},
    {"fieldsType": "FieldsV2"},
    {"fieldsV1": {"nonsense": {}}},
    {"fieldsV1": {"k:[": {}}},
)
def test_an_invalid_list_is_ignored_in_a_body_and_undone_after_admission(bad: Obj) -> None:
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old, "one"))
    broken = [{**entries_of(old)[0], **bad}]
    assert write(old, config_map({"a": "1"}, managedFields=broken)) is entries_of(old)
    admitted, warning = after_admission(entries_of(old), with_entries(old, broken))
    assert admitted == old
    assert warning.startswith(".metadata.managedFields was in an invalid state after admission; ")


def test_admission_may_change_the_list_validly() -> None:
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old, "one"))
    assert after_admission(entries_of(old), old) == (old, "")
    renamed = with_entries(old, [{**entries_of(old)[0], "manager": "x"}])
    assert after_admission(entries_of(old), renamed) == (renamed, "")


def test_the_main_endpoint_leaves_status_alone_and_the_status_endpoint_the_rest() -> None:
    def put(old: Obj, new: Obj, subresource: str, now: str) -> list[Obj]:
        reset = status_reset(("labels",)) if subresource else MAIN
        return update_managers(
            old, new, DEPLOYMENT, manager="m", api_version="apps/v1", now=now, subresource=subresource, reset=reset
        )

    old = deployment()
    old = with_entries(old, update_managers(None, old, DEPLOYMENT, manager="a", api_version="apps/v1", now=T1))
    new = copy_json(old)
    new["status"] = {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]}
    assert put(old, new, "", T2) is entries_of(old)
    new["spec"]["replicas"] = 9
    new["metadata"]["labels"]["x"] = "y"
    new["metadata"]["annotations"]["r"] = "1"
    first, second = put(old, new, "status", T2)
    assert first is entries_of(old)[0]
    assert (second["subresource"], second["fieldsV1"]) == (
        "status",
        {
            "f:metadata": {"f:annotations": {"f:r": {}}},
            "f:status": {
                "f:replicas": {},
                "f:conditions": {".": {}, 'k:{"type":"Available"}': {".": {}, "f:type": {}, "f:status": {}}},
            },
        },
    )


def test_a_custom_status_endpoint_owns_nothing_but_status() -> None:
    old: Obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"x": 1}}
    old = with_entries(old, update_managers(None, old, None, manager="a", api_version="g/v1", now=T1, custom=True))
    new = {**old, "spec": {"x": 2}, "status": {"y": 1}, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    entries = update_managers(
        old,
        new,
        None,
        manager="m",
        api_version="g/v1",
        now=T2,
        subresource="status",
        custom=True,
        reset=CUSTOM_STATUS,
    )
    assert entries[1]["fieldsV1"] == {"f:status": {".": {}, "f:y": {}}}


def test_the_oldest_writers_are_folded_into_one_when_there_are_too_many() -> None:
    obj = config_map({"k": "0"})
    obj = with_entries(obj, write(None, obj, "m00", "2026-01-01T00:00:00Z"))
    for number in range(1, MAX_UPDATE_ENTRIES + 3):
        new = config_map({**obj["data"], f"k{number}": "1"})
        obj = with_entries(new, write(obj, new, f"m{number:02}", f"2026-01-01T00:00:{number:02}Z"))
    entries = entries_of(obj)
    assert len(entries) == MAX_UPDATE_ENTRIES
    assert [e["manager"] for e in entries] == ["ancient-changes", *(f"m{n:02}" for n in range(4, 13))]
    assert entries[0]["time"] == "2026-01-01T00:00:03Z"
    assert entries[0]["fieldsV1"] == {"f:data": {".": {}, "f:k": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}}


def test_folding_keeps_versions_apart() -> None:
    entries: list[Obj] = [
        {
            "manager": f"m{number:02}",
            "operation": "Update",
            "apiVersion": "v1" if number % 2 else "v2",
            "time": f"2026-01-01T00:00:{number:02}Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {f"f:k{number}": {}}},
        }
        for number in range(MAX_UPDATE_ENTRIES + 1)
    ]
    old = config_map({f"k{number}": "1" for number in range(MAX_UPDATE_ENTRIES + 1)}, entries)
    folded = write(old, config_map({**old["data"], "new": "1"}), "z", T1)
    assert len(folded) == MAX_UPDATE_ENTRIES
    ancient = {e["apiVersion"]: sorted(e["fieldsV1"]["f:data"]) for e in folded if e["manager"] == "ancient-changes"}
    assert ancient == {"v1": ["f:k1", "f:k3"], "v2": ["f:k0", "f:k2"]}


def test_entries_are_sorted_by_operation_time_and_names() -> None:
    def entry(manager: str, operation: str, time: str) -> Obj:
        fields: Any = {"f:data": {f"f:{manager}{operation}": {}}}
        return {
            "manager": manager,
            "operation": operation,
            "apiVersion": "v1",
            "time": time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }

    stored = [entry("b", "Update", T3), entry("a", "Update", T3), entry("c", "Update", T1), entry("z", "Apply", T3)]
    entries = write(config_map({"x": "1"}, stored), config_map({"x": "2"}), "n", T2)
    assert [e["manager"] for e in entries] == ["z", "c", "n", "a", "b"]


def test_objects_that_differ_only_in_times_are_the_same() -> None:
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old))
    later = with_entries(old, [{**entries_of(old)[0], "time": T3}])
    assert same_but_times(old, later)
    assert not same_but_times(old, with_entries(old, [{**entries_of(old)[0], "manager": "x"}]))
    assert not same_but_times(old, {**later, "data": {"a": "2"}})
    assert not same_but_times(old, config_map({"a": "1"}, entries_of(old), labels={"a": "b"}))


def test_equal_sets_are_one_object() -> None:
    first = write(None, config_map({"a": "1"}))[0]["fieldsV1"]
    second = write(None, config_map({"a": "2"}, labels=None))[0]["fieldsV1"]
    assert write(None, config_map({"a": "3"}))[0]["fieldsV1"] is first
    assert second is not first
    assert intern_fields(copy_json(first)) is first


def test_an_object_too_deep_to_describe_is_not_tracked() -> None:
    deep: Any = {}
    for _ in range(900):
        deep = {"x": deep}
    obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "spec": deep}
    assert update_managers(None, obj, None, manager="m", api_version="g/v1", now=T1, custom=True) == []
    fields: Any = {}
    for _ in range(900):
        fields = {"f:x": fields}
    old = config_map({"a": "1"})
    old = with_entries(old, write(None, old))
    sent = [{**entries_of(old)[0], "fieldsV1": fields}]
    assert write(old, config_map({"a": "1"}, managedFields=sent)) is entries_of(old)


data = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), data), min_size=1, max_size=6))
def test_every_field_has_exactly_one_updater(writes: list[tuple[str, dict[str, str]]]) -> None:
    obj = config_map({"a": "0"})
    obj = with_entries(obj, write(None, obj, "creator"))
    for number, (manager, values) in enumerate(writes):
        new = config_map({**values, "always": str(number)})
        before = copy_json(obj)
        obj = with_entries(new, write(obj, new, manager, f"2026-01-01T00:00:0{number}Z"))
        for key, value in new["data"].items():
            (owner,) = owners(entries_of(obj), key)
            if before["data"].get(key) != value:
                assert owner == manager
        sets = [entry["fieldsV1"] for entry in entries_of(obj)]
        assert not any(intersection(a, b) for i, a in enumerate(sets) for b in sets[:i])
        assert sum(len(owners(entries_of(obj), key)) for key in "abcd" if key not in new["data"]) == 0


def calls(function: Callable[[], Any]) -> int:
    """How many functions it calls: a cost that is the same on every machine."""
    with counted_calls() as counted:
        function()
    return counted.count


def hot_path(variables: int) -> tuple[int, int]:
    """The cost of a create and of an update of two containers with so many variables."""
    containers = [
        {
            "name": name,
            "image": "i",
            "env": [{"name": f"E{n}", "value": "v"} for n in range(variables)],
            "ports": [{"containerPort": 80 + n, "protocol": "TCP"} for n in range(3)],
        }
        for name in ("a", "b")
    ]
    options: Any = {"manager": "m", "api_version": "apps/v1", "now": T1}
    old = deployment()
    old["spec"]["template"]["spec"]["containers"] = containers
    old = with_entries(old, update_managers(None, old, DEPLOYMENT, **options))
    new = copy_json(old)
    new["spec"]["template"]["spec"]["containers"][1]["env"][5]["value"] = "changed"
    return (
        calls(lambda: update_managers(None, old, DEPLOYMENT, **options)),
        calls(lambda: update_managers(old, new, DEPLOYMENT, **options)),
    )


def test_the_hot_path_is_cheap() -> None:
    """Only a change of algorithm breaks it: a few calls for each field, and no more of them in larger objects."""
    hot_path(10)  # what is compiled once for a kind does not count
    small, large = hot_path(10), hot_path(80)
    assert max(small) < 3000
    assert all(after < 8 * before for before, after in zip(small, large, strict=True)), (small, large)
