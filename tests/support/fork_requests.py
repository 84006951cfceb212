"""What is sent to the process that forks programs: which one, and what its process begins with."""

from __future__ import annotations

import inspect
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 1_000_000
"""Of a request: arguments and environment."""
MOST_DESCRIPTORS = 32
POPEN = [*inspect.signature(subprocess.Popen._execute_child).parameters][1:]  # type: ignore[attr-defined]
"""Names of what Popen gives to the method that starts the process."""


@dataclass(frozen=True)
class Start:
    """A program and what its process begins with; `targets` are the numbers that its descriptors shall have."""

    module: str
    arguments: list[str]
    env: dict[str, str]
    cwd: str
    umask: int
    start_new_session: bool
    process_group: int
    targets: list[int]
    name: str = ""
    """By which it was started; its file if it is empty."""
    preexec: str = ""
    """A function that was pickled, in hexadecimal digits."""


def program_of(command: Sequence[str]) -> tuple[str, list[str]] | None:
    """The module and its arguments, for `python [-P] -m karmada.…`, and for benchmarks."""
    words = [os.fspath(word) for word in command]
    if words[:1] != [sys.executable]:
        return None
    del words[: 2 if words[1:2] == ["-P"] else 1]
    return (words[1], words[2:]) if words[:1] == ["-m"] and words[1].startswith(("karmada.", "benchmarks.")) else None


def start_of(*popen: Any) -> tuple[Start, list[int]]:
    """What Popen was given for a program of ours, and the descriptors in the order of their targets."""
    given = dict(zip(POPEN, popen, strict=True))
    program = program_of(given["args"])
    assert program is not None
    streams = {0: given["p2cread"], 1: given["c2pwrite"], 2: given["errwrite"]}
    descriptors = {target: target if own == -1 else own for target, own in streams.items()}
    descriptors |= {descriptor: descriptor for descriptor in given["pass_fds"]}
    start = Start(
        *program,
        env=dict(os.environ if given["env"] is None else given["env"]),
        cwd=os.fspath(given["cwd"] or os.getcwd()),
        **{name: given[name] for name in ("umask", "start_new_session", "process_group")},
        targets=list(descriptors),
    )
    return start, list(descriptors.values())


def close_pipes(popen: subprocess.Popen[Any], *given: Any) -> None:
    """The child's ends, in the parent."""
    names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    ends = dict(zip(POPEN, given, strict=True))
    popen._close_pipe_fds(*(ends[name] for name in names))  # type: ignore[attr-defined]


def request_socket_pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST_BYTES)
    return ends
