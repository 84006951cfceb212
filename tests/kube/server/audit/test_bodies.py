from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.types import Obj
from karmada.kube.server.audit.bodies import REDACTED, parse_body, shown
from tests.support.cases import cases

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-100, 100) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["kind", "data", "metadata", "items"]), inner),
)
LAST = "kubectl.kubernetes.io/last-applied-configuration"


def test_values_of_secrets_are_hidden_wherever_they_stand() -> None:
    secret: Obj = {
        "kind": "Secret",
        "metadata": {"name": "s", "annotations": {LAST: '{"data":{"a":"aHVzaA=="}}', "kept": "x"}},
        "data": {"a": "aHVzaA=="},
        "stringData": {"b": "hush"},
    }
    work = {"kind": "Work", "spec": {"workload": {"manifests": [secret, {"kind": "ConfigMap", "data": {"c": "seen"}}]}}}
    text = json.dumps(shown(work, omit_managed_fields=False))
    assert "hush" not in text
    assert "aHVzaA" not in text
    assert "seen" in text
    assert f'"a": "{REDACTED}"' in text
    assert secret["data"] == {"a": "aHVzaA=="}, "the shared object is not changed"


@given(VALUES)
def test_anything_else_is_shown_as_it_is(value: object) -> None:
    if "Secret" not in json.dumps(value):
        assert shown(value, omit_managed_fields=False) == value


def test_managed_fields_are_left_out_of_objects_and_of_lists() -> None:
    obj = {"metadata": {"name": "a", "managedFields": [{}]}}
    assert shown(obj, omit_managed_fields=True) == {"metadata": {"name": "a"}}
    assert shown({"items": [obj]}, omit_managed_fields=True) == {"items": [{"metadata": {"name": "a"}}]}
    assert shown(obj, omit_managed_fields=False) == obj


@cases(
    (b'{"a":1}', "application/json; charset=utf-8", {"a": 1}),
    (b'{"a":1}', "", {"a": 1}),
    (b'[{"op":"remove","path":"/a"}]', "application/json-patch+json", [{"op": "remove", "path": "/a"}]),
    (b"a: 1", "application/apply-patch+yaml", {"a": 1}),
    (b"\x00", "application/vnd.kubernetes.protobuf", None),
    (b"{", "application/json", None),
)
def test_bodies_are_read_by_their_type(body: bytes, media: str, expected: object) -> None:
    assert parse_body(body, media) == expected
