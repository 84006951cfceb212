"""What audit events show of bodies: no values of Secrets, wherever they stand, and no managedFields where unwanted."""

from __future__ import annotations

from typing import Any

import orjson

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_yaml

REDACTED = "[redacted]"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def parse_body(body: bytes, content_type: str) -> Any:
    """Return a body in JSON or YAML, a patch included; None for what is neither."""
    media = content_type.split(";", 1)[0].strip().lower()
    try:
        if not media or media.endswith("json"):
            return orjson.loads(body)
        return load_yaml(body) if media.endswith("yaml") else None
    except ValueError:
        return None


def shown(value: Any, *, omit_managed_fields: bool) -> Any:
    """Return a copy of the value as it may be recorded."""
    copied = copy_json(value)
    if omit_managed_fields and isinstance(copied, dict):
        for obj in (copied, *(copied.get("items") or ())):
            _drop_managed_fields(obj)
    redact(copied)
    return copied


def _drop_managed_fields(obj: Any) -> None:
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)


def redact(value: Any) -> None:
    """In place: replace the values of every Secret in it, such as those in the manifests of another object."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if item.get("kind") == "Secret":
                _redact_secret(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _redact_secret(secret: Obj) -> None:
    for field in ("data", "stringData"):
        values = secret.get(field)
        if values:
            secret[field] = dict.fromkeys(values, REDACTED) if isinstance(values, dict) else REDACTED
    metadata = secret.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict) and _LAST_APPLIED in annotations:
        annotations[_LAST_APPLIED] = REDACTED
