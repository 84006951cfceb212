"""ConfigMaps, Secrets, storage, limits, namespaces, nodes, scheduling: the kinds without pods."""

from __future__ import annotations

import base64
from typing import Any

from karmada.kube.kinds import config, limits, namespaces, nodes, scheduling, storage
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects.copying import copy_json
from tests.kube.kinds.texts import texts
from tests.support.cases import cases


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# --- ConfigMaps and Secrets


@cases(
    ({"data": {"a b": "x"}}, 'data[a b]: Invalid value: "a b": a valid config key must consist of'),
    ({"data": {"..": "x"}}, "must not be '..'"),
    ({"data": {"k": "x"}, "binaryData": {"k": "eA=="}}, 'data[k]: Invalid value: "k": duplicate of key present'),
    ({"data": {"k": "x" * (1 << 20), "l": "y"}}, "[]: Too long: may not be more than 1048576 bytes"),
)
def test_config_map_rules(fields: dict[str, Any], wanted: str) -> None:
    assert any(wanted in text for text in texts(config.CONFIG_MAP.validate({"metadata": {}, **fields})))


def test_a_config_map_of_exactly_a_megabyte_is_fine() -> None:
    assert config.CONFIG_MAP.validate({"metadata": {}, "data": {"k": "x" * (1 << 20)}}) == []


def test_immutable_data_is_frozen() -> None:
    old = {"metadata": {}, "data": {"a": "b"}, "immutable": True}
    new = {"metadata": {}, "data": {"a": "c"}}
    frozen = "Forbidden: field is immutable when `immutable` is set"
    assert texts(config.CONFIG_MAP.validate_update(new, old)) == [f"immutable: {frozen}", f"data: {frozen}"]
    assert config.CONFIG_MAP.validate_update({**old, "metadata": {"labels": {"a": "b"}}}, old) == []


def test_string_data_becomes_data() -> None:
    secret = {"metadata": {}, "data": {"a": b64("1"), "b": b64("2")}, "stringData": {"b": "3", "c": "4"}}
    config.SECRET.default(secret)
    assert secret == {"metadata": {}, "type": "Opaque", "data": {"a": b64("1"), "b": b64("3"), "c": b64("4")}}


@cases(
    ("kubernetes.io/tls", {}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
    ("kubernetes.io/tls", {"tls.crt": "", "tls.key": ""}, []),
    ("kubernetes.io/ssh-auth", {}, ["data[ssh-privatekey]: Required value"]),
    ("kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]: Required value"]),
    ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": b64("{}")}, []),
    ("kubernetes.io/basic-auth", {"username": ""}, []),
    ("kubernetes.io/basic-auth", {}, ["data[username]: Required value", "data[password]: Required value"]),
    (
        "kubernetes.io/service-account-token",
        {},
        ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
    ),
    ("example.com/own", {}, []),
)
def test_secrets_have_the_keys_of_their_type(kind: str, data: dict[str, str], wanted: list[str]) -> None:
    assert texts(config.SECRET.validate({"metadata": {}, "type": kind, "data": data})) == wanted


def test_errors_inside_a_secret_are_not_quoted() -> None:
    data = {".dockerconfigjson": b64("my password")}
    [error] = config.SECRET.validate({"metadata": {}, "type": "kubernetes.io/dockerconfigjson", "data": data})
    assert "<secret contents redacted>" in str(error)
    assert "password" not in str(error)


def test_a_secrets_type_is_fixed() -> None:
    old, new = {"metadata": {}, "type": "a"}, {"metadata": {}, "type": "b"}
    assert texts(config.SECRET.validate_update(new, old)) == ['type: Invalid value: "b": field is immutable']


# --- storage


def claim(**spec: Any) -> dict[str, Any]:
    found = {
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }
    storage.PERSISTENT_VOLUME_CLAIM.default(found)
    storage.PERSISTENT_VOLUME_CLAIM.prepare_create(found)
    return found


def test_a_claim_starts_pending() -> None:
    found = claim()
    assert found["status"] == {"phase": "Pending"}
    assert found["spec"]["volumeMode"] == "Filesystem"
    assert storage.PERSISTENT_VOLUME_CLAIM.validate(found) == []


@cases(
    ({"accessModes": []}, "spec.accessModes: Required value: at least 1 access mode is required"),
    ({"accessModes": ["Any"]}, 'spec.accessModes: Unsupported value: "Any"'),
    ({"resources": {}}, "spec.resources[storage]: Required value"),
    ({"resources": {"requests": {"storage": "0"}}}, "must be greater than zero"),
)
def test_claim_rules(spec: dict[str, Any], wanted: str) -> None:
    assert any(wanted in text for text in texts(storage.PERSISTENT_VOLUME_CLAIM.validate(claim(**spec))))


def test_only_bound_claims_change_and_only_grow() -> None:
    update = storage.PERSISTENT_VOLUME_CLAIM.validate_update
    old, bigger = claim(), claim(resources={"requests": {"storage": "2Gi"}})
    assert texts(update(bigger, old)) == [f"spec: Forbidden: {storage.CLAIM_IMMUTABLE}"]
    old["status"]["phase"] = "Bound"
    assert update(bigger, old) == []
    smaller = claim(resources={"requests": {"storage": "1Mi"}})
    assert texts(update(smaller, old)) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]
    assert texts(update(claim(accessModes=["ReadWriteMany"]), old)) == [f"spec: Forbidden: {storage.CLAIM_IMMUTABLE}"]


def test_a_claim_is_bound_by_writing_its_volume() -> None:
    assert storage.PERSISTENT_VOLUME_CLAIM.validate_update(claim(volumeName="pv"), claim()) == []


def volume(**spec: Any) -> dict[str, Any]:
    found = {
        "metadata": {"name": "v"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1024Mi"},
            "hostPath": {"path": "/x"},
            **spec,
        },
    }
    storage.PERSISTENT_VOLUME.default(found)
    return found


def test_volume_defaults_and_rules() -> None:
    found = volume()
    assert found["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert found["spec"]["capacity"] == {"storage": "1Gi"}
    assert storage.PERSISTENT_VOLUME.validate(found) == []
    [error] = storage.PERSISTENT_VOLUME.validate(volume(nfs={"server": "s", "path": "/"}))
    assert "may not specify more than 1 volume type" in str(error)


def test_a_volumes_source_is_fixed() -> None:
    [error] = storage.PERSISTENT_VOLUME.validate_update(volume(hostPath={"path": "/y"}), volume())
    assert "spec.persistentvolumesource is immutable after creation" in str(error)


@cases(
    (
        storage.STORAGE_CLASS,
        {"provisioner": "a"},
        {"provisioner": "b"},
        "provisioner: Forbidden: updates to provisioner are forbidden.",
    ),
    (
        storage.STORAGE_CLASS,
        {"parameters": {"a": "b"}},
        {},
        "parameters: Forbidden: updates to parameters are forbidden.",
    ),
    (
        storage.STORAGE_CLASS,
        {"volumeBindingMode": "Immediate"},
        {"volumeBindingMode": "WaitForFirstConsumer"},
        'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
    ),
    (nodes.RUNTIME_CLASS, {"handler": "a"}, {"handler": "b"}, 'handler: Invalid value: "b": field is immutable'),
    (scheduling.PRIORITY_CLASS, {"value": 1}, {"value": 2}, "value: Forbidden: may not be changed in an update."),
    (
        limits.RESOURCE_QUOTA,
        {"spec": {"scopes": ["BestEffort"]}},
        {"spec": {"scopes": []}},
        "spec.scopes: Invalid value: []: field is immutable",
    ),
)
def test_what_cannot_change(strategy: Strategy, old: dict[str, Any], new: dict[str, Any], wanted: str) -> None:
    errors = strategy.validate_update({"metadata": {}, **new}, {"metadata": {}, **old})
    assert texts(errors) == [wanted]


def test_storage_class_defaults() -> None:
    found: dict[str, Any] = {"metadata": {}, "provisioner": "example.com/p"}
    storage.STORAGE_CLASS.default(found)
    assert (found["reclaimPolicy"], found["volumeBindingMode"]) == ("Delete", "Immediate")
    assert storage.STORAGE_CLASS.validate(found) == []


# --- limits


def test_limit_range_defaults_follow_from_max_and_min() -> None:
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi", "cpu": "100m"}}
    found = {"metadata": {}, "spec": {"limits": [item, {"type": "Pod", "max": {"cpu": "4"}}]}}
    limits.LIMIT_RANGE.default(found)
    assert item["default"] == {"cpu": "2"}
    assert item["defaultRequest"] == {"cpu": "2", "memory": "1Mi"}
    assert "default" not in found["spec"]["limits"][1]
    again = copy_json(found)
    limits.LIMIT_RANGE.default(again)
    assert again == found
    assert limits.LIMIT_RANGE.validate(found) == []


@cases(
    (
        {"min": {"cpu": "2"}, "max": {"cpu": "1"}},
        'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
    ),
    ({"default": {"cpu": "3"}, "max": {"cpu": "1"}}, "default value 3 is greater than max value 1"),
    (
        {"defaultRequest": {"cpu": "3"}, "default": {"cpu": "1"}},
        "default request value 3 is greater than default limit value 1",
    ),
    ({"maxLimitRequestRatio": {"cpu": "500m"}}, "ratio 500m is less than 1"),
)
def test_limits_make_sense(item: dict[str, Any], wanted: str) -> None:
    found = {"metadata": {}, "spec": {"limits": [{"type": "Container", **item}]}}
    assert any(wanted in text for text in texts(limits.LIMIT_RANGE.validate(found)))


# --- namespaces, nodes, priorities, leases


def test_a_new_namespace_is_active_and_named_by_its_label() -> None:
    found: dict[str, Any] = {"metadata": {"name": "n"}}
    namespaces.NAMESPACE.default(found)
    namespaces.NAMESPACE.prepare_create(found)
    assert found == {
        "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def test_only_finalize_changes_a_namespaces_finalizers_and_takes_the_metadata_given() -> None:
    strategy = namespaces.NAMESPACE
    old: dict[str, Any] = {
        "metadata": {"name": "n", "resourceVersion": "5"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {},
    }
    new: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {"finalizers": []}}
    strategy.prepare_update(new, old)
    assert new["spec"]["finalizers"] == ["kubernetes"]
    body = {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"finalizers": []}}
    done = namespaces.finalize_namespace(copy_json(old), body)
    assert done == {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {}, "status": {}}


def test_a_namespace_is_held_by_its_own_finalizers() -> None:
    strategy = namespaces.NAMESPACE
    assert strategy.deleting is not None
    assert strategy.mark_deleting is not None
    found: dict[str, Any] = {
        "metadata": {"name": "n"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    assert strategy.deleting(found)
    strategy.mark_deleting(found)
    assert found["status"] == {"phase": "Terminating"}
    assert not strategy.deleting({"metadata": {"name": "n"}, "spec": {}})


def test_a_node_may_be_given_its_range_once() -> None:
    update = nodes.NODE.validate_update
    old: dict[str, Any] = {"metadata": {}, "spec": {}}
    new: dict[str, Any] = {"metadata": {}, "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}
    assert update(new, old) == []
    other = {"metadata": {}, "spec": {"podCIDRs": ["10.1.0.0/24"]}}
    assert 'node updates may not change podCIDR except from "" to valid' in texts(update(other, new))[0]
    assert update({"metadata": {}, "spec": {**new["spec"], "unschedulable": True}}, new) == []


def test_a_node_can_use_what_it_has() -> None:
    found = {"metadata": {}, "status": {"capacity": {"cpu": "4000m"}}}
    nodes.NODE.default(found)
    assert found["status"] == {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}
    assert nodes.NODE.keeps_status_on_create


@cases(
    ("mine", 1_000_000_000, None),
    ("mine", 1_000_000_001, "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
    ("system-x", 1, "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved"),
    ("system-node-critical", 2_000_001_000, None),
)
def test_priorities(name: str, value: int, wanted: str | None) -> None:
    found = {"metadata": {"name": name}, "value": value}
    scheduling.PRIORITY_CLASS.default(found)
    messages = texts(scheduling.PRIORITY_CLASS.validate(found))
    assert (not messages) if wanted is None else (wanted in messages[0])


def test_leases_last() -> None:
    found = {"metadata": {}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}
    assert texts(nodes.LEASE.validate(found)) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ]
