"""YAML as Kubernetes reads it: the YAML 1.1 of its Go parser, turned into JSON data.

libyaml (or PyYAML's own parser where it is missing) only composes the document; what a plain scalar means is decided
here, because PyYAML and Go differ: 22:22 is text and not a number in base 60, 1e3 is a number, y and n are booleans,
timestamps stay text, keys become text. Bodies that are JSON, as kubectl's always are, take the JSON parser.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import orjson
import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import BaseResolver

_PLAIN = "plain"
"""The tag of a scalar that has neither quotes nor a tag of its own."""
_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"
MAX_DEPTH = 200
_MAX_EVENTS = 300_000
_ALIASED_PER_VALUE = 5
"""Items that aliases may add to a document for each of its keys and values, beyond some that may always be added."""
_ALWAYS_ALIASED = 10_000

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_INFINITE = re.compile(r"[+-]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(r"([+-]?)(?:(0[bB][01]+)|(0[xX][0-9a-fA-F]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[+-]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MAX_INT = 2**64
_LONGEST_INT = 64
"""Digits of the longest form of a 64-bit integer: binary."""
_TAG_OF = {type(None): "null", bool: "bool", int: "int", float: "float"}
_EXACT = 1e21


def load_yaml(body: bytes | str) -> Any:
    """Return the first document as JSON data, the last of repeated keys winning; ValueError with Kubernetes' text."""
    return load_strict(body)[0]


def load_strict(body: bytes | str) -> tuple[Any, list[str]]:
    """Return the first document, and what a strict reader says of its repeated keys: at most one text."""
    data = body.encode() if isinstance(body, str) else body
    if data.lstrip()[:1] == b"{":
        try:
            parsed = orjson.loads(data)
        except orjson.JSONDecodeError:
            parsed = None
        if parsed is not None and not _repeats_fields(data, parsed):
            return parsed, []
    for document, errors in _documents(data):
        return document, errors
    return None, []


def _repeats_fields(data: bytes, parsed: Any) -> bool:
    """Import what only long documents need: kubeconfigs, which every command reads, are YAML, too."""
    from karmada.kube.schema.decode import duplicate_fields

    return bool(duplicate_fields(data, parsed))


def load_all(text: bytes | str) -> list[Any]:
    """Return every document of a manifest that is not empty; raises ValueError."""
    return [document for document, _ in _documents(text) if document is not None]


def dump_yaml(value: Any) -> bytes:
    """JSON data as YAML: keys sorted, and in quotes whatever Go or Python would not read back as text."""
    text: bytes = yaml.dump(value, Dumper=_Dumper, encoding="utf-8", allow_unicode=True, default_flow_style=False)
    return text


def _checked_size(text: bytes | str) -> int:
    """Return the number of values, before anything is built: libyaml recurses for each level, each value costs time."""
    depth = count = 0
    loader = _Loader(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            count += 1
            if isinstance(event, CollectionStartEvent):
                depth += 1
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                raise ValueError("error converting YAML to JSON: yaml: exceeded max depth")
            if count > _MAX_EVENTS:
                raise ValueError("error converting YAML to JSON: yaml: too many values; send JSON instead")
    finally:
        loader.dispose()
    return count


def _documents(text: bytes | str) -> Iterator[tuple[Any, list[str]]]:
    try:
        size = _checked_size(text)
        loader = _Loader(text)
        try:
            while loader.check_node():
                builder = _Builder(size)
                node = loader.get_node()
                document = builder.value(node) if node is not None else None
                yield document, builder.strict_errors()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(f"error converting YAML to JSON: {_problem(error)}") from None
    except RecursionError:
        raise ValueError("error converting YAML to JSON: yaml: exceeded max depth") from None


def _problem(error: yaml.YAMLError) -> str:
    """Return the text of Go's parser, which counts lines from 1 when it scans, from 0 when it parses, and omits 0."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    line = mark.line if mark is not None else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


class _Resolver(BaseResolver):
    """Marks plain scalars and decides nothing."""

    def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> str:
        if kind is ScalarNode:
            return _PLAIN if implicit[0] else _TAG + "str"
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]


if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _Loader(CParser, _Resolver):
        def __init__(self, stream: bytes | str) -> None:
            CParser.__init__(self, stream)
            _Resolver.__init__(self)
else:
    from yaml.composer import Composer
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class _Loader(Reader, Scanner, Parser, Composer, _Resolver):  # type: ignore[no-redef]
        def __init__(self, stream: bytes | str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)
            Composer.__init__(self)
            _Resolver.__init__(self)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes equal parts out twice instead of as aliases, and knows what plain text means to Go."""

    def ignore_aliases(self, _: Any) -> bool:
        return True

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        if kind is ScalarNode and implicit[0]:
            try:
                meaning = resolve_plain(value)
            except ValueError:
                meaning = 0.0
            if type(meaning) is int and not _INTEGER.fullmatch(value):
                meaning = float(meaning)
            if not isinstance(meaning, str):
                return _TAG + _TAG_OF[type(meaning)]
        return str(super().resolve(kind, value, implicit))


def _represent_text(dumper: Any, text: str) -> Any:
    """Several lines as they are; where that would not be read back, libyaml takes quotes by itself."""
    style = "|" if "\n" in text and text[0] not in " \n" else None
    return dumper.represent_scalar(_TAG + "str", text, style=style)


_Dumper.add_representer(str, _represent_text)


class _Builder:
    """JSON data of one document; `size` is the number of its own values."""

    def __init__(self, size: int) -> None:
        self._repeated: list[str] = []
        self._seen: set[int] = set()
        self._open: set[int] = set()
        self._may_be_aliased = max(_ALWAYS_ALIASED, _ALIASED_PER_VALUE * size)

    def strict_errors(self) -> list[str]:
        lines = "".join(f"\n  {line}" for line in self._repeated)
        return [f"yaml: unmarshal errors:{lines}"] if lines else []

    def value(self, node: Node) -> Any:
        if isinstance(node, ScalarNode):
            return _scalar(node)
        if id(node) in self._open:
            raise yaml.YAMLError("anchor value contains itself")
        self._count(node)
        self._open.add(id(node))
        value = self._mapping(node) if isinstance(node, MappingNode) else self._sequence(node)
        self._open.discard(id(node))
        return value

    def _count(self, node: Node) -> None:
        """Count nodes: an alias gives one again, and a few nested ones could make a document of any size."""
        if id(node) in self._seen:
            self._may_be_aliased -= 1 + len(node.value)
            if self._may_be_aliased < 0:
                raise yaml.YAMLError("document contains excessive aliasing")
        self._seen.add(id(node))

    def _sequence(self, node: Node) -> list[Any]:
        if not isinstance(node, SequenceNode):
            raise yaml.YAMLError(f"cannot decode {node.tag}")
        return [self.value(item) for item in node.value]

    def _mapping(self, node: MappingNode) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] | None = None
        for key_node, value_node in node.value:
            if isinstance(key_node, ScalarNode) and key_node.tag == _PLAIN and key_node.value == _MERGE:
                if merged is not None:
                    self._repeat(key_node, _MERGE)
                merged = {} if merged is None else merged
                for source in self._merge_sources(value_node):
                    for key, value in source.items():
                        merged.setdefault(key, value)
                continue
            key = _key(key_node)
            if key in result:
                self._repeat(key_node, key)
            result[key] = self.value(value_node)
        for key, value in (merged or {}).items():
            result.setdefault(key, value)
        return result

    def _repeat(self, node: Node, key: str) -> None:
        self._repeated.append(f'line {node.start_mark.line + 1}: key "{key}" already set in map')

    def _merge_sources(self, node: Node) -> list[dict[str, Any]]:
        value = self.value(node)
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise yaml.YAMLError("map merge requires map or sequence of maps as the value")
        return sources


def _key(node: Node) -> str:
    value = _scalar(node) if isinstance(node, ScalarNode) else node
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    kind = "nil" if value is None else "map[interface {}]interface {}" if isinstance(node, MappingNode) else "slice"
    raise ValueError(f"error converting YAML to JSON: unsupported map key of type: {kind}")


def _scalar(node: ScalarNode) -> Any:
    text: str = node.value
    if node.tag == _PLAIN:
        return resolve_plain(text)
    if node.tag == _TAG + "binary":
        return "".join(text.split())
    if node.tag in (_TAG + "int", _TAG + "float", _TAG + "bool", _TAG + "null"):
        return resolve_plain(text)
    return text


def resolve_plain(text: str) -> Any:
    """Return what a scalar without quotes means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    whole = _INTEGER.fullmatch(digits)
    if whole is not None:
        found = _integer(whole)
        return text if found is None else found
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        if number in (float("inf"), float("-inf")):
            return text
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    if _INFINITE.fullmatch(text):
        raise ValueError(f"error converting YAML to JSON: json: unsupported value: {text}")
    return text


def _integer(match: re.Match[str]) -> int | float | None:
    """Return the number; one that 64 bits cannot hold is a float if decimal, and else, as for Go, no number."""
    sign, binary, hexadecimal, octal, decimal = match.groups()
    bases = ((binary, 2), (hexadecimal, 16), (octal, 8), (decimal, 10))
    digits, base = next((digits, base) for digits, base in bases if digits)
    number = int(digits, base) if len(digits) <= _LONGEST_INT else _MAX_INT
    number = -number if sign == "-" else number
    if -(2**63) <= number < _MAX_INT:
        return number
    rounded = float(f"{sign or ''}{digits}") if base == 10 else math.inf
    return rounded if math.isfinite(rounded) else None
