"""Empty tables: Lua cannot distinguish {} from [], so what a script returns has only [].

What an empty table was meant to be is looked up in the objects the script was given, by its path without indexes. What
was empty in none of them goes: the script made it, or took the last thing out of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Path = tuple[str, ...]
_GONE: Any = object()


class References:
    """Where objects have empty objects, and where empty lists."""

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        self.objects: set[Path] = set()
        self.lists: set[Path] = set()
        for obj in objects:
            self._note(obj, ())

    def _note(self, value: Any, path: Path) -> None:
        if isinstance(value, dict):
            if not value:
                self.objects.add(path)
            for key, item in value.items():
                self._note(item, (*path, key))
        elif isinstance(value, list):
            if not value:
                self.lists.add(path)
            for item in value:
                self._note(item, path)


NONE = References()


def resolved(value: Any, references: References = NONE, *, is_list: bool = False) -> Any:
    """Return a returned value with its empty tables made out.

    `is_list` says what the value as a whole is meant to be.
    """
    if value == []:
        return [] if is_list else {}
    return _resolved(value, references, ())


def _resolved(value: Any, references: References, path: Path) -> Any:
    if isinstance(value, dict):
        fields = {key: _resolved(item, references, (*path, key)) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item is not _GONE}
    if not isinstance(value, list):
        return value
    if value:
        return [item for item in (_resolved(item, references, path) for item in value) if item is not _GONE]
    if path in references.objects:
        return {}
    return [] if path in references.lists else _GONE
