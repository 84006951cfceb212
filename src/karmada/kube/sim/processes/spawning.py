"""Starting and ending operating system processes, so that none outlives the simulator.

A process is the leader of a session of its own, so that it and its children get the same signals, and the kernel kills
it when the simulator dies. What it may have left is found by the file that records it, and killed at the next start:
a record counts only if the process began when the record says, since process ids are used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from karmada.kube.runtime.logging import get_logger

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_START_TIME = 19
"""The field of /proc/<pid>/stat after the command's name."""
KILL_SECONDS = 2.0
log = get_logger("processes")


class Record(msgspec.Struct, frozen=True):
    pid: int
    began: int


async def spawn(
    argv: Sequence[str], env: Mapping[str, str], directory: Path, *, stdin: bool = False
) -> asyncio.subprocess.Process:
    """Start a program with pipes for its output; OSError when it cannot be started."""
    return await asyncio.create_subprocess_exec(
        *argv,
        env=dict(env),
        cwd=directory,
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_die_with_parent,
    )


def _die_with_parent() -> None:
    """Runs in the child before the program."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(1)


def send(pid: int, number: signal.Signals) -> None:
    """To the process and those that it started; nothing if they have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


async def end(process: asyncio.subprocess.Process, grace: float) -> None:
    """SIGTERM, and SIGKILL after `grace` seconds; waits until it has ended."""
    if process.returncode is not None:
        return
    send(process.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(grace):
            await process.wait()
    except TimeoutError:
        send(process.pid, signal.SIGKILL)
        await process.wait()


def exit_code(returncode: int) -> int:
    """As a container reports it: 128 and the signal's number for one that was killed."""
    return returncode if returncode >= 0 else 128 - returncode


# what a simulator that was killed may have left


def record(path: Path, pid: int) -> None:
    began = _began(pid)
    if began is not None:
        path.write_bytes(msgspec.json.encode(Record(pid, began)))


def kill_left(folder: Path) -> int:
    """Kill the processes that records below this folder name; returns how many still ran."""
    killed = 0
    for path in folder.glob("*/containers/*/process.json"):
        with contextlib.suppress(ValueError, OSError):
            found = msgspec.json.decode(path.read_bytes(), type=Record)
            if _began(found.pid) == found.began:
                send(found.pid, signal.SIGKILL)
                killed += 1
        path.unlink(missing_ok=True)
    return killed


def _began(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine did; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[_START_TIME])
