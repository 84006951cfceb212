"""Applies a mutation to the object of a write: decodes and defaults it again, and keeps what it may not change."""

from __future__ import annotations

from typing import Any

import orjson

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import InternalError
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import json_equal
from karmada.kube.schema.decode import DecodeError, normalize
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.review import scale_of
from karmada.kube.server.handlers.system_fields import projection

_KEPT = ("uid", "name", "namespace", "resourceVersion", "creationTimestamp", "deletionTimestamp",
         "deletionGracePeriodSeconds", "generation")  # fmt: skip


def take(attributes: Attributes, patched: Any) -> bool:
    """Replace the object of a write by its patched form, in place; False if they are equal."""
    obj = attributes.obj
    assert obj is not None
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise InternalError.of("the patch left no object")
    if json_equal(patched, obj):
        return False
    fresh: Obj = orjson.loads(orjson.dumps(patched))
    _keep_identity(fresh, obj)
    if scale_of(attributes) is None:
        resource = attributes.resource
        try:
            normalize(resource.schema(), fresh, custom=resource.custom)
        except DecodeError as error:
            raise InternalError.of(str(error)) from error
    _replace(obj, _only_this_part(attributes, fresh))
    attributes.resource.strategy.default(obj)
    return True


def _only_this_part(attributes: Attributes, fresh: Obj) -> Obj:
    """For a write to a subresource: only its part of the mutation is kept."""
    resource, old, sub = attributes.resource, attributes.old, attributes.subresource
    if old is None or scale_of(attributes) is not None:
        return fresh
    if not sub:
        if resource.has_status:
            fresh.pop("status", None)
            if "status" in old:
                fresh["status"] = copy_json(old["status"])
        return fresh
    part = resource.subresources.get(sub)
    project = projection(resource, part) if part is not None else None
    return project(copy_json(old), fresh) if project is not None else fresh


def _keep_identity(fresh: Obj, obj: Obj) -> None:
    """Refuse a mutation of type, identity or what only the server sets. A missing name may be given."""
    fresh["apiVersion"], fresh["kind"] = obj.get("apiVersion"), obj.get("kind")
    meta, own = fresh["metadata"], obj.get("metadata") or {}
    for key in _KEPT:
        if own.get(key) is not None:
            meta[key] = own[key]
        elif key != "name":
            meta.pop(key, None)


def _replace(obj: Obj, fresh: Obj) -> None:
    """In place, including the metadata, since callers hold references to both."""
    meta: Obj = obj.setdefault("metadata", {})
    meta.clear()
    meta.update(fresh["metadata"])
    obj.clear()
    obj.update(fresh)
    obj["metadata"] = meta
