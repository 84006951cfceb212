"""What a Work notes of the rules that were applied to its manifest: one annotation for each kind of policy.

The text of a rule never changes, so it is made once, when its policy is compiled; an annotation is those texts put
together. Fields come in a fixed order and maps sorted, so that the same policies always give the same annotation and a
Work that did not change is not written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from karmada.kube.objects.types import Obj

_ITEM_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "plaintext": ("path", "operator", "value"),
    "imageOverrider": ("predicate?", "component", "operator", "value?"),
    "commandOverrider": ("containerName", "operator", "value?"),
    "argsOverrider": ("containerName", "operator", "value?"),
    "labelsOverrider": ("operator", "value?"),
    "annotationsOverrider": ("operator", "value?"),
    "fieldOverrider": ("fieldPath", "json?", "yaml?"),
    "replicasOverrider": ("value",),
    "resourcesOverrider": ("containerName", "value"),
}
"""Fields that are recorded of an item, in this order; with a question mark only where there is something."""
_PATCH_FIELDS: Final = ("subPath", "operator", "value")


def record(policy: str, overriders: Obj) -> str:
    """Return one element: the policy's name and what the rule says."""
    said = {
        name: [_item(item, fields) for item in overriders[name]]
        for name, fields in _ITEM_FIELDS.items()
        if overriders.get(name)
    }
    return html_safe(orjson.dumps({"policyName": policy, "overriders": said}).decode())


def _item(item: Obj, fields: Iterable[str]) -> Obj:
    found: Obj = {}
    for field in fields:
        name = field.removesuffix("?")
        value: Any = item.get(name)
        if value or name == field:
            patches = name in ("json", "yaml")
            found[name] = [_item(patch, _PATCH_FIELDS) for patch in value] if patches else _sorted(value)
    return found


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


def html_safe(text: str) -> str:
    """JSON text in which no character means anything to HTML or JavaScript, as Go writes it."""
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    if text.isascii():
        return text
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
