"""The rules that make a CRD's openAPIV3Schema structural.

A structural schema says for every place what is there (types, properties, items) apart from what it must satisfy
(allOf, anyOf, oneOf, not); only then can unknown fields be dropped and defaults be filled in without guessing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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
from karmada.kube.schema.structural import (
    EITHER,
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    VALIDATIONS,
    compile_pattern,
)

TYPES = ("array", "boolean", "integer", "number", "object", "string")
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
    """Return what keeps a version's openAPIV3Schema from being structural; empty when all is well."""
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


def _int_or_string_pattern(schema: Obj) -> tuple[bool, bool]:
    """Return the two ways to write the types of an int-or-string: in anyOf, or in the anyOf of the first allOf."""
    if not schema.get(INT_OR_STRING):
        return False, False
    if schema.get("anyOf") == EITHER:
        return True, False
    first = (schema.get("allOf") or [{}])[0]
    return False, isinstance(first, dict) and first.get("anyOf") == EITHER


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
    """Refuse a nested condition that refers to what is not specified outside of it."""
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
