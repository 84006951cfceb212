"""Bringing a freshly parsed object into the form of its built-in type: one compiled walker for each Node.

A walker is a closure `walk(value, path) -> value` that changes dicts and lists in place and returns the value to store
(None: leave it out). Most fields are plain strings and booleans, and for them a struct's walker needs one dict look-up
and no call. Walkers of fields are compiled when a field is first met and kept on the Node.

`path` is the stack of keys from the root to the value. It is only read when something is wrong: unknown fields are
noted in it, and a value of the wrong type raises with the stack as it stood, so the sound case pays two list
operations a container for it. A key of a map is pushed as _Key, because Go's messages name struct fields only.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from karmada.kube.objects.memo import Recognised
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.times import format_duration_ns, micro_time, parse_duration_ns, parse_time, rfc3339
from karmada.kube.schema.node import Node


class DecodeError(ValueError):
    """A body that cannot become an object of its type; the text is what Kubernetes says.

    `converting` is what it says instead when the body was not JSON any more but a tree of values (strategic merge).
    """

    def __init__(self, text: str, converting: str = "") -> None:
        super().__init__(text)
        self.converting = converting or text


class Mismatch(Exception):
    """A JSON value of the wrong type; the struct that holds the field adds its name on the way up."""

    def __init__(self, value: Any, go_type: str, *, literal: bool = False) -> None:
        self.value = f"number {value}" if literal else _JSON_TYPES[value.__class__]
        self.go_type = go_type
        self.struct = ""
        self._kind = _GO_KINDS[value.__class__]

    def text(self, path: Path) -> str:
        if not self.struct:
            return f"json: cannot unmarshal {self.value} into Go value of type {self.go_type}"
        fields = ".".join(step for step in path if step.__class__ is str)
        return f"json: cannot unmarshal {self.value} into Go struct field {self.struct}.{fields} of type {self.go_type}"

    def converting(self) -> str:
        """Return the text for a value of a tree, as Go's reflection names kinds."""
        if self.go_type.startswith("[]"):
            return f"cannot restore slice from {self._kind}"
        if self.go_type.startswith("map["):
            return f"cannot restore map from {self._kind}"
        if "." in self.go_type:
            return f"cannot restore struct from: {self._kind}"
        if self._kind in ("int64", "float64") and self.go_type != "bool":
            return f"cannot convert {self._kind} to {self.go_type}"
        return f"unrecognized type: {self.go_type}"


MOST_UNKNOWN = 100
"""So many unknown or repeated fields of a body are named, as Kubernetes does it."""


class Path(list[str | int]):
    """The keys down to the value in hand, and the first unknown fields met so far.

    Members of the root that are the very ones of a `known` object, which is in form, are not walked.
    """

    __slots__ = ("known", "unknown")

    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        self.known = known
        self.unknown: list[str] = []

    def changed(self, obj: dict[str, Any]) -> Iterable[tuple[str, Any]]:
        """Return the members of the root that have to be walked."""
        known = self.known
        if known is None:
            return obj.items()
        return [(key, value) for key, value in obj.items() if value is None or known.get(key) is not value]

    def note_unknown(self, key: str) -> None:
        if len(self.unknown) < MOST_UNKNOWN:
            self.unknown.append(f"{show_path(self)}.{key}" if self else key)


class _Key(str):
    """A key of a map."""

    __slots__ = ()


def show_path(path: list[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


Walk = Callable[[Any, Path], Any]

_JSON_TYPES: dict[type, str] = {
    str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array", type(None): "null",
}  # fmt: skip
_GO_KINDS: dict[type, str] = {
    str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice", type(None): "invalid",
}  # fmt: skip
_INT_RANGES = {"int32": (-(2**31), 2**31 - 1)}
_INT64 = (-(2**63), 2**63 - 1)
_EXACT = 1e21
"""Go prints whole floats below this without an exponent, so they come back as integers."""
_ZERO_TIME = "0001-01-01T00:00:00Z"
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def walker(node: Node) -> Walk:
    """Return the compiled walker of a Node."""
    walk: Walk | None = node.walker
    if walk is None:
        walk = node.walker = _compile(node)
    return walk


def _compile(node: Node) -> Walk:
    if node.special:
        return _SPECIAL[node.special](node)
    if node.values is not None:
        return _map(node, node.values)
    if node.items is not None:
        return _list(node, node.items)
    if node.type == "object":
        walk = _struct(node)
        return _recognising(walk) if node.definition.endswith(".PodSpec") else walk
    return _SCALARS[node.type](node)


def _finder(properties: dict[str, Node], walkers: dict[str, Walk]) -> Callable[[str, Any, Path], Walk | None]:
    def find(key: str, value: Any, path: Path) -> Walk | None:
        """Return the walker of a field met for the first time; None for what is to go: unknown fields and nulls."""
        if key not in properties:
            path.note_unknown(key)
            return None
        if value is None:
            return None
        walkers[key] = walker(properties[key])
        return walkers[key]

    return find


def _struct(node: Node) -> Walk:
    properties, omit, name = node.properties, node.omit_empty, node.definition.rpartition(".")[2]
    plain_class = {key: _plain_class(child) for key, child in properties.items()}.get
    always = [(key, None if key in node.null else properties[key]) for key in node.always if key in properties]
    walkers: dict[str, Walk] = {}
    walker_of, find = walkers.get, _finder(properties, walkers)

    def walk(obj: Any, path: Path) -> Any:
        if obj.__class__ is not dict:
            raise Mismatch(obj, node.go_type)
        gone = []
        try:
            for key, value in obj.items() if path else path.changed(obj):
                if plain_class(key) is value.__class__:
                    if not value and key in omit:
                        gone.append(key)
                    continue
                child = walker_of(key)
                if child is None or value is None:
                    child = find(key, value, path)
                    if child is None:
                        gone.append(key)
                        continue
                path.append(key)
                new = child(value, path)
                path.pop()
                if not new and (new is None or key in omit):
                    gone.append(key)
                elif new is not value:
                    obj[key] = new
        except Mismatch as error:
            error.struct = error.struct or name
            raise
        for key in gone:
            del obj[key]
        for key, child_node in always:
            if key not in obj:
                obj[key] = None if child_node is None else _zero(child_node, path)
        return obj

    return walk


def _recognising(walk: Walk) -> Walk:
    """Pass over what was in form a moment ago: the spec of pods comes again with each copy and change of a workload."""
    recent = Recognised()

    def recognised(obj: Any, path: Path) -> Any:
        if recent.unknown(obj) is None:
            return obj
        before = len(path.unknown)
        walk(obj, path)
        raw = recent.unknown(obj)
        if raw and b"null" not in raw and len(path.unknown) == before:  # NaN looks like null
            recent.add(raw)
        return obj

    return recognised


def _list(node: Node, items: Node) -> Walk:
    child, plain = walker(items), _plain_class(items)

    def walk(value: Any, path: Path) -> Any:
        if value.__class__ is not list:
            raise Mismatch(value, node.go_type)
        path.append(0)
        for index, item in enumerate(value):
            if item.__class__ is plain:
                continue
            path[-1] = index
            new = _zero(items, path) if item is None else child(item, path)
            if new is not item:
                value[index] = new
        path.pop()
        return value

    return walk


def _map(node: Node, values: Node) -> Walk:
    child, plain = walker(values), _plain_class(values)

    def walk(obj: Any, path: Path) -> Any:
        if obj.__class__ is not dict:
            raise Mismatch(obj, node.go_type)
        path.append("")
        for key, value in obj.items():
            if value.__class__ is plain:
                continue
            path[-1] = _Key(key)
            new = _zero(values, path) if value is None else child(value, path)
            if new is not value:
                obj[key] = new
        path.pop()
        return obj

    return walk


def _zero(node: Node, path: Path) -> Any:
    """Return what Go holds where nothing was written."""
    if node.special:
        return _ZEROS.get(node.special, "")
    if node.type == "object" and node.values is None:
        return walker(node)({}, path)
    return {"object": dict, "array": list, "string": str, "boolean": bool}.get(node.type, int)()


def _plain(node: Node) -> Walk:
    wanted = _PLAIN[node.type]
    go_type = node.go_type or ("string" if wanted is str else "bool")

    def walk(value: Any, _: Path) -> Any:
        if value.__class__ is not wanted:
            raise Mismatch(value, go_type)
        return value

    return walk


def _integer(node: Node) -> Walk:
    go_type = node.go_type or "int64"
    low, high = _INT_RANGES.get(node.format, _INT64)

    def walk(value: Any, _: Path) -> Any:
        if value.__class__ is int:
            if low <= value <= high:
                return value
            raise Mismatch(value, go_type, literal=True)
        if value.__class__ is not float:
            raise Mismatch(value, go_type)
        if value.is_integer() and low <= value <= high:
            return int(value)
        raise Mismatch(value, go_type, literal=True)

    return walk


def _number(node: Node) -> Walk:
    go_type = node.go_type or "float64"

    def walk(value: Any, _: Path) -> Any:
        if value.__class__ is float:
            return int(value) if value.is_integer() and abs(value) < _EXACT else value
        if value.__class__ is not int:
            raise Mismatch(value, go_type)
        return value

    return walk


def _anything(_: Node) -> Walk:
    return lambda value, _: value


def canonical_quantity(value: Any) -> str:
    """Return the text Kubernetes stores for a quantity that a client wrote as text or number."""
    try:
        return str(Quantity.parse(value))
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _quantity(_: Node) -> Walk:
    return lambda value, _: canonical_quantity(value)


def _int_or_string(_: Node) -> Walk:
    low, high = _INT_RANGES["int32"]

    def walk(value: Any, _: Path) -> Any:
        if value.__class__ is str or (value.__class__ is int and low <= value <= high):
            return value
        what = f"number {value}" if value.__class__ in (int, float) else _JSON_TYPES[value.__class__]
        raise DecodeError(f"json: cannot unmarshal {what} into Go value of type int32")

    return walk


def _text(value: Any) -> str:
    if value.__class__ is not str:
        raise DecodeError(f"json: cannot unmarshal {_JSON_TYPES[value.__class__]} into Go value of type string")
    return value


@lru_cache(maxsize=4096)
def canonical_time(text: str) -> str | None:
    """UTC in whole seconds; None for the zero time."""
    return _moment(text, rfc3339)


_SECONDS = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_SIX_DIGITS = re.compile(r"\.\d{6}")
_MICROS = re.compile(r"\.\d{6}(Z|[+-]\d\d:\d\d)$")


@lru_cache(maxsize=4096)
def canonical_micro_time(text: str) -> str | None:
    """UTC with six fractional digits, which must be given; None for the zero time."""
    rest = _SECONDS.sub("", text, count=1)
    if rest != text and not _MICROS.match(rest):
        layout = '"2006-01-02T15:04:05.000000Z07:00"'
        wanted = (rest[7:], "Z07:00") if _SIX_DIGITS.match(rest) else (rest, ".000000")
        raise DecodeError(f'parsing time "{text}" as {layout}: cannot parse "{wanted[0]}" as "{wanted[1]}"')
    return _moment(text, micro_time)


def _moment(text: str, show: Callable[[float], str]) -> str | None:
    if text == _ZERO_TIME:
        return None
    try:
        return show(parse_time(text))
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _duration(_: Node) -> Walk:
    def walk(value: Any, _: Path) -> Any:
        try:
            return format_duration_ns(parse_duration_ns(_text(value)))
        except DecodeError:
            raise
        except ValueError as error:
            raise DecodeError(str(error)) from None

    return walk


def _bytes(_: Node) -> Walk:
    def walk(value: Any, _: Path) -> Any:
        if value.__class__ is not str:
            raise Mismatch(value, "[]uint8")
        return canonical_base64(value)

    return walk


def canonical_base64(text: str) -> str:
    """Return the same bytes without line ends and stray bits; raise DecodeError with the offset Go reports."""
    if len(text) & 3 or not _BASE64.fullmatch(text):
        text = _repair_base64(text)
    if text.endswith("="):
        return text[:-4] + base64.b64encode(binascii.a2b_base64(text[-4:])).decode()
    return text


def _repair_base64(text: str) -> str:
    """Without its line ends, or the error at the first byte that cannot be there."""
    kept: list[str] = []
    padded = False
    for offset, char in enumerate(text):
        if char in "\r\n":
            continue
        place = len(kept) % 4
        if padded and (place == 0 or char != "="):
            raise _corrupt(offset if place == 0 else offset - 1)
        if char == "=":
            padded = True
        if not _BASE64.fullmatch(char) or (padded and place < 2):
            raise _corrupt(offset)
        kept.append(char)
    missing = len(kept) % 4
    if missing:
        raise _corrupt(len(text) if padded else len(text) - missing)
    return "".join(kept)


def _corrupt(offset: int) -> DecodeError:
    return DecodeError(f"illegal base64 data at input byte {offset}")


def _schema_union(allowed: type, complaint: str) -> Callable[[Node], Walk]:
    """Return the walker of a JSON schema or something else; what is unknown inside it goes without a report."""

    def compile_union(node: Node) -> Walk:
        schema = walker(node.alternative) if node.alternative is not None else _anything(node)

        def walk(value: Any, _: Path) -> Any:
            if isinstance(value, dict):
                return schema(value, Path())
            if not isinstance(value, allowed):
                raise DecodeError(complaint)
            if isinstance(value, list) and node.special == "schema-or-array":
                for item in value:
                    schema(item, Path())
            return value

        return walk

    return compile_union


def _plain_class(node: Node) -> type | None:
    """Return the class of the values of a place where that says everything; None where it does not."""
    return None if node.special or node.items is not None or node.values is not None else _PLAIN.get(node.type)


_PLAIN: dict[str, type] = {"string": str, "boolean": bool}
_ZEROS: dict[str, Any] = {"quantity": "0", "int-or-string": 0, "json": None, "fields-v1": None, "time": None}
_SCALARS: dict[str, Callable[[Node], Walk]] = {
    "string": _plain, "boolean": _plain, "integer": _integer, "number": _number, "": _anything,
}  # fmt: skip
_SPECIAL: dict[str, Callable[[Node], Walk]] = {
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "time": lambda _: lambda value, _: canonical_time(_text(value)),
    "micro-time": lambda _: lambda value, _: canonical_micro_time(_text(value)),
    "duration": _duration,
    "bytes": _bytes,
    "json": _anything,
    "fields-v1": _anything,
    "schema-or-array": _schema_union(list, "JSON schema or an array of JSON schemas expected"),
    "schema-or-bool": _schema_union(bool, "boolean or JSON schema expected"),
    "schema-or-strings": _schema_union(list, "JSON schema or an array of strings expected"),
}
