"""Words of a container's command or arguments: appended, or taken out."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from karmada.overrides.containers import CONTAINERS, Change, nested_list, replaced
from karmada.overrides.errors import CannotApply


def command_change(overrider: Obj) -> Change:
    return _change("command", overrider)


def args_change(overrider: Obj) -> Change:
    return _change("args", overrider)


def _change(field: str, overrider: Obj) -> Change:
    name, operator, value = overrider.get("containerName"), overrider.get("operator"), overrider.get("value") or []

    def change(obj: Obj) -> Obj:
        path = CONTAINERS.get(obj["kind"])
        if path is None:
            return obj
        try:
            containers = nested_list(obj, path)
        except CannotApply as error:
            raise CannotApply(f"failed to retrieves path({'/'.join(path)}) from rawObj, error: {error}") from None
        if not containers:
            return obj
        new = [_changed(container, field, name, operator, value) for container in containers]
        return obj if all(map(_same, new, containers)) else replaced(obj, path, new)

    return change


def _same(one: object, other: object) -> bool:
    return one is other


def _changed(container: Any, field: str, name: Any, operator: Any, value: list[str]) -> Any:
    if not isinstance(container, dict) or container.get("name") != name:
        return container
    words = nested_list(container, (field,))
    new = edited(words, operator, value)
    return container if new == words else {**container, field: new}


def edited(words: list[str] | None, operator: str, value: list[str]) -> list[str]:
    """Words after an overrider; None are words that were never given, which become a list whatever is done."""
    if operator == "add":
        return [*(words or ()), *value]
    if operator == "remove":
        return [word for word in words or () if word not in value]
    return words or []
