"""The schemas of a CustomResourceDefinition, and the JSON paths that point into them.

A version's schema is validated in three steps, each only if the one before found nothing: is it structural, do its
defaults fit it, do its rules compile. That is expensive: a schema that this process found valid before, in any
definition, is recognised by its digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import orjson

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import FieldError, duplicate, invalid, required, too_many
from karmada.kube.objects.jsonpath import compile_path
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.types import Obj
from karmada.kube.schema.defaulting import apply_defaults, prune
from karmada.kube.schema.node import UNSET, Node
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.structural_rules import structural_errors
from karmada.kube.schema.validation import validate_value

_SELECTABLE_LIMIT = 8
_ACCEPTED: Final[Memo[bytes, bool]] = Memo(512)
"""The digests of schemas without errors."""


def compile_error(path: str) -> str:
    """Why a JSON path is no path; empty when it is one."""
    if not path.startswith("."):
        return "must start with a dot"
    try:
        compile_path(path)
    except ValueError as error:
        return str(error)
    return ""


def schema_errors(version: Obj, at: str, path: str) -> list[FieldError]:
    """Return what is wrong with a version's schema, which is `at` that place, and what refers to it."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not schema:
        return [required(at)]
    selectable = version.get("selectableFields") or []
    digest = _digest([schema, selectable])
    if digest is not None and _ACCEPTED.get(digest):
        return []
    errors = _judge(schema, selectable, at, path)
    if not errors and digest is not None:
        _ACCEPTED.put(digest, True)
    return errors


def _digest(value: Any) -> bytes | None:
    """Return None for what JSON does not carry; that is for the judgement to report."""
    try:
        return hashlib.sha256(orjson.dumps(value)).digest()
    except TypeError:
        return None


def _judge(schema: Obj, selectable: list[Obj], at: str, path: str) -> list[FieldError]:
    errors = structural_errors(schema, at)
    if errors:
        return errors
    node = compile_schema(schema)
    errors = list(_default_errors(node, at))
    if node.checks.has_rules:
        from karmada.kube.schema.cel.rule_check import rule_errors

        errors.extend(rule_errors(node, at))
    errors.extend(_selectable_errors(selectable, node, f"{path}.selectableFields"))
    return errors


def _default_errors(node: Node, path: str) -> Iterator[FieldError]:
    """Return the errors of a default, which must fit the schema it stands in."""
    if node.checks is None or not node.checks.has_defaults:
        return
    if node.default is not UNSET:
        yield from _unfit_default(node, f"{path}.default")
    for name, child in node.properties.items():
        yield from _default_errors(child, f"{path}.properties[{name}]")
    if node.values is not None:
        yield from _default_errors(node.values, f"{path}.additionalProperties")
    if node.items is not None:
        yield from _default_errors(node.items, f"{path}.items")


def _unfit_default(node: Node, path: str) -> Iterator[FieldError]:
    if isinstance(node.default, dict | list):
        holder = Node(type="object", properties={"default": node}, checks=node.checks)
        value: Any = {"default": copy_json(node.default)}
        if prune(holder, value):
            yield invalid(path, node.default, "must not have unknown fields")
            return
        apply_defaults(holder, value)
        value = value["default"]
    else:
        value = node.default
    yield from validate_value(node, value, path)


def _selectable_errors(fields: list[Obj], node: Node, path: str) -> Iterator[FieldError]:
    if len(fields) > _SELECTABLE_LIMIT:
        yield too_many(path, len(fields), _SELECTABLE_LIMIT)
    seen: set[str] = set()
    for index, field in enumerate(fields):
        at, json_path = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not json_path:
            yield required(at)
            continue
        if json_path in seen:
            yield duplicate(at, json_path)
        seen.add(json_path)
        steps = None if compile_error(json_path) else compile_path(json_path).fields
        if steps is None:
            yield invalid(at, json_path, "is an invalid path: must be a path of plain fields")
            continue
        if steps[:1] == ("metadata",):
            yield invalid(at, json_path, "must not point to fields in metadata")
            continue
        place = _follow(node, steps)
        if place is None:
            yield invalid(at, json_path, "is an invalid path: does not refer to a valid field")
        elif place.type not in ("string", "boolean", "integer"):
            message = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield invalid(at, json_path, message)


def _follow(node: Node, steps: tuple[str, ...]) -> Node | None:
    place: Node | None = node
    for step in steps:
        if place is None:
            return None
        place = place.properties.get(step)
    return place
