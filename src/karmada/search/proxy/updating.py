"""The body of an update or a patch, as the member gets it: without what the proxy has added to the object.

Clients send back what they have read: under a resourceVersion of the proxy and marked with its cluster. The member gets
its own resourceVersion, so that an update of a stale object is still refused. Patches have both
where a file that was read here is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.negotiation import JSON, PROTOBUF, YAML
from karmada.search.proxy.versions import Versions

Codec = tuple[Callable[[bytes], Any], Callable[[Any], bytes]]
_JSON = (
    JSON,
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
)
_YAML = (YAML, "application/x-yaml", "text/yaml", "application/apply-patch+yaml")


def for_member(body: bytes, content_type: str, cluster: str, protobuf: Codec | None = None) -> bytes:
    """Return the body in the same content type; as it is if nothing has to change, or if it cannot be read."""
    codec = _codec(content_type.partition(";")[0].strip().lower() or JSON, protobuf)
    if codec is None:
        return body
    read, write = codec
    try:
        obj = read(body)
    except ValueError:
        return body
    return write(obj) if _changed(obj, cluster) else body


def _codec(media: str, protobuf: Codec | None) -> Codec | None:
    if media in _JSON:
        return orjson.loads, orjson.dumps
    if media in _YAML:
        from karmada.kube.schema.yamlio import dump_yaml, load_yaml

        return load_yaml, dump_yaml
    return protobuf if media == PROTOBUF else None


def _changed(body: Any, cluster: str) -> bool:
    """In place; whether there was something to change."""
    if isinstance(body, list):  # the operations of a JSON patch
        changed = [_own_version(each, "value", cluster) for each in body if _is_version(each)]
        return any(changed)
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(metadata, dict):
        return False
    unmarked = _unmark(metadata)
    return _own_version(metadata, "resourceVersion", cluster) or unmarked


def _unmark(metadata: Obj) -> bool:
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or CACHED_FROM_CLUSTER not in annotations:
        return False
    del annotations[CACHED_FROM_CLUSTER]
    if not annotations:
        del metadata["annotations"]
    return True


def _is_version(operation: Any) -> bool:
    return isinstance(operation, dict) and operation.get("path") == "/metadata/resourceVersion"


def _own_version(holder: Obj, key: str, cluster: str) -> bool:
    version = holder.get(key)
    if not isinstance(version, str) or not list(versions := Versions.decode(version)):
        return False
    holder[key] = versions.get(cluster)
    return True
