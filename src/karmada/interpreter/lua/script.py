"""A script: text that defines functions, and the calling of them."""

from __future__ import annotations

from typing import Any

from karmada.interpreter.lua.library import Library
from karmada.interpreter.lua.pool import SHARED, Pool
from karmada.interpreter.lua.vm import Result

_LIBRARY = Library()


class LuaScript:
    """Each call runs the whole text in an environment of its own, and then one of the functions it defined.

    Values go in and come out as plain JSON data. LuaError says what is wrong with the script, or how it failed.
    A call is over after a second; it does not hold the lock of Python while Lua runs, so threads can have it.
    """

    def __init__(self, source: str, *, library: Library | None = None, pool: Pool | None = None) -> None:
        self.source = source
        self._library = library or _LIBRARY
        self._pool = pool or SHARED

    def problem(self) -> str:
        """Why it does not compile, "" when it does. It is not run."""
        with self._pool.vm() as vm:
            return vm.check(self.source)

    def call(self, function: str, *arguments: Any, results: int = 1) -> Result:
        """Return the first `results` values that the function returns; those it does not return are nil."""
        with self._pool.vm() as vm:
            return vm.call(self.source, function, arguments, results, self._library)
