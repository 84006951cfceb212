"""Flags that users add to the command line of a component.

They arrive split at commas, as lists of flags do. `--key=a,b` is put together again, and one that a component has
anyway is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_FLAG: Final = re.compile(r"--[a-zA-Z][a-zA-Z0-9_-]*(=.*)?", re.DOTALL)


def joined(parts: Iterable[str]) -> list[str]:
    """Whole flags, of parts that were split at commas; ValueError says which part is wrong."""
    flags: list[str] = []
    for part in parts:
        if part != part.strip():
            raise ValueError(f'argument "{part}" is invalid: it has spaces at its start or end')
        if part.startswith("--"):
            flags.append(part)
        elif flags:
            flags[-1] += f",{part}"
        else:
            raise ValueError(f'argument "{part}" is invalid: no preceding --key found')
    for flag in flags:
        if not _FLAG.fullmatch(flag):
            raise ValueError(f"invalid argument: {flag}")
    return flags


def key_of(flag: str) -> str:
    return flag.partition("=")[0]


def command_line(usual: Sequence[str], extra: Iterable[str]) -> list[str]:
    """Return the program, its usual flags that are not replaced, then the extra ones in order of name.

    The last of a name counts.
    """
    replaced = {key_of(flag): flag for flag in extra}
    kept = [flag for flag in usual[1:] if key_of(flag) not in replaced]
    return [*usual[:1], *kept, *sorted(replaced.values())]
