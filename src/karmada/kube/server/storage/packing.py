"""Stored values are compressed, with a dictionary of what objects usually contain.

The dictionaries are a part of the program, so that a value needs nothing else to be read: of a Work of 4.7 kB, 370
bytes are stored. Events, of which there are more than of anything else, have a small one of their own: 1.1 kB become
160 bytes, for less work. A value is compressed before it is encrypted, since what is encrypted cannot be. Its
first byte says how it is read: one of PACKED, or the `{` of the JSON that it is.

Those that differ in some values only may be packed by the form that they have in common, which is compressed once: 205
bytes for an Event, for a tenth of the work. A form is such a text with a hole for each value. What is packed for a text
is, after a mark: the size of the form in two bytes, the form as its difference to a sample, 16 bytes for each hole of a
UUID, and the values of the other holes, separated by NUL. So it needs nothing else to be read. Events repeat the name
of what they are about, the second of their values, in their own name and message: it is stored first, and in the others
a byte stands for it. An empty value is the same as the one before. JSON has no control characters: those that stand for
a hole, a separator and that name are in no text.

A dictionary never changes. Another one would be another file, with a mark of its own, beside these.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from operator import itemgetter
from typing import Final, NamedTuple

from karmada.kube.objects.codec import WORTHWHILE, ZlibDictionary, pays, with_revision
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.names import uuid_text
from karmada.kube.server.storage.interface import StoreUnavailable

_ANY, _EVENT, _FORM = b"\x01", b"\x02", b"\x03"
PACKED: Final = (_ANY, _EVENT, _FORM)
"""For `startswith`."""
_EVENTS: Final = b'{"apiVersion":"v1","kind":"Event",'
HOLE: Final = b"\0"
UUID_HOLE: Final = b"\2"
_SEPARATOR, _SECOND = b"\0", b"\1"
_HOLES = re.compile(b"([%b%b])" % (HOLE, UUID_HOLE))
_SIZE = 2
_FEWEST = 2
"""Values of a text, besides UUIDs."""
_UUID = 16


@cache
def _dictionary() -> ZlibDictionary:
    return ZlibDictionary((files(__package__) / "dictionary.txt").read_bytes())


@cache
def _dictionary_of_events() -> ZlibDictionary:
    return ZlibDictionary((files(__package__) / "dictionary_events.txt").read_bytes(), window=12)


@cache
def _dictionary_of_forms() -> ZlibDictionary:
    """In the file @ is a hole, and # one of a UUID."""
    text = (files(__package__) / "dictionary_forms.txt").read_bytes()
    return ZlibDictionary(text.replace(b"@", HOLE).replace(b"#", UUID_HOLE), window=12)


def pack(value: bytes) -> bytes:
    """Return what is stored for a value."""
    if value.startswith(_EVENTS):
        mark, dictionary = _EVENT, _dictionary_of_events()
    else:
        mark, dictionary = _ANY, _dictionary()
    marked = value.startswith(PACKED)  # no JSON does, but it must not be taken for what it is not
    if len(value) < WORTHWHILE and not marked:
        return value
    small = dictionary.difference(value)
    return mark + small if marked or pays(small, value) else value


class Form:
    """The form of texts that begin with the same mark when they are packed, and have two values at least."""

    __slots__ = ("_start",)

    def __init__(self, text: bytes, sample: ZlibDictionary, mark: bytes) -> None:
        """`text` has a HOLE or a UUID_HOLE in each place of a value."""
        small = sample.difference(text)
        self._start = mark + len(small).to_bytes(_SIZE, "big") + small

    def packed(self, values: Sequence[bytes], uuids: bytes) -> bytes:
        """`values` are none of them empty, unless they equal the one before; `uuids` are those in binary, joined."""
        first, second, *rest = values
        others = _SEPARATOR.join((first, *rest)).replace(second, _SECOND)
        return b"%b%b%b%b%b" % (self._start, uuids, second, _SEPARATOR, others)


class _Read(NamedTuple):
    """A form that was unpacked."""

    text: bytes
    """With a %b in each hole."""
    values: int
    uuids: int
    order: Callable[[Sequence[bytes]], Sequence[bytes]]
    """From values and UUIDs, in that order, to what is in each hole."""


@lru_cache(maxsize=256)
def _read(sample: ZlibDictionary, small: bytes) -> _Read:
    """Texts that are read one after the other often have the same."""
    text = sample.restored(small)
    holes = _HOLES.findall(text)
    values, uuids = holes.count(HOLE), holes.count(UUID_HOLE)
    if values < _FEWEST:
        raise ValueError("the form has too few values")
    next_value, next_uuid = itertools.count(), itertools.count(values)
    order = itemgetter(*(next(next_value if hole == HOLE else next_uuid) for hole in holes))
    return _Read(_HOLES.sub(b"%b", text.replace(b"%", b"%%")), values, uuids, order)


def restored(sample: ZlibDictionary, packed: bytes) -> bytes:
    """Return the text, of what was packed for it without its mark; ValueError if that is no such thing."""
    size = _SIZE + int.from_bytes(packed[:_SIZE], "big")
    text, count, uuids, order = _read(sample, packed[_SIZE:size])
    end = size + _UUID * uuids
    second, _, others = packed[end:].partition(_SEPARATOR)
    values = others.replace(_SECOND, second).split(_SEPARATOR)
    values.insert(1, second)
    if len(values) != count or not all(values[:2]):
        raise ValueError("the values do not fit the form")
    if b"" in values:
        values = _repeated(values)
    values += [uuid_text(packed[at : at + _UUID]).encode() for at in range(size, end, _UUID)]
    whole: bytes = text % order(values)
    return whole


def _repeated(values: list[bytes]) -> list[bytes]:
    """With the one before in place of an empty one."""
    last = b""
    return [last := value or last for value in values]


def uuid_bytes(text: bytes) -> bytes:
    """Return the 16 bytes of a UUID in its canonical form."""
    return bytes.fromhex(text.replace(b"-", b"").decode())


def form(text: bytes) -> Form:
    """For Events; `text` has holes, see `Form`."""
    return Form(text, _dictionary_of_forms(), _FORM)


def unpack(key: str, stored: bytes) -> bytes:
    """Return the value; StoreUnavailable if it was not packed by `pack`."""
    if not stored.startswith(PACKED):
        return stored
    try:
        if stored.startswith(_FORM):
            return restored(_dictionary_of_forms(), stored[1:])
        dictionary = _dictionary_of_events() if stored.startswith(_EVENT) else _dictionary()
        return dictionary.restored(stored[1:])
    except ValueError as error:
        raise StoreUnavailable(f"the value of {key} cannot be unpacked: {error}") from error


class StoredObject:
    """How the store packs an object: without its resourceVersion, which is the revision of the write."""

    def unpacked(self, doc: Doc, packed: bytes) -> bytes:
        return with_revision(unpack(doc.key, packed), doc.revision)


STORED_OBJECT: Final = StoredObject()
