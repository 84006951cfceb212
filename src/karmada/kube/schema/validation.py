"""Validation of custom resources against their compiled schema.

First the schema itself (types, bounds, conditions, list keys), then, if nothing basic is wrong, the rules. On update an
error at a place that did not change is forgiven ("ratcheting"), so that tightening a schema does not lock existing
objects; since that needs comparing, it happens only after the plain validation found something.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import orjson

from karmada.kube.objects import names
from karmada.kube.objects.errors import (
    FieldError,
    FieldErrors,
    duplicate,
    invalid,
    not_supported,
    required,
    short_path,
    too_long,
    too_many,
    type_invalid,
)
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import Node
from karmada.kube.schema.structural import Checks, identity

UNCHECKED: Final = FieldError(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_BLOCKING = frozenset(
    {"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany"}
)


class _Missing:
    """No old value to compare with."""


MISSING: Final = _Missing()


def validate(node: Node, obj: Obj, old: Obj | None = None, settled: frozenset[str] = frozenset()) -> list[FieldError]:
    """Return what is wrong with an object; with `old`, what is wrong with the change from it.

    Of the parts that are `settled` only the rules are looked at.
    """
    errors = FieldErrors()
    if old is not None:
        settled |= _unchanged(obj, old, settled)
    _object(node, obj, MISSING, "", errors, settled)
    if node.checks.conditions:
        _conditions(node.checks, obj, "", errors)
    if node.checks.has_embedded:
        _embedded_objects(node, obj, MISSING, "", errors, settled)
    if errors and old is not None:
        errors = FieldErrors()
        _value(node, obj, old, "", errors)
        _embedded_objects(node, obj, old, "", errors)
    if node.checks.has_rules:
        if any(error.reason in _BLOCKING for error in errors):
            errors.append(UNCHECKED)
        else:
            from karmada.kube.schema.cel.rules import apply_rules

            errors.extend(apply_rules(node, obj, old))
    return errors


def satisfies(checks: Checks, value: Any) -> bool:
    """Return whether a value of the right type meets the conditions of its place."""
    errors = FieldErrors()
    _conditions(checks, value, "", errors)
    return not errors


def duplicates(node: Node, value: list[Any]) -> bool:
    """Return whether items of a set or map-like list are the same."""
    return bool(_duplicates(node, value, ""))


def _unchanged(obj: Obj, old: Obj, settled: frozenset[str]) -> frozenset[str]:
    """Return the other parts that are as they were, by their bytes.

    A change of the status need not have its spec judged. Of the metadata some always differs, and little is judged.
    """
    return frozenset(
        key
        for key, value in obj.items()
        if key not in settled
        and key in old
        and (value is old[key] or (key != "metadata" and _bytes(value) == _bytes(old[key])))
    )


def _bytes(value: Any) -> object:
    try:
        return orjson.dumps(value)
    except TypeError:  # what cannot be written is like nothing else
        return object()


def validate_value(node: Node, value: Any, path: str) -> FieldErrors:
    """Return what is wrong with a value somewhere inside an object (rules are not applied)."""
    errors = FieldErrors()
    _value(node, value, MISSING, path, errors)
    _embedded_objects(node, value, MISSING, path, errors)
    return errors


def type_name(value: Any) -> str:
    if value is None:
        return "null"
    return _TYPE_NAMES.get(type(value), "object")


_TYPE_NAMES: dict[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object",
}  # fmt: skip


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


_IS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: type(value) is list,
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    "integer": _is_integer,
    "number": lambda value: type(value) is float or type(value) is int,
}


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values in which true is not 1."""
    if isinstance(a, dict):
        if not isinstance(b, dict) or len(a) != len(b):
            return False
        return all(key in b and same(value, b[key]) for key, value in a.items())
    if type(a) is not type(b):
        return False
    if type(a) is list:
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def _value(node: Node, value: Any, old: Any, path: str, errors: FieldErrors) -> None:
    if (errors and errors.full) or (old is not MISSING and same(value, old)):
        return
    checks: Checks = node.checks
    kind = type(value)
    if kind is not checks.kind and ((value is None and node.nullable) or not _has_type(node, value, path, errors)):
        return
    if isinstance(value, dict):
        _object(node, value, old, path, errors)
    elif kind is list:
        _array(node, value, old, path, errors)
    if checks.conditions:
        _conditions(checks, value, path, errors)


def _conditions(checks: Checks, value: Any, path: str, errors: FieldErrors) -> None:
    kind = type(value)
    if kind is str:
        _string(checks, value, path, errors)
    elif kind is int or kind is float:
        _number(checks, value, path, errors)
    elif isinstance(value, dict | list):
        _size(checks, value, path, errors)
    if checks.enum is not None and not (kind is str and value in checks.words):
        _enum(checks, checks.enum, value, path, errors)
    if checks.all_of or checks.any_of or checks.one_of or checks.negation is not None:
        _combined(checks, value, path, errors)


def _enum(checks: Checks, allowed: tuple[Any, ...], value: Any, path: str, errors: FieldErrors) -> None:
    if type(value) is str or identity(value) not in checks.others:
        errors.append(not_supported(path, value, map(_enum_text, allowed)))


def _enum_text(choice: Any) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice, separators=(",", ":"))


def _has_type(node: Node, value: Any, path: str, errors: FieldErrors) -> bool:
    if node.special == "int-or-string":
        wanted, fits = "integer,string", type(value) is str or _is_integer(value)
    elif node.type:
        wanted, fits = node.type, _IS[node.type](value)
    else:
        return True
    if not fits:
        given = type_name(value)
        errors.append(type_invalid(path, given, f'{path} in body must be of type {wanted}: "{given}"'))
    return fits


def _object(
    node: Node,
    value: Obj,
    old: Any,
    path: str,
    errors: FieldErrors,
    settled: frozenset[str] = frozenset(),
) -> None:
    before: Obj = old if isinstance(old, dict) else _NO_FIELDS
    prefix = f"{short_path(path)}." if path else ""
    for name in node.required:
        if name not in value:
            errors.append(required(prefix + name))
    properties, values = node.properties, node.values
    for key, item in value.items():
        child = properties.get(key, values)
        if child is None or child.checks is None or type(item) is child.checks.plain or key in settled:
            continue
        _value(child, item, before.get(key, MISSING), prefix + key, errors)
    checks: Checks = node.checks
    if checks.metadata is not None and "metadata" not in settled and isinstance(value.get("metadata"), dict):
        _value(checks.metadata, value["metadata"], before.get("metadata", MISSING), f"{prefix}metadata", errors)


_NO_FIELDS: Obj = {}


def _embedded_objects(
    node: Node, value: Any, old: Any, path: str, errors: FieldErrors, settled: frozenset[str] = frozenset()
) -> None:
    """Validate objects inside the object; their errors come after those of the schema."""
    if not node.checks.has_embedded or errors.full or (old is not MISSING and same(value, old)):
        return
    if isinstance(value, dict):
        prefix = f"{short_path(path)}." if path else ""
        if node.embedded:
            _identity_and_metadata(value, prefix, errors)
        before: Obj = old if isinstance(old, dict) else _NO_FIELDS
        for key, item in value.items():
            child = node.properties.get(key, node.values)
            if child is not None and child.checks is not None and key not in settled:
                _embedded_objects(child, item, before.get(key, MISSING), prefix + key, errors)
    elif type(value) is list and node.items is not None and node.items.checks is not None:
        index = list_index(node, old) if type(old) is list and old else {}
        for position, item in enumerate(value):
            known = index.get(list_key(node, item), MISSING) if index else MISSING
            _embedded_objects(node.items, item, known, f"{short_path(path)}[{position}]", errors)


def _identity_and_metadata(value: Obj, prefix: str, errors: FieldErrors) -> None:
    """Validate the identity and metadata of an object inside an object."""
    for name in ("apiVersion", "kind"):
        given = value.get(name)
        if not given:
            errors.append(required(prefix + name))
        elif type(given) is str and name == "apiVersion" and given.count("/") > 1:
            errors.append(invalid(prefix + name, given, f"unexpected GroupVersion string: {given}"))
        elif type(given) is str and name == "kind" and names.dns1035_label(given.lower()):
            text = ", ".join(names.dns1035_label(given.lower()))
            errors.append(invalid(prefix + name, given, f"may have mixed case, but should otherwise match: {text}"))
    metadata = value.get("metadata")
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        message = f'{prefix}metadata in body must be of type object: "{type_name(metadata)}"'
        errors.append(type_invalid(f"{prefix}metadata", type_name(metadata), message))
        return
    _embedded_metadata(metadata, f"{prefix}metadata", errors)


def _embedded_metadata(metadata: Obj, path: str, errors: FieldErrors) -> None:
    for field in ("name", "generateName", "namespace"):
        given = metadata.get(field)
        if isinstance(given, str) and given:
            check = names.dns1123_label if field == "namespace" else names.path_segment
            errors.extend(invalid(f"{path}.{field}", given, text) for text in check(given))
    for field, check_value in (("labels", True), ("annotations", False)):
        entries = metadata.get(field)
        for key, text in entries.items() if isinstance(entries, dict) else ():
            at = f"{path}.{field}"
            if type(text) is not str:
                errors.append(
                    type_invalid(f"{at}.{key}", type_name(text), f"must be of type string: {type_name(text)}")
                )
                continue
            shown = key if check_value else key.lower()
            errors.extend(invalid(at, key, problem) for problem in names.qualified_name(shown))
            if check_value:
                errors.extend(invalid(at, text, problem) for problem in names.label_value(text))


def _array(node: Node, value: list[Any], old: Any, path: str, errors: FieldErrors) -> None:
    before = old if type(old) is list else []
    items = node.items
    if items is not None and items.checks is not None:
        plain = items.checks.plain
        index = list_index(node, before) if before else {}
        path = short_path(path)
        for position, item in enumerate(value):
            if plain is not None and type(item) is plain:
                continue
            known = index.get(list_key(node, item), MISSING) if index else MISSING
            _value(items, item, known, f"{path}[{position}]", errors)
    if node.list_type != "atomic":
        found = _duplicates(node, value, path)
        if found and not _duplicates(node, before, path):
            errors.extend(found)


def _size(checks: Checks, value: Any, path: str, errors: FieldErrors) -> None:
    size = len(value)
    if isinstance(value, dict):
        low, high, what = checks.min_properties, checks.max_properties, "properties"
    else:
        low, high, what = checks.min_items, checks.max_items, "items"
        if checks.unique_items and len({json.dumps(item, sort_keys=True) for item in value}) < size:
            errors.append(invalid(path, value, f"{path} in body shouldn't contain duplicates"))
    if low is not None and size < low:
        errors.append(invalid(path, size, f"{path} in body should have at least {low} {what}"))
    if high is not None and size > high:
        errors.append(too_many(path, size, high))


def list_key(node: Node, item: Any) -> Any:
    """Return what identifies an item of a set or map-like list; hashable."""
    if node.list_type == "map":
        if not isinstance(item, dict):
            return None
        fields = node.items.properties if node.items is not None else {}
        return tuple(_hashable(item.get(key, _default_of(fields.get(key)))) for key in node.list_keys)
    return _hashable(item)


def _default_of(node: Node | None) -> Any:
    return node.default if node is not None and node.default else None


def _hashable(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return (type(value), value) if isinstance(value, bool) else value


def list_index(node: Node, value: list[Any]) -> dict[Any, Any]:
    """Items by key, for lists whose items can be correlated across changes (map-like lists only)."""
    if node.list_type != "map":
        return {}
    return {list_key(node, item): item for item in value if isinstance(item, dict)}


def _duplicates(node: Node, value: list[Any], path: str) -> list[FieldError]:
    seen: set[Any] = set()
    found = FieldErrors()
    path = short_path(path)
    for index, item in enumerate(value):
        if found.full:
            break
        identity = list_key(node, item)
        if identity in seen:
            keyed = isinstance(item, dict) and node.list_keys
            shown = {key: item[key] for key in node.list_keys if key in item} if keyed else item
            found.append(duplicate(f"{path}[{index}]", shown))
        if identity is not None:
            seen.add(identity)
    return found


def _string(checks: Checks, value: str, path: str, errors: FieldErrors) -> None:
    if checks.max_length is not None and len(value) > checks.max_length:
        errors.append(too_long(path, checks.max_length))
    if checks.min_length is not None and len(value) < checks.min_length:
        errors.append(invalid(path, value, f"{path} in body should be at least {checks.min_length} chars long"))
    if checks.search is not None and not checks.search(value):
        errors.append(invalid(path, value, f"{path} in body should match '{checks.pattern}'"))
    if checks.format_check is not None and not checks.format_check(value):
        shown = json.dumps(value, ensure_ascii=False)
        errors.append(type_invalid(path, value, f"{path} in body must be of type {checks.format}: {shown}"))


def _show(number: float) -> str:
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e21:
        return str(int(number))
    return str(number)


def _number(checks: Checks, value: float, path: str, errors: FieldErrors) -> None:
    low, high = checks.minimum, checks.maximum
    if low is not None:
        if checks.exclusive_minimum and value <= low:
            errors.append(invalid(path, value, f"{path} in body should be greater than {_show(low)}"))
        elif value < low:
            errors.append(invalid(path, value, f"{path} in body should be greater than or equal to {_show(low)}"))
    if high is not None:
        if checks.exclusive_maximum and value >= high:
            errors.append(invalid(path, value, f"{path} in body should be less than {_show(high)}"))
        elif value > high:
            errors.append(invalid(path, value, f"{path} in body should be less than or equal to {_show(high)}"))
    if checks.multiple_of and not _is_multiple(value, checks.multiple_of):
        errors.append(invalid(path, value, f"{path} in body should be a multiple of {_show(checks.multiple_of)}"))


def _is_multiple(value: float, of: float) -> bool:
    if isinstance(value, int) and isinstance(of, int):
        return value % of == 0
    quotient = value / of
    return abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))


def _combined(checks: Checks, value: Any, path: str, errors: FieldErrors) -> None:
    if checks.all_of:
        _all_of(checks.all_of, value, path, errors)
    if checks.any_of:
        _some(checks.any_of, value, path, errors, f'"{path}" must validate at least one schema (anyOf)')
    if checks.one_of:
        _one_of(checks.one_of, value, path, errors)
    if checks.negation is not None and not validate_value(checks.negation, value, path):
        errors.append(invalid(path, "", f'"{path}" must not validate the schema (not)'))


def _all_of(nodes: tuple[Node, ...], value: Any, path: str, errors: FieldErrors) -> None:
    results = [validate_value(node, value, path) for node in nodes]
    failed = [result for result in results if result]
    if failed:
        for result in failed:
            errors.extend(result)
        none = ". None validated" if len(failed) == len(nodes) else ""
        errors.append(invalid(path, "", f'"{path}" must validate all the schemas (allOf){none}'))


def _some(nodes: tuple[Node, ...], value: Any, path: str, errors: FieldErrors, message: str) -> None:
    """Validate that one schema fits; otherwise report also what is wrong with the one that fits best."""
    results = []
    for node in nodes:
        result = validate_value(node, value, path)
        if not result:
            return
        results.append(result)
    errors.append(invalid(path, "", message))
    errors.extend(_fewest(results))


def _fewest(results: list[FieldErrors]) -> FieldErrors:
    return min(results, key=lambda result: len(result))


def _one_of(nodes: tuple[Node, ...], value: Any, path: str, errors: FieldErrors) -> None:
    message = f'"{path}" must validate one and only one schema (oneOf). '
    results = [validate_value(node, value, path) for node in nodes]
    fitting = sum(not result for result in results)
    if fitting == 0:
        errors.append(invalid(path, "", message + "Found none valid"))
        errors.extend(_fewest(results))
    elif fitting > 1:
        errors.append(invalid(path, "", message + f"Found {fitting} valid alternatives"))
