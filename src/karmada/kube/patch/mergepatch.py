"""JSON merge patch (RFC 7386): null deletes, objects merge, everything else replaces.

Results share what did not change with their inputs.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import json_equal


def apply_merge_patch(doc: Any, patch: Any) -> Any:
    """Return the patched document; neither input is changed."""
    if not isinstance(patch, dict):
        return patch
    out = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            out[key] = apply_merge_patch(out.get(key), value)
        else:
            out[key] = value
    return out


def create_merge_patch(a: Obj, b: Obj) -> Obj:
    """Return the smallest merge patch that turns `a` into `b`; a null in `b` counts as an absent member."""
    patch: Obj = {key: None for key in a if key not in b}
    for key, value in b.items():
        if key not in a:
            patch[key] = value
            continue
        old = a[key]
        if old is value or json_equal(old, value):
            continue
        patch[key] = create_merge_patch(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return patch
