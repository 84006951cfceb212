"""From a CRD's openAPIV3Schema to a Node tree.

The schema must be structural (see schema.structural_rules). What validation needs goes into `Checks`, which also notes
what the subtree below contains, so that a pass that has nothing to do there returns at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.schema import formats
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.node import UNSET, Node

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
EMBEDDED, INT_OR_STRING = "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"
PRESERVE, VALIDATIONS = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"
EITHER = [{"type": "integer"}, {"type": "string"}]
"""How the types of an int-or-string are written in anyOf."""
LIST_TYPE, LIST_KEYS, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"


@dataclass(slots=True, eq=False)
class Checks:
    """The conditions on a value besides its type, and the checks of what lies below."""

    enum: tuple[Any, ...] | None = None
    words: frozenset[str] = frozenset()
    """The strings among the enum."""
    others: frozenset[str] = frozenset()
    """The identities of the rest of it."""
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""
    search: Callable[[str], object] | None = None
    format: str = ""
    format_check: formats.Check | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    negation: Node | None = None
    metadata: Node | None = None
    """At the root and in embedded resources: what the schema requires of metadata.name and generateName."""
    rules: tuple[Obj, ...] = ()
    compiled: Any = None
    """Belongs to cel.rules: what it made of the rules and the type of this place."""
    conforms: Any = None
    """Belongs to schema.conforming: its test of this place, where it is a part of an object."""
    kind: type | None = None
    """The class of the values of its type, where there is just one."""
    plain: type | None = None
    """Check a scalar without any condition."""
    conditions: bool = False
    """True if there is anything to check besides the type and what is below."""
    has_defaults: bool = False
    has_rules: bool = False
    has_embedded: bool = False
    """These three: here or anywhere below."""


_KINDS: dict[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
_BOUNDS = {
    "minimum": "minimum", "maximum": "maximum", "multipleOf": "multiple_of", "minLength": "min_length",
    "maxLength": "max_length", "minItems": "min_items", "maxItems": "max_items", "minProperties": "min_properties",
    "maxProperties": "max_properties",
}  # fmt: skip


def _regexp_problem(error: Exception) -> str:
    """RE2's complaint as text: the binding gives it as bytes."""
    given = error.args[0] if error.args else ""
    return given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)


@lru_cache(maxsize=2048)
def compile_pattern(pattern: str) -> Callable[[str], object]:
    """Return the search for a pattern in a text; raises ValueError when it is not RE2 syntax."""
    import re2

    try:
        search: Callable[[str], object] = re2.compile(pattern).search
    except re2.error as error:
        raise ValueError(_regexp_problem(error)) from None
    return search


def identity(value: Any) -> str:
    """Return equal texts for equal JSON values, in which true is not 1 and 1 not 1.0."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def object_meta() -> Node:
    return Definitions.load().node(OBJECT_META)


def compile_schema(schema: Obj) -> Node:
    """Return the Node of a structural schema's root."""
    node = _compile(schema)
    _add_identity(node)
    return node


def _add_identity(node: Node) -> None:
    """apiVersion, kind and metadata are there whether or not the schema names them."""
    for name in ("apiVersion", "kind"):
        if name not in node.properties:
            node.properties[name] = Node(type="string", checks=Checks(kind=str, plain=str))
    metadata = node.properties.get("metadata")
    node.checks.metadata = metadata if metadata is not None and _restricts(metadata) else None
    node.properties["metadata"] = object_meta()


def _restricts(node: Node) -> bool:
    """Return whether there are objects that are not allowed in this place."""
    below = node.properties or node.required or node.values is not None or node.items is not None
    return node.type != "object" or bool(below or node.checks.conditions)


def _compile(schema: Obj) -> Node:
    preserve = bool(schema.get(PRESERVE))
    node = Node(
        type=schema.get("type") or "",
        format=schema.get("format") or "",
        special="int-or-string" if schema.get(INT_OR_STRING) else "",
        required=tuple(schema.get("required") or ()),
        nullable=bool(schema.get("nullable")),
        preserve=preserve,
        embedded=bool(schema.get(EMBEDDED)),
        list_type=schema.get(LIST_TYPE) or "atomic",
        list_keys=tuple(schema.get(LIST_KEYS) or ()),
        map_type=schema.get(MAP_TYPE) or "granular",
    )
    if schema.get("default") is not None or ("default" in schema and node.nullable):
        node.default = schema["default"]
    for name, child in (schema.get("properties") or {}).items():
        node.properties[name] = _compile(child)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        node.values = _compile(additional)
    elif additional:
        node.values = Node(preserve=True, checks=Checks())
    if isinstance(schema.get("items"), dict):
        node.items = _compile(schema["items"])
    node.checks = _checks(schema, node)
    if node.embedded:
        _add_identity(node)
    return node


def children(node: Node) -> Iterator[Node]:
    yield from node.properties.values()
    if node.values is not None:
        yield node.values
    if node.items is not None:
        yield node.items


def _checks(schema: Obj, node: Node) -> Checks:
    bounds: dict[str, Any] = {name: schema[key] for key, name in _BOUNDS.items() if schema.get(key) is not None}
    checks = Checks(
        enum=tuple(schema["enum"]) if schema.get("enum") else None,
        words=frozenset(word for word in schema.get("enum") or () if isinstance(word, str)),
        others=frozenset(identity(choice) for choice in schema.get("enum") or () if not isinstance(choice, str)),
        exclusive_minimum=bool(schema.get("exclusiveMinimum")),
        exclusive_maximum=bool(schema.get("exclusiveMaximum")),
        pattern=schema.get("pattern") or "",
        format=node.format,
        format_check=formats.check_of(node.format),
        unique_items=bool(schema.get("uniqueItems")),
        all_of=tuple(map(_compile, schema.get("allOf") or ())),
        any_of=tuple(map(_compile, schema.get("anyOf") or ())),
        one_of=tuple(map(_compile, schema.get("oneOf") or ())),
        negation=_compile(schema["not"]) if schema.get("not") is not None else None,
        rules=tuple(schema.get(VALIDATIONS) or ()),
        **bounds,
    )
    given = _CONDITIONS & schema.keys()
    if node.special and schema.get("anyOf") == EITHER:
        given, checks.any_of = given - {"anyOf"}, ()  # its type says the same
    if checks.pattern:
        checks.search = compile_pattern(checks.pattern)
    checks.kind = _KINDS.get(node.type)
    checks.conditions = bool(given) or checks.format_check is not None
    if not checks.conditions and node.type in ("string", "boolean", "integer"):
        checks.plain = checks.kind
    below = [child.checks for child in children(node) if child.checks is not None]
    checks.has_defaults = node.default is not UNSET or any(child.has_defaults for child in below)
    checks.has_rules = bool(checks.rules) or any(child.has_rules for child in below)
    checks.has_embedded = node.embedded or any(child.has_embedded for child in below)
    return checks


_CONDITIONS = frozenset({*_BOUNDS, "enum", "pattern", "allOf", "anyOf", "oneOf", "not", "uniqueItems"})
