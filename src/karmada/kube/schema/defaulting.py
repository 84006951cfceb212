"""Filling in defaults, dropping nulls and pruning, in place, by the compiled schema of a custom resource.

The order is prune, drop nulls, default: a null where null is not allowed counts as absent. A default is copied when it
is filled in and then gets the defaults below it, so a default need not repeat them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import UNSET, Node
from karmada.kube.schema.structural import Checks
from karmada.kube.schema.walk import Path

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


InForm = Callable[[Node, Obj, Path], None]
"""Brings the metadata of an embedded object into form."""


def prune(
    node: Node,
    obj: Obj,
    *,
    nulls: bool = False,
    settled: frozenset[str] = frozenset(),
    path: Path | None = None,
    in_form: InForm | None = None,
) -> list[str]:
    """Remove what the schema does not know, in place; return the paths of what was removed, the first of them.

    The root's apiVersion, kind and metadata are left alone, as are the parts that are `settled`, and with `in_form`
    those of embedded objects, which it gets instead. With `nulls`, those go in the same walk that count as absent.
    """
    keep = _IDENTITY | settled
    if obj.keys() <= keep:
        return []
    path = Path() if path is None else path
    _prune_members(node, obj, path, nulls, in_form, keep)
    return path.unknown


def _prune_members(
    node: Node, obj: Obj, path: Path, nulls: bool, in_form: InForm | None, keep: frozenset[str] = frozenset()
) -> None:
    """Prune an object; keeping unknown fields is not inherited, a declared field decides for itself."""
    properties, values = node.properties, node.values
    preserve = node.preserve or (node.checks is None and not properties and values is None)
    gone: list[str] = []
    for key, item in obj.items():
        if key in keep:
            continue
        child = properties.get(key, values)
        if child is not None:
            if isinstance(item, dict) or type(item) is list:
                path.append(key)
                _prune(child, item, path, nulls, in_form)
                path.pop()
            elif nulls and item is None and not child.nullable and child.default is UNSET:
                gone.append(key)
        elif not preserve:
            path.note_unknown(key)
            gone.append(key)
    for key in gone:
        del obj[key]


def _prune(node: Node, value: Any, path: Path, nulls: bool, in_form: InForm | None) -> None:
    """Prune a field that holds an object or a list.

    One of another type loses everything; with `in_form` nothing, so that validation sees it as it was sent.
    """
    if type(value) is list:
        items = node.items
        if items is None:
            if in_form is not None or node.preserve or node.checks is None:
                return
            items = _NOTHING
        path.append(0)
        for index, item in enumerate(value):
            path[-1] = index
            if isinstance(item, dict) or type(item) is list:
                _prune(items, item, path, nulls, in_form)
        path.pop()
    elif node.embedded and in_form is not None:
        _prune_members(node, value, path, nulls, in_form, _IDENTITY)
        in_form(node, value, path)
    elif in_form is None or node.type == "object" or node.properties or node.values is not None:
        _prune_members(node, value, path, nulls, in_form)


_NOTHING = Node(checks=Checks())
"""A place that knows no field."""
