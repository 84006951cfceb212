"""New objects that differ from earlier ones in free fields only: made of what is stored of those, not step by step.

The first two objects of a sort pass every step of a create. What is stored of the second, divided at its free fields
(kinds/free_fields.py) and at what the server sets (uid and times), is the prototype: others of its sort, which have all
the rest in common, are the prototype with their own values in between, byte for byte what the steps lead to. Whatever
is not certain to be so (a value that is empty, too long or of another form) is left to them. A prototype has its text
packed, too, so that a store need not compress what objects have in common (storage/forms.py).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from karmada.kube.kinds.free_fields import Free, FreeFields
from karmada.kube.objects import names
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.objects.variants import Pattern, Place, Variant, Variants
from karmada.kube.server.storage.forms import FEWEST, HOLE, UUID_HOLE, Form, uuid_bytes
from karmada.kube.server.storage.packing import form, unpack
from karmada.kube.server.watchcache.entry import encode_value

_LONGEST, _LONGEST_VALUES = 4_096, 2_048
"""Bytes of an object that there is a prototype for, and characters of its values, which are not compressed."""
_KEPT = 256
"""Sorts of objects; when there are more, all are learned anew."""
_NAMESPACES = 4
"""Of which a prototype has its text ready."""
_PATTERNS = 4_096
_LARGEST = 2**31 - 1
_NAME: Place = ("metadata", "name")
_SEPARATOR, _SEPARATES = "\x7f", b"\x7f"  # the same in JSON
_NAMESPACE, _NOW = "\0namespace\0", "\0now\0"
_PLACE = re.compile(rb"\\u0000([0-9]+)\\u0000")


Sort = tuple[bytes, str]
"""All of an object but the values that are free; and where the namespace is not free, with its value."""


class Outline(NamedTuple):
    """What an object has in common with others of its sort, and what is its own."""

    sort: Sort
    name: str
    values: list[bytes]
    """Of the free fields, as they stand in JSON."""
    by: Outlines
    """Which free fields it has."""


class _Member(NamedTuple):
    name: str
    values: Callable[[Obj], Sequence[Any]]
    """Of its free fields; KeyError if one is missing."""
    without: dict[str, None]
    namespaces: tuple[str, ...]


class Outlines:
    """Divides objects of one kind that have all of its free fields, and leaves others to `without`."""

    def __init__(self, free: FreeFields, name_errors: Callable[[str], list[str]] | None = None) -> None:
        self._free = free
        self._without: dict[frozenset[Place], Outlines] = {}
        meta = {**free.get("metadata", {}), "name": Free.TEXT, "namespace": Free.NAMESPACE}
        fields = {"": free.get("", {}), **{member: free[member] for member in free if member}, "metadata": meta}
        self._own, *self._members = (_member(name, forms) for name, forms in fields.items())
        self.places = [(member, key) for member, forms in fields.items() for key in _valued(forms)]
        """Of the values of an outline."""
        self.namespaces = [(member.name, key) for member in (self._own, *self._members) for key in member.namespaces]
        forms = [fields[member][key] for member, key in self.places]
        self.numbers = [at for at, form in enumerate(forms) if form is Free.NUMBER]
        self.uuids = [at for at, form in enumerate(forms) if form is Free.UUID]
        self.times = [at for at, form in enumerate(forms) if form is Free.TIME]
        self._name = self.places.index(_NAME)
        self._name_errors = name_errors or names.dns1123_subdomain

    def of(self, obj: Obj, namespace: str) -> Outline | None:
        """None: it has to pass every step for itself."""
        try:
            values = [*self._own.values(obj)]
            rest, bound = {**obj, **self._own.without}, ""
            for member, get, without, namespaces in self._members:
                values += get(obj[member])
                rest[member] = part = {**obj[member], **without}
                for key in namespaces:
                    if part.get(key) == namespace:
                        part[key] = None
                    else:
                        bound += f"{member}.{key}={namespace} "
            return self.with_values((orjson.dumps(rest), bound), values)
        except KeyError:
            missing = frozenset(place for place in self.places if not _has(obj, place))
            return None if not missing or _NAME in missing else self.without(missing).of(obj, namespace)
        except TypeError:  # a field is of another type
            return None

    def without(self, missing: frozenset[Place]) -> Outlines:
        """For objects that do not have these fields."""
        found = self._without.get(missing)
        if found is None:
            fewer = {
                member: {key: form for key, form in forms.items() if (member, key) not in missing}
                for member, forms in self._free.items()
            }
            found = self._without[missing] = Outlines(fewer, self._name_errors)
        return found

    def with_values(self, sort: Sort, values: list[Any]) -> Outline | None:
        """None if one is not in form; TypeError if it is of another type. Numbers become text, in place."""
        for at in self.numbers:
            value = values[at]
            values[at] = str(value) if type(value) is int and 0 < value <= _LARGEST else ""
        for at in self.times:
            if not _is_time(values[at]):
                return None
        for at in self.uuids:
            if not _is_uuid(values[at]):
                return None
        name = values[self._name]
        if not all(values) or self._name_errors(name):
            return None
        joined = _SEPARATOR.join(values)
        if len(joined) > _LONGEST_VALUES:
            return None
        texts = orjson.dumps(joined)[1:-1].split(_SEPARATES)
        return Outline(sort, name, texts, self) if len(texts) == len(values) else None

    def order_of(self, pattern: Pattern) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
        """From the values of a pattern to those of an outline; None unless the ones are the others."""
        if sorted(pattern.places) != sorted(self.places):
            return None
        return itemgetter(*(pattern.places.index(place) for place in self.places))


@dataclass(slots=True)
class _Text:
    """What objects of one namespace and moment have in common."""

    now: str
    holed: bytes
    format: bytes
    """The same for the % operator."""
    form: Form | None = None


class Prototype:
    __slots__ = ("_by_namespace", "_order", "_repeating", "_text", "_texts", "_uuids")

    def __init__(self, text: bytes, order: Sequence[int], outlines: Outlines) -> None:
        """`text` has a hole for each value; `order`: which one that is, the uid being the last."""
        uuids = {*outlines.uuids, len(outlines.places)}
        texts = [at for at in order if at not in uuids]
        self._text = text
        self._order = itemgetter(*order)
        self._texts = itemgetter(*texts)
        self._uuids = [at if at < len(outlines.places) else None for at in order if at in uuids]
        """Which value each is; None is the uid."""
        times = outlines.times
        self._repeating = [at for at in range(1, len(texts)) if texts[at] in times and texts[at - 1] in times]
        """Of texts, those that may equal the one before."""
        self._by_namespace: dict[str, _Text] = {}

    def _text_at(self, namespace: str, now: str) -> _Text:
        found = self._by_namespace.get(namespace)
        if found is None or found.now != now:
            if len(self._by_namespace) >= _NAMESPACES:
                self._by_namespace.clear()
            holed = self._text.replace(_encoded(_NAMESPACE), namespace.encode()).replace(_encoded(_NOW), now.encode())
            format_ = holed.replace(b"%", b"%%").replace(HOLE, b"%b").replace(UUID_HOLE, b"%b")
            found = self._by_namespace[namespace] = _Text(now, holed, format_)
        return found

    def value(self, namespace: str, now: str, values: Sequence[bytes], uid: bytes) -> bytes:
        """What is stored for an object with these values; the uid is in binary."""
        value: bytes = self._text_at(namespace, now).format % self._order((*values, names.uuid_text(uid).encode()))
        return value

    def packed(self, namespace: str, now: str, values: Sequence[bytes], uid: bytes) -> bytes:
        """The same as `packing.unpack` reads it."""
        text = self._text_at(namespace, now)
        if text.form is None:
            text.form = form(text.holed)
        texts = [*self._texts(values)]
        for at in self._repeating:
            if texts[at] == texts[at - 1]:
                texts[at] = b""
        uuids = b"".join([uid if at is None else _known_uuid(values[at]) for at in self._uuids])
        return text.form.packed(texts, uuids)

    def has_text(self, namespace: str, now: str) -> bool:
        """Whether it was used there and then: only for more than one object it is worth having a form."""
        found = self._by_namespace.get(namespace)
        return found is not None and found.now == now


class _Known(NamedTuple):
    """A pattern of which an object has been divided."""

    namespace: str
    sort: Sort
    outlines: Outlines
    order: Callable[[Sequence[Any]], Sequence[Any]]


Found = tuple[Outline | None, Prototype | None]
"""The outline of an object, if there can be a prototype, and the prototype, if there is one."""
_NOTHING: Found = (None, None)


class Prototypes:
    """Of one kind and one writer."""

    def __init__(self, outlines: Outlines | None) -> None:
        """None: every object passes every step."""
        self._outlines = outlines
        self._known: dict[Sort, Prototype | None] = {}
        """None of those of which one object was seen."""
        self._patterns: dict[Pattern, _Known] = {}

    def find(self, objects: Sequence[Obj], namespace: str) -> Iterator[Found]:
        """For each object. It must not be changed before."""
        outlines = self._outlines
        if outlines is None:
            return itertools.repeat(_NOTHING, len(objects))
        if isinstance(objects, Variants):
            return (self._of_variant(outlines, variant, namespace) for variant in objects.variants)
        return (self._found(outlines.of(obj, namespace)) for obj in objects)

    def _found(self, outline: Outline | None) -> Found:
        return _NOTHING if outline is None else (outline, self._known.get(outline.sort))

    def _of_variant(self, outlines: Outlines, variant: Variant, namespace: str) -> Found:
        pattern, values = variant
        known = self._patterns.get(pattern)
        if known is None or known.namespace != namespace:
            return self._found(self._recognised(outlines, variant, namespace))
        try:
            return self._found(known.outlines.with_values(known.sort, [*known.order(values)]))
        except TypeError:
            return _NOTHING

    def _recognised(self, outlines: Outlines, variant: Variant, namespace: str) -> Outline | None:
        """The outline of the first object of a pattern."""
        pattern, values = variant
        outline = outlines.of(pattern.object(values), namespace)
        order = None if outline is None else outline.by.order_of(pattern)
        if outline is not None and order is not None:
            if len(self._patterns) >= _PATTERNS:
                self._patterns.clear()
            self._patterns[pattern] = _Known(namespace, outline.sort, outline.by, order)
        return outline

    def learn(self, outline: Outline, stored: Obj, value: bytes, namespace: str) -> None:
        """From an object that has passed every step; `value` is what is stored for it."""
        if len(value) > _LONGEST:
            return
        if len(self._known) >= _KEPT:
            self._known.clear()
        again = outline.sort in self._known
        self._known[outline.sort] = _prototype(outline, stored, value, namespace) if again else None


NO_PROTOTYPES = Prototypes(None)


def _prototype(outline: Outline, stored: Obj, value: bytes, namespace: str) -> Prototype | None:
    """None unless it has for this object what is stored for it."""
    outlines, meta, places = outline.by, stored["metadata"], outline.by.places
    text = encode_value(_marked(stored, places, outlines.namespaces, namespace))
    for at in outlines.numbers:
        text = text.replace(orjson.dumps(_mark(at)), _encoded(_mark(at)))
    order = [int(at) for at in _PLACE.findall(text)]
    uuids = {*outlines.uuids, len(places)}
    if sorted(order) != list(range(len(places) + 1)) or len(order) - len(uuids) < FEWEST:
        return None
    found = Prototype(_PLACE.sub(lambda place: UUID_HOLE if int(place[1]) in uuids else HOLE, text), order, outlines)
    own = (namespace, meta["creationTimestamp"], outline.values, uuid_bytes(meta["uid"].encode()))
    return found if found.value(*own) == value == unpack("", found.packed(*own)) else None


def _marked(stored: Obj, places: Sequence[Place], namespaces: Iterable[Place], namespace: str) -> Obj:
    """A copy with a mark in each place that has a value of its own."""
    marked: Obj = copy_json(stored)
    for at, (member, key) in enumerate(places):
        (marked[member] if member else marked)[key] = _mark(at)
    for member, key in namespaces:
        part = marked[member] if member else marked
        if part.get(key) == namespace:
            part[key] = _NAMESPACE
    meta = marked["metadata"]
    for entry in meta.get("managedFields") or ():
        if entry.get("time") == meta["creationTimestamp"]:
            entry["time"] = _NOW
    meta["uid"], meta["creationTimestamp"] = _mark(len(places)), _NOW
    return marked


def _member(name: str, forms: Mapping[str, Free]) -> _Member:
    keys = _valued(forms)
    namespaces = tuple(key for key, form in forms.items() if form is Free.NAMESPACE)
    values = itemgetter(*keys) if len(keys) > 1 else lambda obj: [obj[key] for key in keys]
    return _Member(name, values, dict.fromkeys(keys), namespaces)


def _valued(forms: Mapping[str, Free]) -> list[str]:
    return [key for key, form in forms.items() if form is not Free.NAMESPACE]


def _has(obj: Obj, place: Place) -> bool:
    member, key = place
    part = obj.get(member) if member else obj
    return isinstance(part, dict) and key in part


def _mark(at: int) -> str:
    return f"\0{at}\0"


def _encoded(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]


_uuid = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch


@lru_cache(maxsize=1024)
def _is_uuid(text: str) -> bool:
    """There are many events of one object."""
    return _uuid(text) is not None


_known_uuid = lru_cache(maxsize=1024)(uuid_bytes)


@lru_cache(maxsize=1024)
def _is_time(text: str) -> bool:
    try:
        return rfc3339(parse_time(text)) == text
    except ValueError:
        return False
