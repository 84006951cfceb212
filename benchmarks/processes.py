"""Processes that are measured: started, watched through /proc, and stopped.

CPU and memory are those of a process with all its children (a store's helper is part of what a server costs). What is
measured in this process itself is counted without children: those have names of their own.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.scenario import Use

_TICKS = os.sysconf("SC_CLK_TCK")
_END_SECONDS = 30.0
_LOG_LINES = 20
_QUIET_SHARE = 0.05
"""A process that uses no more of a core than this is at rest."""
_LOOK_SECONDS = 0.5
CLIENT = "client"
CONTROL_PLANE = "control plane"
MEMBERS = "members"


class DidNotStart(RuntimeError):
    """With the end of what it had to say."""


@contextmanager
def started(*arguments: str, says: str, log: Path, core: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """`python -m ARGUMENTS`, once it has said a line with `says` in it; stopped at the end."""
    with log.open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
        )
    assert process.stdout is not None
    try:
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        line = process.stdout.readline()
        if says not in line:
            raise DidNotStart(f"{arguments[0]} did not start: {line!r}\n{tail(log)}")
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-_LOG_LINES:]) if log.exists() else ""


# what they use


def cpu_seconds(pid: int) -> float:
    """What a process and its children have used so far, those that it has waited for included; of this one, itself."""
    if pid == os.getpid():
        return time.process_time()
    return sum(_ticks(one) for one in tree(pid)) / _TICKS


def _ticks(pid: int) -> int:
    fields = _read(pid, "stat").rsplit(")", 1)[-1].split()
    return sum(map(int, fields[11:15]))


def _read(pid: int, name: str) -> str:
    """Nothing of a process that has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def tree(pid: int) -> list[int]:
    """A process and all that came from it and live."""
    found = [pid]
    for parent in found:
        for thread in Path(f"/proc/{parent}/task").glob("*"):
            found += map(int, _read(parent, f"task/{thread.name}/children").split())
    return found


def children(pid: int, program: str) -> list[int]:
    """The processes among those of `tree` that run this program of ours."""
    return [one for one in tree(pid) if program in _read(one, "cmdline").split("\0")]


def memory(pid: int) -> tuple[float, float | None, float]:
    """Resident, proportional and greatest resident size in MiB, of a process and its children; of this one, itself."""
    pids = [pid] if pid == os.getpid() else tree(pid)
    states = [_amounts(_read(one, "status")) for one in pids]
    resident, peak = (sum(state.get(name, 0.0) for state in states) for name in ("VmRSS", "VmHWM"))
    try:
        return resident, sum(_amounts(_read(one, "smaps_rollup")).get("Pss", 0.0) for one in pids), peak
    except PermissionError:
        return resident, None, peak


def forget_peak(pid: int) -> None:
    """The greatest resident size is that from now on."""
    for one in tree(pid):
        Path(f"/proc/{one}/clear_refs").write_text("5")


def _amounts(text: str) -> dict[str, float]:
    """Lines of the form "Name:  123 kB", in MiB."""
    parts = (line.partition(":") for line in text.splitlines())
    return {name: int(value.split()[0]) / 1024 for name, _, value in parts if value.endswith(" kB")}


class Meter:
    """What processes use from now on, by name; this one may be among them."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def cpu(self) -> dict[str, float]:
        """CPU seconds since the beginning."""
        return {name: cpu_seconds(pid) - self._before[name] for name, pid in self._pids.items()}

    def use(self) -> dict[str, Use]:
        return {name: _use(cpu, self._pids[name]) for name, cpu in self.cpu().items()}


def _use(cpu: float, pid: int) -> Use:
    resident, proportional, peak = memory(pid)
    return Use(cpu_seconds=cpu, resident=resident, proportional=proportional, peak=peak)


async def until_at_rest(pids: Iterable[int], *, above: float = 0.0, seconds: float = 60.0) -> None:
    """Until processes have done next to nothing for a second, or that long; `above` is what they always use."""
    found = list(pids)
    deadline, calm, before = time.perf_counter() + seconds, 0, sum(map(cpu_seconds, found))
    while calm < 2 and time.perf_counter() < deadline:
        await asyncio.sleep(_LOOK_SECONDS)
        now = sum(map(cpu_seconds, found))
        calm = calm + 1 if now - before <= (above + _QUIET_SHARE) * _LOOK_SECONDS else 0
        before = now


async def at_rest(pids: Iterable[int], seconds: float) -> float:
    """How many cores processes use when there are no requests."""
    found = list(pids)
    before, since = sum(map(cpu_seconds, found)), time.perf_counter()
    await asyncio.sleep(seconds)
    return (sum(map(cpu_seconds, found)) - before) / (time.perf_counter() - since)
