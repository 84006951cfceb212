"""What the host does for scripts: the functions of `kube`, the clock, and `print`.

Arguments and results are plain JSON values. An empty table of Lua comes as an empty list, whatever it was meant to be.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from karmada.interpreter.dependencies import pod_dependencies
from karmada.interpreter.lua.dates import date_text, seconds_of
from karmada.interpreter.requirements import pod_requirements
from karmada.kube.objects.quantity import ZERO, Format, Quantity
from karmada.kube.objects.types import Obj

log = logging.getLogger(__name__)


class LibraryError(Exception):
    """Raised in a script that calls a library function with invalid arguments."""


class Library:
    """`priority_class` makes requirements of Pods name their PriorityClass; `printed` gets the lines of `print`."""

    def __init__(
        self,
        *,
        priority_class: bool = False,
        printed: Callable[[str], None] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._priority_class = priority_class
        self._printed = printed or _log_line
        self._now = now
        self._functions: dict[str, Callable[[list[Any]], Any]] = {
            "resourceAdd": _resource_add,
            "accuratePodRequirements": self._requirements,
            "getPodDependencies": _dependencies,
            "getResourceQuantity": _quantity,
            "time": lambda arguments: seconds_of(arguments[0] if arguments else None, self._now),
            "date": lambda arguments: date_text(arguments, self._now),
            "print": lambda arguments: self._printed(arguments[0]),
        }

    def call(self, name: str, arguments: list[Any]) -> Any:
        """Raise LibraryError, or what the function itself says is wrong."""
        try:
            return self._functions[name](arguments)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise LibraryError(f"{name}: {error}") from error

    def _requirements(self, arguments: list[Any]) -> Obj | None:
        if len(arguments) != 1:
            raise LibraryError("getPodRequirements only accepts one argument")
        return pod_requirements(_pod_spec(arguments[0], "getPodRequirements"), priority_class=self._priority_class)


def _log_line(text: str) -> None:
    log.info("a script printed: %s", text)


def _pod_spec(template: Any, function: str) -> Obj:
    if template == []:
        return {}
    if not isinstance(template, dict):
        raise LibraryError(f"{function}: table expected, got {_kind(template)}")
    spec = template.get("spec") or {}
    if not isinstance(spec, dict):
        raise LibraryError(f"{function}: spec: table expected, got {_kind(spec)}")
    return spec


def _kind(value: Any) -> str:
    names = {type(None): "nil", bool: "boolean", int: "number", float: "number", str: "string"}
    return names.get(type(value), "table")


def _dependencies(arguments: list[Any]) -> list[Obj]:
    if len(arguments) != 2:
        raise LibraryError("getPodDependencies only accepts two argument")
    template, namespace = arguments
    if namespace is not None and not isinstance(namespace, str):
        raise LibraryError(f"getPodDependencies: string expected, got {_kind(namespace)}")
    return pod_dependencies(_pod_spec(template, "getPodDependencies"), "default" if namespace is None else namespace)


def _parse(value: Any, function: str) -> Quantity:
    if value is None:
        return ZERO
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise LibraryError(f"{function}: string expected, got {_kind(value)}")
    return Quantity.parse(value)


def _resource_add(quantities: Sequence[Any]) -> str:
    total, form = ZERO, Format.DECIMAL_SI
    for value in quantities:
        quantity = _parse(value, "resourceAdd")
        if total.is_zero():
            form = quantity.format
        total += quantity
    return str(Quantity(total.nano, form))


def _quantity(arguments: list[Any]) -> float:
    if len(arguments) != 1:
        raise LibraryError("getResourceQuantity only accepts one argument")
    amount = _parse(arguments[0], "getResourceQuantity").nano / 10**9
    if amount < 0:
        raise LibraryError(f"getResourceQuantity: {arguments[0]} is negative")
    return amount
