"""Changes inside a JSON or YAML document that stands as text in a field, as in a ConfigMap.

A JSON document keeps the order of its keys and the text of its numbers (1.50 stays 1.50), and comes out without
spaces. A YAML document comes out as Kubernetes' tools write it: keys sorted, without its comments.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import dump_yaml, load_yaml
from karmada.overrides.containers import Change
from karmada.overrides.errors import CannotApply
from karmada.overrides.plaintext import operations, patched, resolve
from karmada.overrides.recording import html_safe

_LONGEST_INT = 18
"""Digits of a number that fits into 64 bits whatever they are."""


def field_change(overrider: Obj) -> Change:
    path = overrider.get("fieldPath") or ""
    yaml_ops = operations(overrider.get("yaml") or [], "subPath")
    json_ops = operations(overrider.get("json") or [], "subPath")

    def change(obj: Obj) -> Obj:
        text = resolve(obj, path)
        if not isinstance(text, str):
            raise CannotApply(f"Get object's value by overrider's path({path}) is not string")
        new = patched_yaml(text, yaml_ops) if yaml_ops else patched_json(text, json_ops) if json_ops else ""
        if new == text:
            return obj
        changed: Obj = patched(obj, [{"op": "replace", "path": path, "value": new}])
        return changed

    return change


def patched_yaml(text: str, ops: list[Obj]) -> str:
    try:
        document = load_yaml(text)
    except ValueError as error:
        raise CannotApply(str(error)) from None
    return dump_yaml(patched(document, ops)).decode()


def patched_json(text: str, ops: list[Obj]) -> str:
    """Return the patched document; no document at all stays none."""
    if not text:
        return text
    try:
        document = json.loads(text, parse_float=_verbatim, parse_int=_integer, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CannotApply(f"invalid JSON: {error}") from None
    return html_safe(orjson.dumps(patched(document, ops)).decode())


def _verbatim(number: str) -> orjson.Fragment:
    return orjson.Fragment(number)


def _integer(number: str) -> Any:
    return int(number) if len(number) <= _LONGEST_INT else orjson.Fragment(number)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
