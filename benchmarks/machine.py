"""The machine and what runs on it: figures mean something only together with these.

`busy` looks at the processors for a moment: the load average remembers a minute and so says "busy" for some time after
it no longer is, and the other way round. What others use while we measure is taken from the same counters.
"""

from __future__ import annotations

import os
import platform
import resource
import sqlite3
import ssl
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

_LIBRARIES = ("aiohttp", "uvloop", "orjson", "msgspec", "lupa", "numpy", "cryptography")
_IDLE_SHARE = 0.05
"""Of the machine; more than that, and others are at work."""
_IDLE_LOAD = 0.25
"""Load average for each core; more than that, and others were at work within the last minute."""
_LOOK_SECONDS = 1.0
_IN_MEMORY = ("tmpfs", "ramfs")


class Machine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    model: str
    cores: int
    memory: int
    """MiB"""
    kernel: str
    python: str
    versions: dict[str, str]
    commit: str
    filesystem: str
    """Of the folder that everything is stored in."""
    load: tuple[float, float, float]
    busy: float
    """Cores in use by others just before the run."""

    @property
    def warnings(self) -> list[str]:
        """What is wrong with measuring here and now."""
        found = []
        if self.busy > _IDLE_SHARE * self.cores:
            found.append(
                f"THE MACHINE IS NOT IDLE: others use {self.busy:.2f} of {self.cores} cores, load average "
                f"{self.load[0]:.2f}. The figures say little about speed."
            )
        elif self.load[0] > _IDLE_LOAD * self.cores:
            found.append(
                f"THE MACHINE WAS BUSY A MOMENT AGO: load average {self.load[0]:.2f}. If that was not you, "
                "look who it was before you believe the figures."
            )
        if self.filesystem in _IN_MEMORY:
            found.append(f"STORED IN MEMORY ({self.filesystem}): waiting for the disk costs nothing here.")
        return found


def look(folder: Path) -> Machine:
    """Takes a second, in which nothing else should be done. `folder` is where things will be stored."""
    before, since = busy_seconds(), time.perf_counter()
    time.sleep(_LOOK_SECONDS)
    busy = (busy_seconds() - before) / (time.perf_counter() - since)
    return Machine(
        model=_model(),
        cores=os.cpu_count() or 1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        kernel=platform.release(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions={
            "pykarmada": _version("pykarmada"),
            **{name: _version(name) for name in _LIBRARIES},
            "sqlite": sqlite3.sqlite_version,
            "openssl": ssl.OPENSSL_VERSION,
        },
        commit=_commit(),
        filesystem=filesystem_of(folder),
        load=os.getloadavg(),
        busy=max(busy, 0.0),
    )


def busy_seconds() -> float:
    """What all processors together have worked since the machine started."""
    first = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    user, nice, system, _idle, _waiting, irq, soft_irq = map(int, first[1:8])
    return (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """What this process and those that it has waited for have used."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


class Others:
    """How many cores others used between `Others()` and `cores()`. What we started must have ended in between."""

    def __init__(self) -> None:
        self._since, self._busy, self._own = time.perf_counter(), busy_seconds(), own_seconds()

    def cores(self) -> float:
        seconds = time.perf_counter() - self._since
        theirs = (busy_seconds() - self._busy) - (own_seconds() - self._own)
        return max(theirs / seconds, 0.0) if seconds > 0 else 0.0


def filesystem_of(folder: Path) -> str:
    """The type of the file system that is mounted nearest above."""
    place, found = folder.resolve(), ("", "")
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mounted, kind, *_ = line.split()
        if len(mounted) >= len(found[0]) and place.is_relative_to(mounted):
            found = (mounted, kind)
    return found[1]


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    """Of the code that is measured; empty where it is no checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def require_linux() -> None:
    """The counters are Linux's."""
    if sys.platform != "linux":
        raise RuntimeError("measuring needs Linux: CPU and memory of processes are read from /proc")
