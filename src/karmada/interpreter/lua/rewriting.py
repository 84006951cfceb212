"""Tables that remember in which order their fields were made, as scripts expect of `pairs`.

Lua itself forgets. So every table constructor of a script is wrapped into a call of a function of the sandbox, which
gives the table a metatable that writes the order down. Braces mean nothing else in Lua, so tokens are enough to find
them: nothing is parsed. Only scripts that compile come here, and lines stay where they were.
"""

from __future__ import annotations

import re

ORDERED = "_karmada_ordered_table"
"""The wrapping function, a local of the chunk."""
_TOKEN = re.compile(
    r"""
      (?P<blank>\s+|--\[(?P<c>=*)\[.*?\](?P=c)\]|--[^\n]*)
    | (?P<string>\[(?P<s>=*)\[.*?\](?P=s)\]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<other>[=<>~]=|.)
    """,
    re.DOTALL | re.VERBOSE,
)
_KEYWORDS = frozenset((
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
))  # fmt: skip
_CALLABLE_ENDS = frozenset(")]}")
_FIELD_STARTS = frozenset("{,;")


def with_ordered_tables(source: str) -> str:
    """Return the script with its constructors wrapped. What runs it passes the wrapping function as `...`."""
    out = [f"local {ORDERED} = ...; "]
    open_: list[tuple[bool, list[str]]] = []
    before: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(source):
        text = match[0]
        if match["blank"] is not None:
            out.append(text)
            continue
        last = before[-1] if before else ("", "")
        if text == "{":
            is_argument = last[0] in ("name", "string") or last[1] in _CALLABLE_ENDS
            open_.append((is_argument, []))
            out.append(f"({ORDERED}({{" if is_argument else f"{ORDERED}({{")
        elif text == "}" and open_:
            is_argument, fields = open_.pop()
            order = "".join(f"{field}," for field in fields) if len(fields) > 1 else ""
            out.append("}" + (f",{{{order}}}" if order else "") + ("))" if is_argument else ")"))
        else:
            out.append(text)
            if text == "=" and open_:
                open_[-1][1].extend(_field(before))
        before.append((_kind(match), text))
        del before[:-4]
    return "".join(out)


def _kind(match: re.Match[str]) -> str:
    if match["name"] is not None:
        return "keyword" if match[0] in _KEYWORDS else "name"
    return "string" if match["string"] is not None else "other"


def _field(before: list[tuple[str, str]]) -> list[str]:
    """Return the field that an equals sign after these tokens gives a value to, as a text of Lua: `x =`, `["x"] =`."""
    kinds, texts = [kind for kind, _ in before], [text for _, text in before]
    if len(before) > 1 and kinds[-1] == "name" and texts[-2] in _FIELD_STARTS:
        return [f'"{texts[-1]}"']
    if len(before) == 4 and texts[1] == "[" and kinds[2] == "string" and texts[3] == "]" and texts[0] in _FIELD_STARTS:
        return [texts[2]] if "\n" not in texts[2] else []
    return []
