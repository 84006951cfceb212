"""Regular expressions of expressions, compiled once. RE2: no pattern takes more than the product of the lengths."""

from __future__ import annotations

from typing import Any

import re2

from karmada.kube.schema.cel.values import CelError

_MOST = 1024
_compiled: dict[str, Any] = {}


def is_compiled(pattern: str) -> bool:
    return pattern in _compiled


def regex(pattern: str) -> Any:
    found = _compiled.get(pattern)
    if found is None:
        try:
            found = re2.compile(pattern)
        except re2.error as error:
            raise CelError(f"error parsing regexp: {error}") from None
        if len(_compiled) >= _MOST:
            _compiled.clear()
        _compiled[pattern] = found
    return found
