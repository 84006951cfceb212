"""Stored values are compressed, with a dictionary of what objects usually contain.

The dictionaries are a part of the program, so that a value needs nothing else to be read: of a Work of 4.7 kB, 370
bytes are stored. Events, of which there are more than of anything else, have a small one of their own: 1.1 kB become
160 bytes, for less work. A value is compressed before it is encrypted, since what is encrypted cannot be. Its
first byte says how it is read: one of PACKED, or the `{` of the JSON that it is. Those that differ in some values only
may be packed by the form that they have in common (forms.py): 205 bytes for an Event, for a tenth of the work.

A dictionary never changes. Another one would be another file, with a mark of its own, beside these.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from karmada.kube.objects.codec import WORTHWHILE, ZlibDictionary, pays, with_revision
from karmada.kube.objects.doc import Doc
from karmada.kube.server.storage.forms import HOLE, UUID_HOLE, Form, restored
from karmada.kube.server.storage.interface import StoreUnavailable

_ANY, _EVENT, _FORM = b"\x01", b"\x02", b"\x03"
PACKED: Final = (_ANY, _EVENT, _FORM)
"""For `startswith`."""
_EVENTS: Final = b'{"apiVersion":"v1","kind":"Event",'


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
