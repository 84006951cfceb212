"""The texts of a response's Warning headers, none twice, and bounded however many there are to give.

As in Kubernetes: up to 4096 characters everything is shown. Beyond that each text is cut at 256 characters, and what
then exceeds the 4096 is left out. A request with a hundred thousand unknown fields costs one look each.
"""

from __future__ import annotations

_TOTAL, _EACH = 4096, 256


class Warnings(list[str]):
    """A list to which each text is appended once. Nearly every request has an empty one, so that costs nothing."""

    _seen: set[str] | None = None
    _length = 0
    _cut = False

    def append(self, text: str) -> None:
        if self._seen is None:
            self._seen = set()
        if not text or self._length >= _TOTAL or text in self._seen:
            return
        self._seen.add(text)
        if not self._cut and self._length + len(text) > _TOTAL:
            self._shorten()
        shown = text[:_EACH] if self._cut else text
        if self._length + len(shown) <= _TOTAL:
            self._length += len(shown)
            super().append(shown)
        else:
            self._length = _TOTAL

    def _shorten(self) -> None:
        self._cut = True
        self[:] = [text[:_EACH] for text in self]
        self._length = sum(map(len, self))

    def headers(self) -> list[str]:
        """As values of Warning headers: quoted, without control characters."""
        return [f'299 - "{_escaped(text)}"' for text in self]


def _escaped(text: str) -> str:
    printable = "".join(character for character in text if character.isprintable())
    return printable.replace("\\", "\\\\").replace('"', '\\"')
