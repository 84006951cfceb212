"""Whether a script is Lua. It is compiled and thrown away: nothing of it runs.

The library is loaded with the first script, which most processes never see.
"""

from __future__ import annotations


def lua_problem(script: str) -> str | None:
    """Return what is wrong with a script, "" when it compiles; None when no Lua is installed to check it."""
    from karmada.interpreter.lua.script import LuaScript

    try:
        return LuaScript(script).problem()
    except ImportError:
        return None
