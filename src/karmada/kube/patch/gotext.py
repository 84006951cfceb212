"""Values as Go prints them, for the few messages in which Kubernetes shows one."""

from __future__ import annotations

import json
from typing import Any


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


def quote(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _scalar(value: Any, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "g") if isinstance(value, float) else str(value)
