"""Labels and annotations of the object itself; those of pod templates are left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from karmada.kube.objects.types import Obj
from karmada.overrides.containers import Change, unchanged

_Marks = dict[str, str]
_Edit = Callable[[_Marks, Mapping[str, str]], _Marks]


def _replaced(marks: _Marks, value: Mapping[str, str]) -> _Marks:
    return {key: value.get(key, old) for key, old in marks.items()}


def _removed(marks: _Marks, value: Mapping[str, str]) -> _Marks:
    return {key: old for key, old in marks.items() if key not in value}


_EDITS: Final[dict[str, _Edit]] = {
    "add": lambda marks, value: {**marks, **value},
    "addIfAbsent": lambda marks, value: {**marks, **{key: new for key, new in value.items() if key not in marks}},
    "replace": _replaced,
    "remove": _removed,
}


def labels_change(overrider: Obj) -> Change:
    return _change("labels", overrider)


def annotations_change(overrider: Obj) -> Change:
    return _change("annotations", overrider)


def _change(field: str, overrider: Obj) -> Change:
    value: dict[str, str] = overrider.get("value") or {}
    edit = _EDITS.get(overrider.get("operator") or "")
    if edit is None or not value:
        return unchanged

    def change(obj: Obj) -> Obj:
        metadata = obj["metadata"]
        marks = _marks(metadata.get(field))
        new = edit(marks, value)
        return obj if new == marks else {**obj, "metadata": {**metadata, field: new}}

    return change


def _marks(found: Any) -> _Marks:
    """Return what is no map of texts counts as nothing."""
    if isinstance(found, dict) and all(type(value) is str for value in found.values()):
        return found
    return {}
