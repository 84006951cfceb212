"""Filling in defaults, dropping nulls and pruning, in place, by the compiled schema of a custom resource.

The order is prune, drop nulls, default: a null where null is not allowed counts as absent. A default is copied when it
is filled in and then gets the defaults below it, so a default need not repeat them.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import UNSET, Node
from karmada.kube.schema.structural import Checks

_IDENTITY = frozenset({"apiVersion", "kind", "metadata"})


def apply_defaults(node: Node, obj: Obj, settled: frozenset[str] = frozenset()) -> None:
    """Fill in the schema's defaults, in place, except in the parts that are `settled`."""
    if node.checks.has_defaults:
        _default(node, obj, settled)


def _default(node: Node, value: Any, settled: frozenset[str] = frozenset()) -> None:
    if isinstance(value, dict):
        _default_properties(node, value, settled)
        below = node.values
        if below is not None and _has_defaults(below):
            for key, item in value.items():
                if item is None and not below.nullable and below.default is not UNSET:
                    item = value[key] = copy_json(below.default)
                _default(below, item)
    elif type(value) is list and node.items is not None and _has_defaults(node.items):
        items = node.items
        for index, item in enumerate(value):
            if item is None and not items.nullable and items.default is not UNSET:
                item = value[index] = copy_json(items.default)
            _default(items, item)


def _has_defaults(node: Node) -> bool:
    return node.checks is not None and node.checks.has_defaults


def _default_properties(node: Node, value: Obj, settled: frozenset[str]) -> None:
    for name, child in node.properties.items():
        checks = child.checks
        if checks is None or not checks.has_defaults or name in settled:
            continue
        present = value.get(name, UNSET)
        if child.default is not UNSET and (present is UNSET or (present is None and not child.nullable)):
            present = value[name] = copy_json(child.default)
        if present is not UNSET:
            _default(child, present)


def drop_nulls(node: Node, obj: Obj) -> None:
    """Remove nulls of fields that are not nullable and have no default, in place."""
    _drop(node, obj)


def _drop(node: Node, value: Any) -> None:
    if isinstance(value, dict):
        properties, values = node.properties, node.values
        gone: list[str] | None = None
        for key, item in value.items():
            child = properties.get(key, values)
            if child is None:
                continue
            if item is None:
                if not child.nullable and child.default is UNSET:
                    gone = [*(gone or ()), key]
            elif (isinstance(item, dict) or type(item) is list) and child.checks is not None:
                _drop(child, item)
        for key in gone or ():
            del value[key]
    elif type(value) is list and node.items is not None:
        for item in value:
            if isinstance(item, dict) or type(item) is list:
                _drop(node.items, item)


def prune(node: Node, obj: Obj, *, nulls: bool = False, settled: frozenset[str] = frozenset()) -> list[str]:
    """Remove what the schema does not know, in place; the paths of what was removed.

    The root's apiVersion, kind and metadata are left alone, as are the parts that are `settled`. With `nulls`, drop
    nulls in the same walk.
    """
    unknown: list[str] = []
    properties, values, preserve = node.properties, node.values, node.preserve
    for key, item in list(obj.items()):
        if key in _IDENTITY or key in settled:
            continue
        child = properties.get(key, values)
        if child is not None:
            if isinstance(item, dict) or type(item) is list:
                _prune(child, item, key, unknown, nulls)
            elif nulls and item is None and not child.nullable and child.default is UNSET:
                del obj[key]
        elif not preserve:
            del obj[key]
            unknown.append(key)
    return unknown


def _prune(node: Node, value: Any, path: str, unknown: list[str], nulls: bool) -> None:
    """Prune a field; keeping unknown fields is not inherited, a declared field decides for itself."""
    if type(value) is list:
        _prune_list(node, value, path, unknown, nulls)
        return
    properties, values = node.properties, node.values
    preserve = node.preserve or (node.checks is None and not properties and values is None)
    gone: list[str] = []
    for key, item in value.items():
        child = properties.get(key, values)
        if child is not None:
            if isinstance(item, dict) or type(item) is list:
                _prune(child, item, f"{path}.{key}", unknown, nulls)
            elif nulls and item is None and not child.nullable and child.default is UNSET:
                gone.append(key)
        elif not preserve:
            gone.append(key)
            unknown.append(f"{path}.{key}")
    for key in gone:
        del value[key]


def _prune_list(node: Node, value: list[Any], path: str, unknown: list[str], nulls: bool) -> None:
    items = node.items
    if items is None:
        if node.preserve or node.checks is None:
            return
        items = _NOTHING
    for index, item in enumerate(value):
        if isinstance(item, dict) or type(item) is list:
            _prune(items, item, f"{path}[{index}]", unknown, nulls)


_NOTHING = Node(checks=Checks())
"""A place that knows no field."""
