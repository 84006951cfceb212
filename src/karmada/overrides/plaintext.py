"""JSON patches as override policies use them: all items of a list are one patch, and nothing is done when one fails.

The patch runs in one go. Only when it fails is it run again, operation by operation, to say which one and why: in the
words users know from the patch library of the reference implementation.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.errors import RequestEntityTooLarge
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import Dialect, JsonPatchError, apply_json_patch, parse_pointer
from karmada.overrides.containers import Change, unchanged
from karmada.overrides.errors import CannotApply


def plaintext_change(overriders: list[Obj]) -> Change:
    ops = operations(overriders, "path")
    if not ops:
        return unchanged
    return lambda obj: _still_an_object(patched(obj, ops))


def operations(overriders: list[Obj], path: str) -> list[Obj]:
    """JSON patch operations of items that have their path in the field `path`; what has no value sets null."""
    return [
        {"op": item.get("operator"), "path": item.get(path) or "", "value": item.get("value")} for item in overriders
    ]


def patched(document: Any, ops: list[Obj]) -> Any:
    """Return the document after the patch, sharing what did not change; CannotApply when an operation fails."""
    try:
        return apply_json_patch(document, ops, Dialect.STRICT)
    except JsonPatchError:
        raise CannotApply(_failure(document, ops)) from None
    except RequestEntityTooLarge as error:
        raise CannotApply(error.message) from None


def resolve(document: Any, pointer: str) -> Any:
    """Return the value a JSON pointer points to; CannotApply when there is none."""
    try:
        return _follow(document, parse_pointer(pointer))
    except JsonPatchError as error:
        raise CannotApply(error.why) from None
    except LookupError:
        raise CannotApply(f'doc is missing path: "{pointer}": missing value') from None


def _still_an_object(document: Any) -> Obj:
    if not isinstance(document, dict) or not document.get("kind") or not isinstance(document["kind"], str):
        raise CannotApply("Object 'Kind' is missing in the patched document")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name") or not isinstance(metadata["name"], str):
        raise CannotApply("metadata.name is missing in the patched document")
    return document


def _failure(document: Any, ops: list[Obj]) -> str:
    for op in ops:
        try:
            document = apply_json_patch(document, [op], Dialect.STRICT)
        except JsonPatchError as error:
            return _words(document, op, error.why)
    return "the patch failed"


def _words(document: Any, op: Obj, why: str) -> str:
    name, path = op["op"], op["path"]
    if name not in ("add", "remove", "replace"):
        return f"Unexpected kind: {name}"
    parts = parse_pointer(path) if path.startswith("/") else []
    try:
        parent = _follow(document, parts[:-1])
    except LookupError:
        parent = None
    if not parts or not isinstance(parent, (dict, list)):
        shown = path if name == "replace" else f'"{path}"'
        return f"{name} operation does not apply: doc is missing path: {shown}: missing value"
    if name == "replace":
        return f"replace operation does not apply: doc is missing key: {path}: missing value"
    if name == "remove" and isinstance(parent, dict):
        return f"error in remove for path: '{path}': unable to remove nonexistent key: {parts[-1]}: missing value"
    return f"error in {name} for path: '{path}': {why}"


def _follow(document: Any, parts: list[str]) -> Any:
    for part in parts:
        if isinstance(document, list):
            document = document[_index(part)]
        elif isinstance(document, dict):
            document = document[part]
        else:
            raise LookupError(part)
    return document


def _index(part: str) -> int:
    try:
        return int(part)
    except ValueError:
        raise LookupError(part) from None
