"""Values as Go prints them, for the few messages in which Kubernetes shows one."""

from __future__ import annotations

import json
from typing import Any

from karmada.kube.schema.node import Node
from karmada.kube.schema.wire import message_of, wire_table


def go_value(value: Any) -> str:
    """Go's %v: maps with sorted keys and without quotes."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_value, value)) + "]"
    if isinstance(value, str):
        return value
    return _scalar(value, "<nil>")


def go_syntax(value: Any) -> str:
    """Go's %#v."""
    if isinstance(value, dict):
        return "map[string]interface {}{" + ", ".join(f"{quote(k)}:{go_syntax(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(go_syntax, value)) + "}"
    if isinstance(value, str):
        return quote(value)
    return _scalar(value, "interface {}(nil)")


def go_type(value: Any) -> str:
    """Go's %T of decoded JSON."""
    if value is None:
        return "<nil>"
    names = {bool: "bool", int: "int64", float: "float64", str: "string", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}")


def go_json(value: Any, node: Node, touched: Any) -> str:
    """JSON as Go's patch library writes a patched object, with `<`, `>` and `&` escaped.

    Objects that the patch went through (`touched`, a tree of keys) have their keys sorted; the others are as Go wrote
    the struct: in the order of its fields.
    """
    text = json.dumps(_go_ordered(value, node, touched), separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _go_ordered(value: Any, node: Node | None, touched: Any) -> Any:
    if isinstance(value, list):
        items = node.items if node else None
        parts = touched if isinstance(touched, dict) else {}
        return [_go_ordered(item, items, parts.get(str(index))) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties = node.properties if node else {}
    through = isinstance(touched, dict)
    order = {} if through or node is None else _field_order(node.definition)
    keys = sorted(value, key=lambda key: (order.get(key, len(order)), key))
    values = node.values if node else None
    return {
        key: _go_ordered(value[key], properties.get(key) or values, touched.get(key) if through else None)
        for key in keys
    }


def _field_order(definition: str) -> dict[str, int]:
    fields = wire_table().get(message_of(definition), ())
    names = ["kind", "apiVersion", *(field.name for field in fields)]
    return {name: index for index, name in enumerate(names)}


def quote(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _scalar(value: Any, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "g") if isinstance(value, float) else str(value)
