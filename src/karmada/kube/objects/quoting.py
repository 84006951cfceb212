"""Text in double quotes as Go's %q prints it: how Kubernetes quotes values in messages."""

from __future__ import annotations

import json
from collections.abc import Iterable


def go_quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def go_quote_all(texts: Iterable[str]) -> str:
    return "[" + " ".join(go_quote(text) for text in texts) + "]"
