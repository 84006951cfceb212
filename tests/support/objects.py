"""Objects of Kubernetes as tests write them down."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj

_METADATA = frozenset({
    "annotations", "creationTimestamp", "deletionTimestamp", "finalizers", "generateName", "generation", "labels",
    "managedFields", "ownerReferences", "resourceVersion", "uid",
})  # fmt: skip


def kube_object(api_version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> Obj:
    """Return an object; `fields` of metadata go there, others, like spec, stand beside it."""
    metadata: Obj = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata |= {field: value for field, value in fields.items() if field in _METADATA}
    others = {field: value for field, value in fields.items() if field not in _METADATA}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **others}
