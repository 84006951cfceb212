"""What a table of controllers is made of: rows, what they share, and how --controllers selects among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from karmada.interpreter.assembly import built_in_layers
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.native.layer import Native
from karmada.interpreter.sources import Sources
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Component

if TYPE_CHECKING:
    from karmada.controllers.context import Context
    from karmada.overrides.engine import Overrides
    from karmada.overrides.hook import Override

Part: TypeAlias = Reconciler | Component

EVERYTHING = "*"
WITH_EXECUTION = "workStatus"
"""Runs as a part of `execution`: one controller applies a Work and reports the status of what it applied."""


class Shared:
    """Parts that several controllers use, made when the first of them needs them."""

    def __init__(
        self, context: Context, *, interpreter: Interpreter | None = None, override: Override | None = None
    ) -> None:
        self.context = context
        self._interpreter = interpreter
        self._override = override

    @cached_property
    def interpreter(self) -> Interpreter:
        if self._interpreter is not None:
            return self._interpreter
        context = self.context
        interpreter = Interpreter(native=Native(context.clock, context.gates))
        layers = built_in_layers(context.clock, context.gates)
        context.shared.append(Sources(context.informers, interpreter, layers))
        return interpreter

    @cached_property
    def overrides(self) -> Overrides:
        from karmada.overrides.engine import Overrides

        return Overrides(self.context.informers)

    @cached_property
    def override(self) -> Override:
        from karmada.overrides.hook import COMPONENT, override_with

        return self._override or override_with(self.overrides, self.context.recorder(COMPONENT))


def _always(_context: Context) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    make: Callable[[Shared], Iterable[Part]]
    by_default: bool = True
    """True if `*` includes it; otherwise it runs only when --controllers names it."""
    optional: bool = True
    """True if --controllers can leave it out."""
    when: Callable[[Context], bool] = _always
    """Further conditions: feature gates, other flags."""


def is_enabled(name: str, flag: Sequence[str], *, by_default: bool = True) -> bool:
    """Return whether --controllers enables a controller: the first entry that names it decides, else `*`."""
    for entry in flag:
        if entry == name:
            return True
        if entry == f"-{name}":
            return False
    return by_default and EVERYTHING in flag


def names(rows: Iterable[Row]) -> list[str]:
    """Return what --controllers may name, in alphabetical order."""
    built = {row.name for row in rows if row.optional}
    return sorted({*built, WITH_EXECUTION}, key=str.lower)


def check(flag: Sequence[str], known: Sequence[str]) -> None:
    """ValueError for an entry of --controllers that is not among the known names."""
    for entry in flag:
        if entry.removeprefix("-") not in (EVERYTHING, *known):
            raise ValueError(f'--controllers: "{entry}" is not in the list of known controllers: {", ".join(known)}')
    if is_enabled("execution", flag) != is_enabled(WITH_EXECUTION, flag):
        raise ValueError("--controllers: execution and workStatus run as one; enable both or disable both")


def enabled_parts(rows: Iterable[Row], shared: Shared) -> list[Part]:
    """Return the parts of every row that flags and gates enable."""
    context = shared.context
    flag = context.settings.controllers

    def runs(row: Row) -> bool:
        named = not row.optional or is_enabled(row.name, flag, by_default=row.by_default)
        return named and row.when(context)

    return [part for row in rows if runs(row) for part in row.make(shared)]
