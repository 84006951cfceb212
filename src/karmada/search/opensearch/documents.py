"""What is in OpenSearch: an index for each kind, a document for each object with its uid as the id. Pure."""

from __future__ import annotations

from typing import Any, Final

import orjson

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.types import Obj

_NO_TIME: Final = "0001-01-01T00:00:00Z"
_WORD: Final[Obj] = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
_TEXT: Final[Obj] = {"type": "text"}
_UNINDEXED: Final[Obj] = {"type": "object", "enabled": False}
INDEX: Final[Obj] = {
    "settings": {"index": {"number_of_shards": 1, "number_of_replicas": 0}},
    "mappings": {
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "metadata": {
                "properties": {
                    "annotations": _UNINDEXED,
                    "creationTimestamp": _TEXT,
                    "deletionTimestamp": _TEXT,
                    "labels": _UNINDEXED,
                    "name": _WORD,
                    "namespace": _WORD,
                    "ownerReferences": _TEXT,
                    "resourceVersion": _WORD,
                }
            },
            "spec": _UNINDEXED,
            "status": _UNINDEXED,
        }
    },
}


def index_name(kind: str) -> str:
    """Return one for all clusters, and for all groups that have a kind of this name."""
    return f"kubernetes-{kind.lower()}"


def document(obj: Obj, cluster: str) -> Obj:
    metadata = obj.get("metadata") or {}
    return {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "metadata": {
            "name": metadata.get("name"),
            "namespace": metadata.get("namespace") or "",
            "creationTimestamp": metadata.get("creationTimestamp") or _NO_TIME,
            "labels": metadata.get("labels"),
            "annotations": {**(metadata.get("annotations") or {}), CACHED_FROM_CLUSTER: cluster},
            "deletionTimestamp": metadata.get("deletionTimestamp"),
        },
        "spec": _text(obj.get("spec")),
        "status": _text(obj.get("status")),
    }


def is_of(source: Any, cluster: str, group: str) -> bool:
    """Return whether a document is of an object of this cluster and API group."""
    if not isinstance(source, dict):
        return False
    annotations = (source.get("metadata") or {}).get("annotations") or {}
    version = GroupVersion.parse(str(source.get("apiVersion") or ""))
    return annotations.get(CACHED_FROM_CLUSTER) == cluster and version.group == group


def _text(value: Any) -> str:
    """JSON in a string: specs and statuses of different kinds do not share a mapping."""
    return orjson.dumps(value).decode()
