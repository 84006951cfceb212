"""JSON values as Go prints them, for texts that clients of Kubernetes expect letter by letter."""

from __future__ import annotations

from typing import Any


def go_value(value: Any) -> str:
    """As %v prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_value(item) for item in value)}]"
    if isinstance(value, str):
        return value
    return "<nil>" if value is None else go_scalar(value)


def go_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _go_float(value) if isinstance(value, float) else str(value)


def _go_float(value: float) -> str:
    """Return the shortest text that means this number, with an exponent from a million on."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)]
    digits, _, exponent = f"{value:.16e}".partition("e")
    for precision in range(17):
        text = f"{value:.{precision}e}"
        if float(text) == value:
            digits, _, exponent = text.partition("e")
            break
    power = int(exponent)
    if power < -4 or power >= 6:
        return f"{digits}e{exponent[0]}{abs(power):02d}"
    return f"{value:.{max(0, len(digits.partition('.')[2]) - power)}f}"


def go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {bool: "bool", int: "int64", float: "float64", str: "string"}.get(type(value), "<nil>")
