"""Encodes Events as event recorders create them, without the steps of a create whose outcome is the same for all.

An Event with exactly the fields that a recorder writes, each of its type, is stored as it came once admission has
accepted its namespace. Its text depends on writer, namespace, time, source, type and reason; what is left, its own
values, goes into the holes of that text. A store that packs its values gets it packed by this text, a `Form`. Every
other Event, and one with a value that is empty or long, takes the way of any object.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from karmada.kube.objects import names
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.interface import Write
from karmada.kube.server.storage.packing import HOLE, UUID_HOLE, Form, form, uuid_bytes

_FIELDS = (
    "apiVersion", "kind", "metadata", "involvedObject", "reason", "message", "source", "firstTimestamp",
    "lastTimestamp", "count", "type", "reportingComponent", "reportingInstance",
)  # fmt: skip
_METADATA, _SOURCES = ("namespace", "name"), (("component",), ("component", "host"))
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")
_LONGEST_TEXT, _LONGEST_VALUES = 4_096, 2_048
"""A text has at most so many bytes, and the values, which are not compressed, so many characters."""
_TEXTS = 256
"""Texts that an encoder keeps; when there are more, all are made again."""
_LARGEST_COUNT = 2**31 - 1
_MARK, _UUID_MARK = HOLE.decode(), UUID_HOLE.decode()
_ENCODED, _ENCODED_UUID = (orjson.dumps(mark)[1:-1] for mark in (_MARK, _UUID_MARK))
_MARKS = {"name": _MARK, "uid": _UUID_MARK, "resourceVersion": _MARK}
_SEPARATOR, _SEPARATED = "\x7f", b"\x7f"  # the same in JSON


class _Text(NamedTuple):
    """The part that Events of one sort have in common."""

    format: bytes
    """With a %b in each hole."""
    form: Form


class EventEncoder:
    """Encodes the Events that one writer creates in one namespace within one second."""

    def __init__(self, manager: str, namespace: str, now: str) -> None:
        self._manager = manager
        self._namespace = namespace
        self._now = now
        self._texts: dict[tuple[Any, ...], _Text] = {}

    def write(self, start: str, obj: Obj, *, pack: bool) -> Write | None:
        """Return the write that creates an Event under the key `start` + name; None if it is not a recorder's."""
        try:
            meta, about, count = obj["metadata"], obj["involvedObject"], obj["count"]
            name, first, last = meta["name"], obj["firstTimestamp"], obj["lastTimestamp"]
            text = self._text(obj, meta, about, obj["source"])
            if text is None or type(count) is not int or not 0 < count <= _LARGEST_COUNT:
                return None
            uuids = names.random_uuid_bytes()
            if "uid" in about:
                uuids += _uuid_bytes(about["uid"])
            own = [name, about["name"], obj["message"], _time(first), _time(last), str(count)]
            if "resourceVersion" in about:
                own.insert(2, about["resourceVersion"])
            joined = _SEPARATOR.join(own)
            values = orjson.dumps(joined)[1:-1].split(_SEPARATED)
            if len(joined) > _LONGEST_VALUES or len(values) != len(own) or not all(values):
                return None
            if not names.is_dns1123_subdomain(name):
                return None
        except (KeyError, TypeError, AttributeError, ValueError):  # a value is missing or of another type
            return None
        if pack:
            if first == last:
                values[-2] = b""
            return Write(start + name, None, 0, text.form.packed(values, uuids))
        for at in range(0, len(uuids), 16):  # behind name and subject
            values.insert(1 + at // 8, names.uuid_text(uuids[at : at + 16]).encode())
        return Write(start + name, text.format % tuple(values), 0)

    def _text(self, obj: Obj, meta: Obj, about: Obj, source: Obj) -> _Text | None:
        key = (
            *obj, obj["apiVersion"], obj["kind"], *meta, meta["namespace"],
            *about, about.get("namespace"), about["kind"], about["apiVersion"],
            *source, *source.values(), obj["reason"], obj["type"], obj["reportingComponent"], obj["reportingInstance"],
        )  # fmt: skip
        text = self._texts.get(key)
        if text is None:
            text = self._text_of(obj, meta, about, source)
            if text is not None:  # so that what is kept is no longer than a text may be
                if len(self._texts) >= _TEXTS:
                    self._texts.clear()
                self._texts[key] = text
        return text

    def _text_of(self, obj: Obj, meta: Obj, about: Obj, source: Obj) -> _Text | None:
        """Return the text with a hole for each own value; None unless the rest is as a recorder writes it."""
        constant = [*source.values(), obj["reason"], obj["type"], obj["reportingComponent"], about["kind"]]
        constant.append(about["apiVersion"])
        instance = obj["reportingInstance"]
        if (
            (*obj, obj["apiVersion"], obj["kind"]) != (*_FIELDS, "v1", "Event")
            or (*meta, meta["namespace"]) != (*_METADATA, self._namespace)
            or about.get("namespace", "default") != self._namespace
            or [*about] != [key for key in _ABOUT if key in about]
            or tuple(source) not in _SOURCES
            or not all(type(value) is str and value for value in constant)
            or type(instance) is not str
        ):
            return None
        owned: Obj = {f"f:{key}": {} for key in _FIELDS[3 : None if instance else -1]}
        owned["f:source"] = {f"f:{key}": {} for key in source}
        entry = {"manager": self._manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        made = {
            **obj,
            "metadata": {
                "namespace": self._namespace,
                "name": _MARK,
                "managedFields": [{**entry, "fieldsV1": owned, "time": self._now}],
                "uid": _UUID_MARK,
                "creationTimestamp": self._now,
            },
            "involvedObject": {**about, **{key: mark for key, mark in _MARKS.items() if key in about}},
            **dict.fromkeys(("message", "firstTimestamp", "lastTimestamp", "count"), _MARK),
            "eventTime": None,
        }
        text = orjson.dumps(made).replace(b'"count":"%b"' % _ENCODED, b'"count":%b' % HOLE)
        text = text.replace(_ENCODED, HOLE).replace(_ENCODED_UUID, UUID_HOLE)
        holes = (text.count(HOLE), text.count(UUID_HOLE))
        if holes != (6 + ("resourceVersion" in about), 1 + ("uid" in about)) or len(text) > _LONGEST_TEXT:
            return None
        return _Text(text.replace(b"%", b"%%").replace(HOLE, b"%b").replace(UUID_HOLE, b"%b"), form(text))


@lru_cache(maxsize=16)
def event_encoder(manager: str, namespace: str, now: str) -> EventEncoder:
    """Return the encoder of these; there are few at a time."""
    return EventEncoder(manager, namespace, now)


_canonical_uuid = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch


@lru_cache(maxsize=1024)
def _uuid_bytes(text: str) -> bytes:
    """Return a canonical UUID in binary; else ValueError. There are many Events of one object."""
    if _canonical_uuid(text) is None:
        raise ValueError(text)
    return uuid_bytes(text.encode())


@lru_cache(maxsize=1024)
def _time(text: str) -> str:
    """Return a time that is in whole seconds, as the API prints it; else ValueError."""
    if rfc3339(parse_time(text)) != text:
        raise ValueError(text)
    return text
