"""What a Secret holds is not shown, wherever the Secret is."""

from __future__ import annotations

from karmada.dashboard.differences import difference
from karmada.dashboard.formatting import as_yaml
from karmada.kube.objects.types import Obj
from tests.support.objects import kube_object

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def secret(value: str) -> Obj:
    return kube_object(
        "v1", "Secret", "a", "b", annotations={APPLIED: f'{{"data":{{"password":"{value}"}}}}', "x": "z"}
    ) | {"data": {"password": value}}


def test_values_of_a_secret_are_fingerprints_and_the_rest_is_as_it_is() -> None:
    text = as_yaml({**secret("aHVudGVyMg=="), "type": "Opaque"})
    assert "aHVudGVyMg" not in text
    assert "password: '(hidden: 12 characters, " in text
    assert "type: Opaque" in text
    assert "x: z" in text


def test_a_secret_inside_of_a_work_is_covered_too() -> None:
    work = {"kind": "Work", "metadata": {"name": "w"}, "spec": {"workload": {"manifests": [secret("aHVudGVyMg==")]}}}
    assert "aHVudGVyMg" not in as_yaml(work)


def test_other_kinds_with_data_are_shown() -> None:
    assert "password: hunter2" in as_yaml({"apiVersion": "v1", "kind": "ConfigMap", "data": {"password": "hunter2"}})


def test_two_secrets_can_be_compared_without_being_read() -> None:
    assert difference(secret("same"), secret("same")) == []
    lines = difference(secret("aaaa"), secret("bbbb"))
    assert {line.sort for line in lines} >= {"added", "removed"}
    assert not [line for line in lines if "aaaa" in line.text or "bbbb" in line.text]
