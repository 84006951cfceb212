"""Light templates: what informers keep of the objects of every propagated kind.

All of them are watched, so what is kept of one decides what ten thousand cost. A light template has its labels, the
annotations of the policy that claims it, and two digests of the content: one changes with anything but the status, the
other only with what users change, not the control plane. The whole object is read from the server when a binding is
built from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from karmada.api import well_known
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj

_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "labels")
_KEPT_ANNOTATIONS: Final = (
    *well_known.POLICY_CLAIM_ANNOTATIONS,
    *well_known.CLUSTER_POLICY_CLAIM_ANNOTATIONS,
)
_NOT_FRAME: Final = frozenset({"managedFields", "resourceVersion", "generation", "labels", "annotations"})
"""Metadata that never counts, or is counted apart."""
_NOT_CONTENT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_OURS: Final = ".karmada.io"
_WHOLE, _OWN = "whole", "own"


@lru_cache(maxsize=4096)
def light_of(gvk: GVK) -> Shape:
    """Return the shape of this kind's light templates: the same for all callers, who share an informer."""
    api_version, kind = gvk.api_version, gvk.kind

    def light(obj: Obj) -> Obj:
        metadata = obj["metadata"]
        kept = {field: metadata[field] for field in _KEPT if field in metadata}
        annotations = metadata.get("annotations") or {}
        claims = {key: annotations[key] for key in _KEPT_ANNOTATIONS if key in annotations}
        if claims:
            kept["annotations"] = claims
        whole, own = _digests(obj)
        return {"apiVersion": api_version, "kind": kind, "metadata": kept, _WHOLE: whole, _OWN: own}

    return Shape("light", light, paged=True)


def changed(old: Obj, new: Obj) -> bool:
    """Return whether anything changed but the status and managedFields; of light templates."""
    return bool(old[_WHOLE] != new[_WHOLE])


def changed_by_user(old: Obj, new: Obj) -> bool:
    """Return whether anything changed besides the labels and annotations that the control plane writes on templates."""
    return bool(old[_OWN] != new[_OWN])


def _digests(obj: Obj) -> tuple[int, int]:
    metadata = obj["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    frame = {field: value for field, value in metadata.items() if field not in _NOT_FRAME}
    content = {field: value for field, value in obj.items() if field not in _NOT_CONTENT}
    common = _digest(frame, content)
    whole = hash((common, metadata.get("generation"), _digest(labels, annotations)))
    return whole, hash((common, _digest(_users(labels), _users(annotations))))


def _users(marks: Mapping[str, str]) -> Mapping[str, str]:
    """Labels or annotations without the control plane's own."""
    kept = well_known.SKIP_AUTO_PROPAGATION
    return {key: value for key, value in marks.items() if _OURS not in key or key == kept}


def _digest(*parts: Mapping[str, Any]) -> int:
    return hash(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS))
