"""How long a container runs and how it ends, as far as its image and command alone say it.

Servers run until they are stopped, and so does a shell with a stdin and no script, until somebody has attached and
left. The course of a script depends on its environment and files: script_runs finds it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from karmada.kube.objects.types import Obj

_SHELLS = frozenset(("sh", "bash", "ash", "dash"))
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


def runs_until_stopped(container: Obj) -> bool:
    return reads_stdin(container) or _serves(container, words_of(container))


def words_of(container: Obj) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def reads_stdin(container: Obj) -> bool:
    """Return whether it would read commands from stdin: a shell without a script, or the image's own program."""
    words = words_of(container)
    shell = not words or (len(words) == 1 and words[0].rpartition("/")[2] in _SHELLS)
    return shell and bool(container.get("stdin"))


def serves_hostname(pod: Obj) -> bool:
    """Return whether one of a pod's containers is a web server that responds with the pod's name."""
    return any("serve-hostname" in words_of(container) for container in (pod.get("spec") or {}).get("containers") or ())


def _serves(container: Obj, words: list[str]) -> bool:
    image = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    if image == "pause":
        return not words or words == ["/pause"]
    if image != "agnhost":
        return False
    arguments = words[1:] if words and words[0].rpartition("/")[2] == "agnhost" else words
    return not arguments or arguments[0] in _SERVERS
