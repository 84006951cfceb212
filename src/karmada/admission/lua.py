"""Whether a script is Lua 5.1. It is compiled and thrown away: nothing of it runs.

The library is loaded with the first script, which most processes never see.
"""

from __future__ import annotations

from importlib import import_module

_BYTECODE = "\x1b"


def lua_problem(script: str) -> str | None:
    """What is wrong with a script, "" when it compiles; None when no Lua is installed to tell."""
    if script.startswith(_BYTECODE):
        return "compiled chunks are not accepted, only source"
    try:
        lua = import_module("lupa.lua51")
    except ImportError:
        return None
    try:
        lua.LuaRuntime(register_eval=False, register_builtins=False).compile(script)
    except lua.LuaSyntaxError as error:
        return str(error)
    return ""
