"""How much of what happened, and how readily, a server keeps in memory.

Watches and lists from further back read the store.
"""

from __future__ import annotations

from typing import NamedTuple


class History(NamedTuple):
    look_back: int = 2_000
    """So many of the last revisions are loaded at the start."""
    seconds: float = 300.0
    """Changes of each resource are kept for so long,"""
    at_least: int = 100
    """the last of them in any case,"""
    at_most: int = 5_000
    """but never more than so many"""
    most_bytes: int = 16 << 20
    """or so much."""
    uncompressed: int = 2_048
    """So many of each resource are not compressed, the last that were written."""
