"""Small rules that many kinds share: each adds to a list of field errors what it finds wrong.

A rule takes the list it adds to, so that a valid object costs no allocation. Paths are built by the caller only as
deep as it walks. Quantities and label pairs repeat between objects, so their results are cached.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from karmada.kube.objects import names
from karmada.kube.objects.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
)
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

NON_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"
PORT_RANGE = "must be between 1 and 65535, inclusive"
MAX_INT32 = 2**31 - 1
BAD_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def add_invalid(errors: list[FieldError], path: str, value: Any, messages: Iterable[str]) -> None:
    errors.extend(invalid(path, value, message) for message in messages)


def named(errors: list[FieldError], path: str, value: Any, check: Callable[[str], list[str]], detail: str = "") -> None:
    """Validate a required name of the given form."""
    if not value:
        errors.append(required(path, detail))
    else:
        add_invalid(errors, path, value, check(value))


def needed(errors: list[FieldError], path: str, value: Any, detail: str = "") -> None:
    if not value:
        errors.append(required(path, detail))


def one_of(errors: list[FieldError], path: str, value: Any, allowed: Sequence[Any], *, optional: bool = False) -> None:
    if value in allowed:
        return
    if value is None or value == "":
        if not optional:
            errors.append(required(path))
        return
    errors.append(not_supported(path, value, allowed))


def non_negative(errors: list[FieldError], path: str, holder: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        value = holder.get(key)
        if value is not None and value < 0:
            errors.append(invalid(f"{path}.{key}", value, NON_NEGATIVE))


def positive(errors: list[FieldError], path: str, holder: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        value = holder.get(key)
        if value is not None and value <= 0:
            errors.append(invalid(f"{path}.{key}", value, "must be greater than 0"))


def between(errors: list[FieldError], path: str, value: Any, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        errors.append(invalid(path, value, f"must be between {low} and {high}, inclusive"))


def unchanged(errors: list[FieldError], path: str, new: Any, old: Any, detail: str = IMMUTABLE) -> None:
    """Empty and absent are the same thing, as they are on the wire."""
    if new != old and (new or old):
        errors.append(invalid(path, new, detail))


def keys_unchanged(errors: list[FieldError], path: str, new: Obj, old: Obj, keys: Iterable[str]) -> None:
    for key in keys:
        unchanged(errors, f"{path}.{key}" if path else key, new.get(key), old.get(key))


# --- labels and selectors


@lru_cache(maxsize=4096)
def _label_key_messages(key: str) -> tuple[str, ...]:
    """Keys are few. Values are not remembered: ids are among them, of which every object has its own."""
    return tuple(names.qualified_name(key))


def labels(errors: list[FieldError], path: str, found: Mapping[str, str] | None) -> None:
    if not found:
        return
    for key, value in found.items():
        wrong = _label_key_messages(key)
        if wrong:
            add_invalid(errors, path, key, wrong)
        if not names.is_label_value(value):
            add_invalid(errors, path, value, names.label_value(value))


def label_selector(errors: list[FieldError], path: str, selector: Obj | None) -> None:
    if not selector:
        return
    labels(errors, f"{path}.matchLabels", selector.get("matchLabels"))
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        _selector_requirement(errors, f"{path}.matchExpressions[{index}]", requirement)


def _selector_requirement(errors: list[FieldError], path: str, requirement: Obj) -> None:
    operator, values = requirement.get("operator"), requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden_field(f"{path}.values", detail))
    else:
        errors.append(invalid(f"{path}.operator", operator or "", "not a valid selector operator"))
    add_invalid(errors, f"{path}.key", requirement.get("key") or "", names.qualified_name(requirement.get("key") or ""))
    for index, value in enumerate(values):
        add_invalid(errors, f"{path}.values[{index}]", value, names.label_value(value))


def selector_text(selector: Obj) -> Obj:
    """Return a selector as an error shows it: without empty fields."""
    return {key: value for key, value in selector.items() if value}


# --- numbers, percentages, quantities


@lru_cache(maxsize=8192)
def quantity(value: str | float) -> Quantity | None:
    """Return the parsed quantity, or None when it is none."""
    try:
        return Quantity.parse(value)
    except ValueError:
        return None


@lru_cache(maxsize=8192)
def canonical_quantity(value: str | float) -> str | float:
    """Return the form that is stored; what is no quantity stays as it is, for validation to refuse."""
    parsed = quantity(value)
    return value if parsed is None else str(parsed)


@lru_cache(maxsize=8192)
def resource_quantity(value: str | float) -> str | float:
    """As `canonical_quantity`, and rounded up to thousandths, the finest that resources are counted in."""
    parsed = quantity(value)
    if parsed is None:
        return value
    rounded = Quantity.of_milli(parsed.milli(), parsed.format)
    return str(parsed) if rounded == parsed else str(rounded)


def canonical_resources(found: Obj | None) -> None:
    """In place: every quantity of a resource list in its stored form."""
    if found:
        for key, value in found.items():
            form = resource_quantity(value)
            if form is not value:
                found[key] = form


def canonical_quantities(holder: Obj | None, *keys: str) -> None:
    """In place: the resource lists under these keys."""
    if holder:
        for key in keys:
            canonical_resources(holder.get(key))


def resource_amount(errors: list[FieldError], path: str, value: Any) -> None:
    parsed = quantity(value)
    if parsed is None:
        errors.append(invalid(path, value, BAD_QUANTITY))
    elif parsed.nano < 0:
        errors.append(invalid(path, str(parsed), NON_NEGATIVE))


def int_or_percent(errors: list[FieldError], path: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            errors.append(invalid(path, value, _PERCENT_TEXT))
    elif value < 0:
        errors.append(invalid(path, value, NON_NEGATIVE))


def percent_of(value: Any) -> int | None:
    """Return the number before the percent sign; None for what is no percentage."""
    return int(value[:-1]) if isinstance(value, str) and _PERCENT.fullmatch(value) else None


def at_most_hundred_percent(errors: list[FieldError], path: str, value: Any) -> None:
    if (percent_of(value) or 0) > 100:
        errors.append(invalid(path, value, "must not be greater than 100%"))


# --- ports, keys, paths, addresses


def port_number(errors: list[FieldError], path: str, value: Any) -> None:
    if not isinstance(value, int) or not 1 <= value <= 65535:
        errors.append(invalid(path, value, PORT_RANGE))


def port_or_name(errors: list[FieldError], path: str, value: Any) -> None:
    if isinstance(value, str):
        add_invalid(errors, path, value, names.port_name(value))
    else:
        port_number(errors, path, 0 if value is None else value)


def relative_path(errors: list[FieldError], path: str, value: str) -> None:
    if value.startswith("/"):
        errors.append(invalid(path, value, "must be a relative path"))
    if ".." in value.split("/"):
        errors.append(invalid(path, value, "must not contain '..'"))


def ip_address(errors: list[FieldError], path: str, value: Any) -> None:
    if not is_ip(value):
        errors.append(invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))


def is_ip(value: Any) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return isinstance(value, str)


def cidr(errors: list[FieldError], path: str, value: Any) -> None:
    try:
        ipaddress.ip_network(value, strict=False)
        if "/" not in value:
            raise ValueError
    except ValueError:
        errors.append(invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))


def no_duplicates(errors: list[FieldError], values: Iterable[tuple[str, Any]]) -> None:
    """(path, value) pairs: every value that came before is a duplicate."""
    seen: set[Any] = set()
    for path, value in values:
        if value in seen:
            errors.append(duplicate(path, value))
        seen.add(value)


def put_back(changed: Obj, before: Obj, key: str) -> None:
    """In place: a field as it was, so that what may change does not count in a comparison."""
    if key in before:
        changed[key] = before[key]
    else:
        changed.pop(key, None)
