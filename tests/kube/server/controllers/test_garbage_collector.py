"""What the garbage collector keeps of objects; what it does with it is in tests/integration."""

from __future__ import annotations

import orjson

from karmada.kube.objects.types import Obj
from karmada.kube.server.controllers.garbage_collector import parse_slim, slim


def test_the_same_is_kept_of_an_object_and_of_its_bytes() -> None:
    metadata: Obj = {
        "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 3,
        "labels": {"app": "web"}, "managedFields": [{"manager": "kubectl"}], "finalizers": ["foregroundDeletion"],
        "deletionTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [{"uid": "o", "name": "owner"}],
    }  # fmt: skip
    few: Obj = {"name": "web"}
    for kept in (metadata, few):
        obj: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": {"containers": []}}
        assert parse_slim(orjson.dumps(obj)) == slim(obj)
