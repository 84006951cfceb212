"""Starting and ending operating system processes, so that none outlives the simulator.

A process is the leader of a session of its own, so that it and its children get the same signals, and the kernel kills
it when the simulator dies. What it started may stay behind: that is found by its session, which a file records, and
killed at the next start. A session's number is not used again while it has members, but later it may be: a record does
not count if a process of that number began at another time.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from karmada.kube.runtime.logging import get_logger

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_SESSION, _START_TIME = 3, 19
"""Fields of /proc/<pid>/stat after the command's name."""
KILL_SECONDS = 2.0
"""How long a process that was killed, or that left its session, may keep the pipes."""
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


async def spawn_at_terminal(
    argv: Sequence[str], env: Mapping[str, str], directory: Path, other_side: int, terminal: Path
) -> asyncio.subprocess.Process:
    """Start a program whose input and output are a terminal, of which `other_side` is open; OSError."""
    return await asyncio.create_subprocess_exec(
        *argv,
        env=dict(env),
        cwd=directory,
        stdin=other_side,
        stdout=other_side,
        stderr=other_side,
        start_new_session=True,
        preexec_fn=partial(_take_terminal, terminal),
    )


def _take_terminal(path: Path) -> None:
    """Take the terminal, in the child before the program: a session's leader gets the one it opens, and its signals.

    Event loops differ in whether the session is new by now.
    """
    _die_with_parent()
    with contextlib.suppress(PermissionError):
        os.setsid()
    os.close(os.open(path, os.O_RDWR))


def _die_with_parent() -> None:
    """Prepare the child before the program runs."""
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
            await exited(process)
    except TimeoutError:
        send(process.pid, signal.SIGKILL)
    await finished(process)


async def exited(process: asyncio.subprocess.Process) -> None:
    """Wait until the process itself has ended; Process.wait also waits for all who have its pipes."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def finished(process: asyncio.subprocess.Process) -> int:
    """Wait until it has ended, and kill what it started; how it ended."""
    await exited(process)
    send(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(KILL_SECONDS):
            await process.wait()
    return process.returncode if process.returncode is not None else -signal.SIGKILL


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
            if _began(found.pid) in (None, found.began):
                for pid in _members(found.pid):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        path.unlink(missing_ok=True)
    return killed


def _members(session: int) -> list[int]:
    """Return the processes of a session."""
    running = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return [pid for pid in running if _field(pid, _SESSION) == session]


def _began(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine did; None if it has ended."""
    return _field(pid, _START_TIME)


def _field(pid: int, number: int) -> int | None:
    """Return a field of a process that runs; a zombie counts as gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[number])
