"""From a CRD's openAPIV3Schema to a Node tree, and the rules that make such a schema structural.

A structural schema says for every place what is there (types, properties, items) apart from what it must satisfy
(allOf, anyOf, oneOf, not); only then can unknown fields be dropped and defaults be filled in without guessing.
`compile_schema` wants a schema without `structural_errors`. What validation needs goes into `Checks`, which also notes
what the subtree below contains, so that a pass that has nothing to do there returns at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from karmada.kube.objects.errors import (
    FieldError,
    FieldErrors,
    forbidden_field,
    invalid,
    not_supported,
    required,
    short_path,
)
from karmada.kube.objects.types import Obj
from karmada.kube.schema import formats
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.node import UNSET, Node

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
TYPES = ("array", "boolean", "integer", "number", "object", "string")
EMBEDDED, INT_OR_STRING = "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"
PRESERVE, VALIDATIONS = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"
LIST_TYPE, LIST_KEYS, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"


@dataclass(slots=True, eq=False)
class Checks:
    """What a value must satisfy besides its type, and what lies below."""

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
    search: Callable[[str], bool] | None = None
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
    """The same, for a scalar without any condition."""
    conditions: bool = False
    """Whether there is anything to check besides the type and what is below."""
    has_defaults: bool = False
    has_rules: bool = False
    has_embedded: bool = False
    """These three: here or anywhere below."""


_KINDS: dict[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
_REMEMBERED, _WORD = 256, 64
"""So many words a pattern knows by heart, of at most so many letters."""
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
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a text has it in it. Words that come again and again (reasons, types) are looked up, not searched.

    Raises ValueError when it is not RE2 syntax.
    """
    import re2

    try:
        search: Callable[[str], Any] = re2.compile(pattern).search
    except re2.error as error:
        raise ValueError(_regexp_problem(error)) from None
    fitting: set[str] = set()

    def found(text: str) -> bool:
        if text in fitting:
            return True
        if search(text) is None:
            return False
        if len(fitting) < _REMEMBERED and len(text) <= _WORD:
            fitting.add(text)
        return True

    return found


def identity(value: Any) -> str:
    """The same text for the same JSON value, in which true is not 1 and 1 not 1.0."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def object_meta() -> Node:
    return Definitions.load().node(OBJECT_META)


def compile_schema(schema: Obj) -> Node:
    """The Node of a structural schema's root."""
    node = _compile(schema)
    _add_identity(node)
    return node


def _add_identity(node: Node) -> None:
    """apiVersion, kind and metadata are there whether or not the schema names them."""
    for name in ("apiVersion", "kind"):
        if name not in node.properties:
            node.properties[name] = Node(type="string", checks=Checks(kind=str, plain=str))
    node.checks.metadata = node.properties.get("metadata")
    node.properties["metadata"] = object_meta()


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
    if node.special and schema.get("anyOf") == _EITHER:
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


# What makes a schema structural.

_UNSUPPORTED = ("$ref", "$schema", "id", "definitions", "dependencies", "patternProperties", "additionalItems")
_EMPTY_MESSAGES = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


@dataclass(slots=True)
class _Walk:
    """Errors of any OpenAPI schema (`add`), and those of one that is not structural (`add_structural`).

    Of a schema with a keyword that structural schemas do not have, only the former are reported.
    """

    errors: FieldErrors = field(default_factory=FieldErrors)
    general: FieldErrors = field(default_factory=FieldErrors)
    unsupported: bool = False

    def add(self, *errors: FieldError) -> None:
        self.errors.extend(errors)
        self.general.extend(errors)

    def add_structural(self, *errors: FieldError) -> None:
        self.errors.extend(errors)

    def found(self) -> FieldErrors:
        return self.general if self.unsupported else self.errors


def structural_errors(schema: Obj, path: str) -> list[FieldError]:
    """What keeps a version's openAPIV3Schema from being structural; empty when all is well."""
    walk = _Walk()
    _place(walk, schema, "root", path)
    return walk.found()


def _place(walk: _Walk, schema: Any, level: str, path: str) -> None:
    path = short_path(path)
    if not isinstance(schema, dict):
        walk.add(invalid(path, schema, "must be a schema"))
        return
    _plain_rules(walk, schema, path)
    _extension_rules(walk, schema, path)
    _type_rules(walk, schema, level, path)
    if level == "root" or schema.get(EMBEDDED):
        _identity_rules(walk, schema, path)
    for name, child in (schema.get("properties") or {}).items():
        _place(walk, child, "field", f"{path}.properties[{name}]")
    if isinstance(schema.get("additionalProperties"), dict):
        _place(walk, schema["additionalProperties"], "field", f"{path}.additionalProperties")
    if isinstance(schema.get("items"), dict):
        _place(walk, schema["items"], "item", f"{path}.items")
    skip_any, skip_all = _int_or_string_pattern(schema)
    for key, inner in _nested(schema):
        skip = skip_any if key.startswith("anyOf") else skip_all if key == "allOf[0]" else False
        _nested_rules(walk, inner, f"{path}.{key}", skip_types=skip and key.startswith("anyOf"), skip_inner=skip)
        _complete(walk, schema, inner, path, key)


def _plain_rules(walk: _Walk, schema: Obj, path: str) -> None:
    for key in _UNSUPPORTED:
        if schema.get(key):
            walk.unsupported = True
            walk.add(forbidden_field(f"{path}.{key}", f"{key} is not supported"))
    if schema.get("uniqueItems"):
        message = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        walk.add(forbidden_field(f"{path}.uniqueItems", message))
    additional = schema.get("additionalProperties")
    if additional is False:
        walk.add(forbidden_field(f"{path}.additionalProperties", "additionalProperties cannot be set to false"))
    elif additional is not None and schema.get("properties"):
        message = "additionalProperties and properties are mutual exclusive"
        walk.add(forbidden_field(f"{path}.additionalProperties", message))
    if isinstance(schema.get("items"), list):
        walk.unsupported = True
        walk.add(forbidden_field(f"{path}.items", "items must be a schema object and not an array"))
    if schema.get("type") == "array" and schema.get("items") is None:
        walk.add_structural(required(f"{path}.items", "must be specified"))
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except ValueError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            walk.add_structural(invalid(f"{path}.pattern", pattern, detail))


def _type_rules(walk: _Walk, schema: Obj, level: str, path: str) -> None:
    kind = schema.get("type") or ""
    at = f"{path}.type"
    if kind == "null":
        walk.add(forbidden_field(at, "type cannot be set to null, use nullable as an alternative"))
    elif kind and kind not in TYPES:
        walk.add(not_supported(at, kind, TYPES))
    if schema.get(EMBEDDED) and kind != "object":
        message = f"must be object if {EMBEDDED} is true"
        walk.add_structural(invalid(at, kind, message) if kind else required(at, message))
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        walk.add_structural(required(at, _EMPTY_MESSAGES[level]))
    if level == "root" and kind and kind != "object":
        walk.add_structural(invalid(at, kind, "must be object at the root"))
    if schema.get(EMBEDDED) and schema.get("additionalProperties") is not None:
        walk.add_structural(forbidden_field(f"{path}.additionalProperties", f"must not be used if {EMBEDDED} is set"))
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not schema.get("properties"):
        message = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        walk.add_structural(required(f"{path}.properties", message))


def _identity_rules(walk: _Walk, schema: Obj, path: str) -> None:
    properties = schema.get("properties") or {}
    for name, kind in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        child = properties.get(name)
        if isinstance(child, dict) and child.get("type") != kind:
            walk.add_structural(invalid(f"{path}.properties[{name}].type", child.get("type") or "", f"must be {kind}"))
    metadata = properties.get("metadata")
    if not isinstance(metadata, dict):
        return
    allowed = {"type", "description", "properties"}
    names = set(metadata.get("properties") or {})
    if metadata.keys() - allowed or names - {"name", "generateName"}:
        message = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        walk.add_structural(forbidden_field(f"{path}.properties[metadata]", message))


def _extension_rules(walk: _Walk, schema: Obj, path: str) -> None:
    if schema.get(INT_OR_STRING):
        if schema.get("type"):
            walk.add(invalid(f"{path}.type", schema["type"], f"must be empty if {INT_OR_STRING} is true"))
        for key in (PRESERVE, EMBEDDED):
            if schema.get(key):
                walk.add(invalid(f"{path}.{key}", True, f"must be false if {INT_OR_STRING} is true"))
    if schema.get(PRESERVE) is False:
        walk.add(invalid(f"{path}.{PRESERVE}", False, "must be true or undefined"))
    _topology_rules(walk, schema, path)


def _topology_rules(walk: _Walk, schema: Obj, path: str) -> None:
    map_type, list_type, keys = schema.get(MAP_TYPE), schema.get(LIST_TYPE), schema.get(LIST_KEYS) or []
    kind = schema.get("type") or ""
    if map_type is not None:
        if map_type not in ("atomic", "granular"):
            walk.add(not_supported(f"{path}.{MAP_TYPE}", map_type, ("atomic", "granular")))
        if kind != "object":
            walk.add(invalid(f"{path}.type", kind, f"must be object if {MAP_TYPE} is specified"))
    if list_type is not None:
        if list_type not in ("atomic", "map", "set"):
            walk.add(not_supported(f"{path}.{LIST_TYPE}", list_type, ("atomic", "map", "set")))
        if kind != "array":
            walk.add(invalid(f"{path}.type", kind, f"must be array if {LIST_TYPE} is specified"))
    if keys and list_type != "map":
        walk.add(invalid(f"{path}.{LIST_TYPE}", list_type, f"must be map if {LIST_KEYS} is non-empty"))
    items = schema.get("items")
    if list_type in ("map", "set") and isinstance(items, dict):
        if items.get("nullable"):
            message = f"cannot be nullable when {LIST_TYPE} is {list_type}"
            walk.add(forbidden_field(f"{path}.items.nullable", message))
        if list_type == "map":
            _map_list_rules(walk, keys, items, path)
        else:
            _set_list_rules(walk, items, path)


def _map_list_rules(walk: _Walk, keys: list[str], items: Obj, path: str) -> None:
    at = f"{path}.{LIST_KEYS}"
    if not keys:
        walk.add(required(at, f"must not be empty if {LIST_TYPE} is map"))
    if items.get("type") != "object":
        message = f"must be object if parent array's {LIST_TYPE} is map"
        walk.add(invalid(f"{path}.items.type", items.get("type") or "", message))
        return
    properties, needed = items.get("properties") or {}, items.get("required") or ()
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            walk.add(invalid(at, keys, "must not contain duplicate entries"))
        seen.add(key)
        child = properties.get(key)
        where = f"{path}.items.properties[{key}]"
        if not isinstance(child, dict):
            walk.add(invalid(at, keys, "entries must all be names of item properties"))
            continue
        if child.get("type") in ("object", "array"):
            message = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            walk.add(invalid(f"{where}.type", child["type"], message))
        if key not in needed and child.get("default") is None:
            message = f"this property is in {LIST_KEYS}, so it must have a default or be a required property"
            walk.add(required(f"{where}.default", message))


def _set_list_rules(walk: _Walk, items: Obj, path: str) -> None:
    message = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        walk.add(invalid(f"{path}.items.{MAP_TYPE}", items.get(MAP_TYPE), message))
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        walk.add(invalid(f"{path}.items.{LIST_TYPE}", items.get(LIST_TYPE), message))


def _nested(schema: Obj) -> Iterator[tuple[str, Any]]:
    for key in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(key) or ()):
            yield f"{key}[{index}]", inner
    if schema.get("not") is not None:
        yield "not", schema["not"]


_EITHER = [{"type": "integer"}, {"type": "string"}]


def _int_or_string_pattern(schema: Obj) -> tuple[bool, bool]:
    """The two ways to write the types of an int-or-string: in anyOf, or in the anyOf of the first allOf."""
    if not schema.get(INT_OR_STRING):
        return False, False
    if schema.get("anyOf") == _EITHER:
        return True, False
    first = (schema.get("allOf") or [{}])[0]
    return False, isinstance(first, dict) and first.get("anyOf") == _EITHER


_NESTED_FORBIDDEN = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (LIST_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (VALIDATIONS, "must be empty to be structural"),
)


def _nested_rules(walk: _Walk, schema: Any, path: str, *, skip_types: bool = False, skip_inner: bool = False) -> None:
    """Inside allOf, anyOf, oneOf and not: conditions only."""
    if not isinstance(schema, dict):
        walk.add(invalid(path, schema, "must be a schema"))
        return
    for key, message in _NESTED_FORBIDDEN:
        value = schema.get(key)
        if value is not None and value is not False and value != "" and not (key == "type" and skip_types):
            walk.add_structural(forbidden_field(f"{path}.{key}", message))
    if "metadata" in (schema.get("properties") or {}):
        walk.add_structural(
            forbidden_field(f"{path}.properties[metadata]", "must not be specified in a nested context")
        )
    for name, child in (schema.get("properties") or {}).items():
        _nested_rules(walk, child, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        _nested_rules(walk, schema["items"], f"{path}.items")
    for key, inner in _nested(schema):
        _nested_rules(walk, inner, f"{path}.{key}", skip_types=skip_inner and key.startswith("anyOf"))


def _complete(walk: _Walk, schema: Any, nested: Any, path: str, source: str) -> None:
    """What a nested condition refers to must be specified outside of it."""
    if not isinstance(nested, dict) or not isinstance(schema, dict):
        return
    for name, child in (nested.get("properties") or {}).items():
        at, where = f"{path}.properties[{name}]", f"{source}.properties[{name}]"
        outer = (schema.get("properties") or {}).get(name)
        if outer is None and isinstance(schema.get("additionalProperties"), dict):
            outer = schema["additionalProperties"]
        if outer is None:
            walk.add_structural(required(at, f"because it is defined in {where}"))
        else:
            _complete(walk, outer, child, at, where)
    if nested.get("items") is not None:
        if schema.get("items") is None:
            walk.add_structural(required(f"{path}.items", f"because it is defined in {source}.items"))
        else:
            _complete(walk, schema["items"], nested["items"], f"{path}.items", f"{source}.items")
    for key, inner in _nested(nested):
        _complete(walk, schema, inner, path, f"{source}.{key}")
