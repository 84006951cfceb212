"""Pods: updates, graceful deletion, field selectors, and writes through subresources."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.kinds import pod_subresources as subs
from karmada.kube.kinds import podspec
from karmada.kube.kinds.pods import POD, UPDATE_FORBIDDEN, grace_period, validate_update
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import Conflict, FieldError
from tests.kube.kinds.texts import texts
from tests.support.cases import cases

NOW = 1_700_000_000.0


def pod(**fields: Any) -> dict[str, Any]:
    found = {
        "metadata": {"name": "p", "namespace": "ns", "resourceVersion": "7", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}], **fields},
    }
    POD.default(found)
    POD.prepare_create(found)
    return found


def changed(found: dict[str, Any], **fields: Any) -> dict[str, Any]:
    new = copy_json(found)
    new["spec"].update(fields)
    return new


def test_a_new_pod_is_pending() -> None:
    assert pod()["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_images_may_change() -> None:
    old = pod()
    new = copy_json(old)
    new["spec"]["containers"][0]["image"] = "nginx:2"
    assert validate_update(new, old) == []


@cases(
    ({}, {"nodeName": "n"}, f"spec: Forbidden: {UPDATE_FORBIDDEN}"),
    ({}, {"containers": []}, "spec.containers: Forbidden: pod updates may not add or remove containers"),
    (
        {"activeDeadlineSeconds": 10},
        {"activeDeadlineSeconds": 20},
        "spec.activeDeadlineSeconds: Invalid value: 20: must be less than or equal to previous value",
    ),
    (
        {"activeDeadlineSeconds": 10},
        {"activeDeadlineSeconds": None},
        "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
    ),
    (
        {"tolerations": [{"key": "a", "operator": "Exists"}]},
        {"tolerations": []},
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
    ),
    (
        {"schedulingGates": [{"name": "a"}]},
        {"schedulingGates": [{"name": "a"}, {"name": "b"}]},
        "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'",
    ),
)
def test_what_an_update_may_not_do(before: dict[str, Any], fields: dict[str, Any], wanted: str) -> None:
    old = pod(**before)
    assert texts(validate_update(changed(old, **fields), old)) == [wanted]


@cases(
    ({}, {"activeDeadlineSeconds": 5}),
    ({"activeDeadlineSeconds": 10}, {"activeDeadlineSeconds": 5}),
    ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "a", "tolerationSeconds": 3}, {"key": "b"}]}),
    ({"schedulingGates": [{"name": "a"}]}, {"schedulingGates": []}),
    ({"schedulingGates": [{"name": "a"}]}, {"nodeSelector": {"zone": "x"}}),
    ({"terminationGracePeriodSeconds": -1}, {"terminationGracePeriodSeconds": 1}),
)
def test_what_an_update_may_do(before: dict[str, Any], fields: dict[str, Any]) -> None:
    old = pod(**before)
    assert validate_update(changed(old, **fields), old) == []


@cases(
    ("n", "Running", None, 30),
    ("n", "Running", 5, 5),
    ("n", "Running", 0, 0),
    ("n", "Running", -3, 1),
    ("", "Pending", None, 0),
    ("n", "Succeeded", None, 0),
    ("n", "Failed", 5, 0),
)
def test_how_long_a_deletion_waits(node: str, phase: str, requested: int | None, wanted: int) -> None:
    found = pod(nodeName=node)
    found["status"]["phase"] = phase
    assert grace_period(found, requested) == wanted


def test_field_selectors_see_unset_fields_as_empty() -> None:
    found = pod()
    assert POD.fields["spec.nodeName"](found) == ""
    assert POD.fields["spec.hostNetwork"](found) == "false"
    assert POD.fields["status.phase"](found) == "Pending"
    assert POD.fields["spec.host"](pod(nodeName="n")) == "n"


def test_being_scheduled_is_no_new_generation() -> None:
    assert POD.generation is not None
    assert POD.generation(pod(nodeName="n")) == POD.generation(pod())
    assert POD.generation(pod(activeDeadlineSeconds=5)) != POD.generation(pod())


BINDING = {"metadata": {"name": "p", "annotations": {"a": "b"}}, "target": {"kind": "Node", "name": "n1"}}


def test_a_binding_schedules_the_pod() -> None:
    bound = subs.bind(pod(), BINDING, NOW)
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"a": "b"}
    [condition] = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


@cases(
    (
        {"nodeName": "n0"},
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n0"',
    ),
    ({"schedulingGates": [{"name": "g"}]}, "pod p has non-empty .spec.schedulingGates"),
)
def test_a_pod_that_cannot_be_bound_is_a_conflict(fields: dict[str, Any], wanted: str) -> None:
    with pytest.raises(Conflict) as caught:
        subs.bind(pod(**fields), BINDING, NOW)
    assert wanted in caught.value.message


def test_a_binding_needs_a_target() -> None:
    assert texts(subs.binding_errors({"target": {"kind": "Pod"}})) == [
        'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        "target.name: Required value",
    ]


def test_ephemeral_containers_are_only_added() -> None:
    old = pod()
    wanted = {"metadata": {}, "spec": {"ephemeralContainers": [{"name": "d", "image": "busybox"}], "nodeName": "evil"}}
    new = subs.take_ephemeral(copy_json(old), wanted)
    assert new["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "Always"
    assert "nodeName" not in new["spec"]
    assert "resourceVersion" not in new["metadata"]
    assert subs.ephemeral_errors(new, old) == []
    gone = subs.take_ephemeral(copy_json(new), {"spec": {}})
    assert "may not be removed" in texts(subs.ephemeral_errors(gone, new))[0]
    other = copy_json(new)
    other["spec"]["ephemeralContainers"][0]["image"] = "other"
    assert "may not be changed" in texts(subs.ephemeral_errors(other, new))[0]


def test_a_resize_keeps_the_quality_of_service() -> None:
    old = pod(containers=[{"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "1"}}}])
    body = {
        "metadata": {"resourceVersion": "7"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
    }
    new = subs.take_resize(copy_json(old), body)
    assert new["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert new["metadata"]["resourceVersion"] == "7"
    assert subs.resize_errors(new, old) == []
    both = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}}
    better = subs.take_resize(copy_json(old), {"spec": {"containers": [{"name": "c", "resources": both}]}})
    assert "Pod QOS Class may not change as a result of resizing" in texts(subs.resize_errors(better, old))[0]


def test_an_evicted_pod_is_marked() -> None:
    [condition] = subs.mark_evicted(pod(), NOW)["status"]["conditions"]
    assert condition["type"] == "DisruptionTarget"
    assert condition["reason"] == "EvictionByEvictionAPI"


@cases(
    ("kernel.shm_rmid_forced", True), ("a/b-c_d", True), ("foo-", False),
    ("bar..", False), ("a" * 254, False),
)  # fmt: skip
def test_sysctls_have_names_that_a_kernel_could_know(name: str, fine: bool) -> None:
    errors: list[FieldError] = []
    spec = {"containers": [], "securityContext": {"sysctls": [{"name": name}]}}
    podspec.validate_pod_spec(errors, "spec", spec)
    found = [error for error in errors if "sysctls" in error.field]
    assert [error.field for error in found] == ([] if fine else ["spec.securityContext.sysctls[0].name"])
    assert all("must have at most 253 characters and match regex ^([a-z0-9]" in error.body for error in found)
