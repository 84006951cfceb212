"""JSON as Go's encoder writes it, for texts that clients of Kubernetes expect letter by letter."""

from __future__ import annotations

import json
import re
from typing import Any

_ESCAPED = re.compile("[<>&\u2028\u2029]")


def to_json(value: Any) -> str:
    """Indented, with sorted keys."""
    return _escape(json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False)) + "\n"


def compact_json(value: Any) -> str:
    return _escape(json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False))


def _escape(text: str) -> str:
    """Go writes as escapes what might be taken for HTML; these characters are nowhere but in texts."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
