"""How long a container's command would run and how it would end, for the few that can be predicted.

These are sleep, true, false and exit, alone or in a script without control flow, and servers, which run until they are
stopped. A script whose end depends on what cannot be known (a condition, a substitution, the result of a program) has
no prediction. A shell with a stdin and no script runs until somebody has attached and left.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from karmada.kube.objects.types import Obj

_SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_TOKEN = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|&&|\|\||[;\n]|.", re.DOTALL)
_SEPARATORS = frozenset(("&&", "||", ";", "\n"))
_CONTROL = re.compile(
    r"(if|then|else|elif|fi|for|while|until|do|done|case|esac|function|exec|eval|trap|wait|return)\b|[({!\[]"
)
_EXPANDED = re.compile(r"`|\$\(|(?<![&>])&(?![&>])|\|")
_SLEEP = re.compile(r"sleep\s+([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_EXIT = re.compile(r"exit\s+([0-9]{1,3})")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SUCCEEDING = frozenset(("true", ":", "echo", "printf", "date", "hostname", "pwd", "env", "set", "export", "id"))
_SERVERS = frozenset(
    (
        "pause",
        "netexec",
        "nettest",
        "serve-hostname",
        "test-webserver",
        "webhook",
        "porter",
        "guestbook",
        "grpc-health-checking",
    )
)
"""Commands of the agnhost image that serve until they are stopped."""


class PredictedRun(NamedTuple):
    seconds: float
    exit_code: int


FOREVER = PredictedRun(math.inf, 0)


def predicted_run(container: Obj) -> PredictedRun | None:
    """None when it cannot be predicted."""
    words = words_of(container)
    if reads_stdin(container) or _serves(container, words):
        return FOREVER
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    if program not in _SHELLS:
        return _program(" ".join([program, *words[1:]]))
    if len(words) > 2 and words[1].startswith("-") and words[1].endswith("c"):
        return _script(words[2])
    return None


def words_of(container: Obj) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def reads_stdin(container: Obj) -> bool:
    """It would read commands from its stdin: a shell without a script, or whatever the image starts by itself."""
    words = words_of(container)
    shell = not words or (len(words) == 1 and words[0].rpartition("/")[2] in _SHELLS)
    return shell and bool(container.get("stdin"))


def serves_hostname(pod: Obj) -> bool:
    """One of its containers is a web server that responds with the pod's name."""
    return any("serve-hostname" in words_of(container) for container in (pod.get("spec") or {}).get("containers") or ())


def _serves(container: Obj, words: list[str]) -> bool:
    image = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    if image == "pause":
        return not words or words == ["/pause"]
    if image != "agnhost":
        return False
    arguments = words[1:] if words and words[0].rpartition("/")[2] == "agnhost" else words
    return not arguments or arguments[0] in _SERVERS


def _program(line: str) -> PredictedRun | None:
    sleep = _SLEEP.fullmatch(line)
    if sleep:
        return PredictedRun(_seconds(sleep), 0)
    return PredictedRun(0.0, int(line == "false")) if line in ("true", "false") else None


def _script(text: str) -> PredictedRun | None:
    seconds, code, predicted = 0.0, 0, False
    unknown = False
    for operator, command in _commands(text):
        if operator in ("&&", "||"):
            if unknown:
                return None
            if (operator == "&&") != (code == 0):
                continue
        if _CONTROL.match(command) or _EXPANDED.search(command):
            return None
        sleep, leave, unknown = _SLEEP.fullmatch(command), _EXIT.fullmatch(command), False
        if leave:
            return PredictedRun(seconds, int(leave[1]) & 255)
        if command.split()[0] == "exit":
            return None
        if sleep:
            seconds, code = seconds + _seconds(sleep), 0
        else:
            code, unknown = int(command == "false"), command != "false" and command.split()[0] not in _SUCCEEDING
        predicted = predicted or bool(sleep) or command in ("true", "false")
    return PredictedRun(seconds, code) if predicted else None


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Every command with the operator before it; operators in quotes are none."""
    operator, command = ";", ""
    for token in _TOKEN.findall(text):
        if token not in _SEPARATORS:
            command += token
            continue
        if command.strip():
            yield operator, command.strip()
            operator, command = token, ""
        elif token in ("&&", "||"):
            operator = token
    if command.strip():
        yield operator, command.strip()


def _seconds(sleep: re.Match[str]) -> float:
    return float(sleep[1]) * _UNITS[sleep[2]]
