"""How long a container's command would take, for the few that can be told by looking: sleep, true, false, exit.

A shell that was left its stdin and no script goes on until somebody has come and gone.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from karmada.kube.objects.types import Obj

_SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_PARTS = re.compile(r"&&|;|\n")
_SLEEP = re.compile(r"sleep\s+([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_EXIT = re.compile(r"exit\s+([0-9]{1,3})")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class Course(NamedTuple):
    seconds: float
    exit_code: int


def course_of(container: Obj) -> Course | None:
    """None when nothing in the command tells."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if talks(container):
        return Course(math.inf, 0)
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    if program in _SHELLS and len(words) > 2 and words[1].startswith("-") and words[1].endswith("c"):
        return _script(words[2])
    return _script(" ".join([program, *words[1:]]))


def talks(container: Obj) -> bool:
    """It would do what it is told at its stdin: a shell without a script, or whatever the image starts by itself."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    shell = not words or (len(words) == 1 and words[0].rpartition("/")[2] in _SHELLS)
    return shell and bool(container.get("stdin"))


def _script(text: str) -> Course | None:
    seconds, code, told = 0.0, 0, False
    for part in _PARTS.split(text):
        word = part.strip()
        sleep, leave = _SLEEP.fullmatch(word), _EXIT.fullmatch(word)
        told = told or word in ("true", "false") or bool(sleep or leave)
        if sleep:
            seconds += float(sleep[1]) * _UNITS[sleep[2]]
        elif leave:
            return Course(seconds, int(leave[1]) & 255)
        elif word:
            code = 1 if word == "false" else 0
    return Course(seconds, code) if told else None
