"""How many bytes an answer may have: far more than any server has reason to send, far less than would hurt."""

from __future__ import annotations

from typing import Final

KB: Final = 1 << 10
MB: Final = 1 << 20
PROBE_BYTES: Final = 64 * KB
"""For pages that only say how a server feels."""
OBJECT_BYTES: Final = 16 * MB
"""For everything that is no list: no store takes objects anywhere near this size."""
LIST_BYTES: Final = 256 * MB
WATCH_LINE_BYTES: Final = OBJECT_BYTES


def readable(count: int) -> str:
    """Return a limit, for people."""
    for unit, name in ((MB, "MB"), (KB, "KB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} bytes"
