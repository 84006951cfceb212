from __future__ import annotations

import pytest

from karmada.kube.client.manifests import load_manifests
from tests.support.cases import cases


def test_a_manifest_file_gives_its_objects_and_those_of_its_lists() -> None:
    text = """
# a comment only
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
"""
    assert [obj["kind"] for obj in load_manifests(text)] == ["ConfigMap", "Secret"]


@cases(("a: 1", "'Kind' is missing"), ("kind: X", "apiVersion not set"), ("[1]", "not a Kubernetes object"))
def test_a_document_that_is_no_object_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_manifests(text)
