"""The processes of a local environment: start, watch, stop and find them.

Each inherits two descriptors for life: the lock of its pid file, and one end of a pipe. A line in the pipe means that
it serves, the end of the pipe that it has exited; so nothing is polled. A process that must end with us gets a signal
from the kernel when we end, even if we are killed (Linux only). Output goes to a log per program, whose last lines are
shown when the program exits by itself.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from karmada.kube.runtime.log_file import MAX_BYTES, VARIABLE, open_log, rotate
from karmada.local.folder import ETCD, Choices, Folder, Refused, shown
from karmada.local.marks import Holder, Mark, Taken

KARMADA = "karmada"
SIM = "karmada-sim"
STOP_SECONDS = 20.0
_KILL_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1
_TAIL_BYTES = 20_000
_POLL_SECONDS = 0.02
_LINE_BYTES = 4096
"""Bytes that a pipe takes in one piece."""


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: list[str]
    signals_ready: bool = True
    """It supports --ready-fd; one that does not counts as serving when it runs."""


def names_of(choices: Choices) -> list[str]:
    """Return all programs of the environment."""
    return [KARMADA, SIM, *([ETCD] if choices.storage == ETCD else [])]


def stop_order(choices: Choices | None) -> list[str]:
    """Clients before the servers they use: agents, which the simulator runs, give up leases in the control plane."""
    pull = choices is not None and choices.pull_members > 0
    return [SIM, KARMADA, ETCD] if pull else [KARMADA, SIM, ETCD]


def module(name: str, of: str, *arguments: str) -> Program:
    """Return a Python module of ours, run by this interpreter."""
    return Program(name, [sys.executable, "-P", "-m", of, *arguments])


def mark_of(folder: Folder, name: str) -> Mark:
    return Mark(folder.run / f"{name}.pid")


def found(folder: Folder) -> dict[str, Holder]:
    """Return the running programs of the folder."""
    holders = {name: mark_of(folder, name).holder() for name in (KARMADA, SIM, ETCD)}
    return {name: holder for name, holder in holders.items() if holder is not None}


class Running:
    """A process that was started here. `ready` and `ended` are futures of this event loop."""

    def __init__(self, program: Program, process: subprocess.Popen[bytes], life: int, log: Path, begin: int) -> None:
        self.program = program
        self.log = log
        self._process = process
        self._life = life
        self._begin = begin
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self.addresses: dict[str, str] = {}
        """Addresses that it serves besides its API, as it reports with its readiness."""
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(life, self._readable)
        if not program.signals_ready:
            self.ready.set_result(None)

    def _readable(self) -> None:
        line = os.read(self._life, _LINE_BYTES)
        if line:
            self.addresses |= dict(word.split("=", 1) for word in line.decode().split() if "=" in word)
            if not self.ready.done():
                self.ready.set_result(None)
            return
        self.let_go()
        self.ended.set_result(None)

    async def served(self) -> None:
        """Wait until it serves."""
        await asyncio.shield(self.ready)

    def let_go(self) -> None:
        """Stop watching; the process keeps running."""
        if self._life >= 0:
            self._loop.remove_reader(self._life)
            os.close(self._life)
            self._life = -1

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, _KILL_SECONDS)):
            if not self.ended.done():
                self._process.send_signal(number)
                await asyncio.wait({self.ended}, timeout=patience)
        self._process.wait(_KILL_SECONDS)

    @property
    def code(self) -> int:
        """Return the exit code of one that has ended; that of a signal is negative."""
        return self._process.wait(_KILL_SECONDS)

    def exit_report(self) -> str:
        """Return how it ended, and the last lines of its log."""
        code = self.code
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        last = "\n".join(f"  {line}" for line in tail(self.log, self._begin))
        said = f"; the last lines of {shown(self.log)}:\n{last}" if last else f" without output ({shown(self.log)})"
        return f"{self.program.name} {how}{said}"


def start(folder: Folder, program: Program, *, detached: bool) -> Running:
    """Start it without waiting; Refused when it runs already."""
    try:
        lock = mark_of(folder, program.name).take()
    except Taken:
        raise Refused(f"{program.name} runs already in {shown(folder.root)}") from None
    life, ready = os.pipe()
    path = folder.log(program.name)
    log = _open_log(path)
    begin = os.fstat(log).st_size
    command = [*program.command, *(["--ready-fd", str(ready)] if program.signals_ready else [])]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock, ready),
            env={**os.environ, VARIABLE: str(path)},
            start_new_session=True,  # an interrupt on the terminal is for us, who stop them in order
            preexec_fn=None if detached else _leash(),
        )
        Mark.write(lock, Holder(process.pid, detached))
    except OSError as error:
        os.close(life)
        raise Refused(f"{program.name} cannot be started: {error}") from error
    finally:
        for descriptor in (lock, ready, log):
            os.close(descriptor)
    return Running(program, process, life, path, begin)


def _leash() -> Callable[[], None] | None:
    """In the child, before exec: end when the parent ends."""
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def hold() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent ended before the signal was requested
            os._exit(1)

    return hold


def _open_log(path: Path) -> int:
    """Open for appending; a large log is rotated first, and later by the program itself."""
    if path.exists() and path.stat().st_size > MAX_BYTES:
        rotate(path)
    return open_log(path)


def tail(path: Path, begin: int = 0, lines: int = 15) -> list[str]:
    """Return the last lines from an offset on; the offset is of another file if this one is shorter."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(begin if begin <= end else 0, end - _TAIL_BYTES))
        return file.read().decode(errors="replace").splitlines()[-lines:]


async def stop_found(folder: Folder, names: list[str], seconds: float = STOP_SECONDS) -> list[str]:
    """Stop programs that were started elsewhere, in order; returns those that ran."""
    return [name for name in names if await end(mark_of(folder, name), seconds)]


async def end(mark: Mark, seconds: float = STOP_SECONDS) -> bool:
    """Terminate the process that holds the mark, if there is one."""
    if mark.holder() is None:
        return False
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, _KILL_SECONDS)):
        if await _ended(mark, number, patience):
            return True
    raise Refused(f"process {mark.holder()} does not end")


async def _ended(mark: Mark, number: int, seconds: float) -> bool:
    loop = asyncio.get_running_loop()
    limit, signalled = loop.time() + seconds, False
    while loop.time() < limit:
        holder = mark.holder()
        if holder is None:
            return True
        if holder.pid and not signalled:
            _signal(holder.pid, number)
            signalled = True
        await asyncio.sleep(_POLL_SECONDS)
    return False


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has just ended; the mark shows that
