"""What the index has of an object, and what it must not have."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from karmada.search.index.terms import FIELD, LABEL, Pair, owner_pair, words
from tests.support.cases import cases

POD: Obj = {
    "kind": "Pod",
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "labels": {"app": "web"},
        "annotations": {"example.com/team": "blue", "kubectl.kubernetes.io/last-applied-configuration": '{"hidden":1}'},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web"}],
    },
    "spec": {
        "nodeName": "node-7",
        "hostNetwork": True,
        "priority": 0,
        "initContainers": [{"image": "busybox"}],
        "containers": [{"image": "nginx:1.27"}],
    },
    "status": {
        "phase": "Pending",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "reason": "ContainersNotReady", "message": "containers with unready status"}],
        "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling"}}}],
    },
}


@cases(
    ("name", "web-1"),
    ("images", "busybox nginx:1.27"),
    ("labels", "app web"),
    ("messages", "Pending ContainersNotReady containers with unready status ImagePullBackOff Back-off pulling"),
    ("place", "Pod shop member1"),
    ("rest", "example.com/team blue node-7"),
)
def test_the_words_of_a_pod_are_in_the_columns_they_belong_to(column: str, text: str) -> None:
    assert getattr(words(POD, "member1"), column) == text


def test_the_tokens_of_a_pod_are_its_labels_its_scalar_fields_and_its_owners() -> None:
    expected = {
        Pair(LABEL, "app", "web"),
        Pair(FIELD, "spec.nodeName", "node-7"),
        Pair(FIELD, "spec.hostNetwork", "true"),
        Pair(FIELD, "spec.priority", "0"),
        Pair(FIELD, "status.phase", "Pending"),
        owner_pair("replicaset", "web"),
    }
    assert set(words(POD, "member1").tokens.split()) == {pair.token for pair in expected}


@cases(
    ({"spec": {"template": {"spec": {"containers": [{"image": "a"}]}}}}, "a"),
    ({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"image": "b"}]}}}}}}, "b"),
    ({"spec": {"template": "not a template"}}, ""),
    ({"spec": None}, ""),
)
def test_images_of_templates_are_found(template: Obj, image: str) -> None:
    assert words({"metadata": {"name": "x"}, **template}, "m").images == image


@cases("data", "stringData", "binaryData")
def test_no_value_of_a_secret_or_config_map_is_indexed(field: str) -> None:
    found = words({"kind": "Secret", "metadata": {"name": "x"}, "type": "Opaque", field: {"password": "hunter2"}}, "m")
    assert "hunter2" not in " ".join(found)
    assert found.tokens == Pair(FIELD, "type", "Opaque").token


@cases({"status": []}, {"status": {"conditions": ["x"]}}, {"spec": {"containers": {}}})
def test_objects_of_an_unexpected_shape_are_indexed_by_their_names(broken: dict[str, Any]) -> None:
    assert words({"metadata": {"name": "odd"}, **broken}, "m").name == "odd"


def test_all_values_of_a_key_begin_alike_and_no_other_keys_do() -> None:
    one, two, other = Pair(LABEL, "app", "a"), Pair(LABEL, "app", "b"), Pair(FIELD, "app", "a")
    assert one.token.startswith(two.key_token)
    assert one.token != two.token
    assert not other.token.startswith(one.key_token)
