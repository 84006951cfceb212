"""One Lua VM, and how a call gets into it and out again.

What goes in becomes Lua tables, what comes out is JSON text that the sandbox writes. A script never holds an object of
Python. It may use the processor for a second and a fixed amount of memory on top of what its arguments need; the limit
of memory stands only while a script runs, because an allocation of the host's that failed would end the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from karmada.interpreter.lua.library import Library, LibraryError
from karmada.interpreter.lua.rewriting import with_ordered_tables
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.memo import Memo

SECONDS = 1.0
MEMORY = 64 << 20
_SLACK = 4 << 20
"""Memory that responses of the host may need on top of a script's."""
_TIDY = 4 << 20
"""A VM that holds more than this after a run is cleaned."""
_COMPILED = 64
_BYTECODE = "\x1b"
_NO_MEMORY = b"not enough memory"


class LuaError(InterpreterError):
    """A script that does not compile, failed, took too long or too much."""


class Result(NamedTuple):
    """The results of a function: the Lua types of the values, and the values, as many as were requested."""

    kinds: tuple[str, ...]
    values: list[Any]


@lru_cache(maxsize=1)
def _lua() -> Any:
    """Lua 5.2: with `goto` and all numbers alike. The sandbox gives scripts the library of 5.1."""
    return import_module("lupa.lua52")


@lru_cache(maxsize=2)
def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


class VM:
    """Not for several threads at once. `broken` after a run that left it in a doubtful state."""

    def __init__(self) -> None:
        self.broken = False
        self._ends = 0.0
        self._limit = 0
        self._library = Library()
        self._lua = _lua().LuaRuntime(
            encoding=None,
            source_encoding="utf-8",
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            attribute_filter=_no_attributes,
            max_memory=0,
        )
        match_slowly = self._lua.execute(_text("patterns.lua"))
        self._compile, self._run, self._collect = self._lua.execute(
            _text("sandbox.lua"), self._from_script, self._left, match_slowly
        )
        self._chunks: Memo[str, Any] = Memo(_COMPILED)

    def check(self, source: str) -> str:
        """Why the source does not compile; "" when it does. Nothing of it runs."""
        if source.startswith(_BYTECODE):
            return "compiled chunks are not accepted, only source"
        try:
            data = source.encode()
        except UnicodeEncodeError as error:
            return str(error)
        answer = self._compile(data)
        return answer[1].decode(errors="replace") if isinstance(answer, tuple) else ""

    def call(self, source: str, function: str, arguments: tuple[Any, ...], results: int, library: Library) -> Result:
        chunk = self._chunk(source)
        values = [self._to_lua(argument) for argument in arguments]
        self._library = library
        self._ends = time.monotonic() + SECONDS
        self._limit = self._lua.get_memory_used() + MEMORY
        self._lua.set_max_memory(self._limit)
        try:
            ok, first, second = self._run(chunk, function.encode(), results, *values)
        except _lua().LuaMemoryError as error:
            self.broken = True
            raise LuaError(_NO_MEMORY.decode()) from error
        finally:
            self._lua.set_max_memory(0)
        if not ok:
            self.broken = bool(second) or first == _NO_MEMORY
            raise LuaError(first.decode(errors="replace"))
        if self._lua.get_memory_used() > _TIDY:
            self._collect()
        return Result(tuple(first.decode().split(",")), _parsed(second))

    def _chunk(self, source: str) -> Any:
        chunk = self._chunks.get(source)
        if chunk is not None:
            return chunk
        problem = self.check(source)
        if problem:
            raise LuaError(problem)
        chunk = self._compile(with_ordered_tables(source).encode())
        if isinstance(chunk, tuple):  # a script that is at some limit of the compiler's already
            chunk = self._compile(source.encode())
        return self._chunks.put(source, chunk)

    def _to_lua(self, value: Any) -> Any:
        plain = to_plain(value)
        return self._lua.table_from(plain, recursive=True) if isinstance(plain, dict | list) else plain

    # called by scripts

    def _left(self) -> float:
        return self._ends - time.monotonic()

    def _from_script(self, name: bytes, arguments: bytes) -> tuple[bool, Any]:
        """Return a function of the library; errors are values, so that no script gets hold of an exception."""
        used = self._lua.get_memory_used()
        if used > self._limit + _SLACK:
            return False, _NO_MEMORY
        self._lua.set_max_memory(0)
        try:
            return True, self._to_lua(self._library.call(name.decode(), _parsed(arguments)))
        except (LibraryError, InterpreterError) as error:
            return False, str(error).encode()
        finally:
            self._lua.set_max_memory(max(self._limit, self._lua.get_memory_used() + _SLACK))


def _parsed(text: bytes) -> list[Any]:
    try:
        values: list[Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            values = orjson.loads(text.decode(errors="replace"))
        except orjson.JSONDecodeError as error:
            raise LuaError(f"cannot read what the script made: {error}") from error
    return values


def _no_attributes(_obj: Any, _name: Any, _is_setting: bool) -> Any:
    raise AttributeError("no access")


def to_plain(value: Any) -> Any:
    """JSON data as Lua can take it: text as bytes, no nulls, numbers that fit."""
    convert = _CONVERSIONS.get(type(value))
    if convert is None and isinstance(value, dict):  # an object of a cache
        convert = _CONVERSIONS[dict]
    if convert is None:
        raise LuaError(f"cannot give a value of type {type(value).__name__} to a script")
    return convert(value)


def _number(value: int) -> int | float:
    return value if -(2**53) <= value <= 2**53 else float(value)


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    str: lambda text: text.encode("utf-8", "replace"),
    bool: lambda value: value,
    int: _number,
    float: lambda value: value,
    type(None): lambda value: value,
    dict: lambda fields: {key.encode(): to_plain(value) for key, value in fields.items() if value is not None},
    list: lambda items: [to_plain(item) for item in items if item is not None],
    tuple: lambda items: [to_plain(item) for item in items if item is not None],
}
