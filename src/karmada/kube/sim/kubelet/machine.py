"""The inside of a simulated container as plain data, and the streams of its programs."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

NOT_FOUND, MISUSED, INTERRUPTED = 127, 2, 130


@dataclass(frozen=True, slots=True)
class Reply:
    """The configured output and exit code of a command."""

    stdout: bytes = b""
    stderr: bytes = b""
    code: int = 0
    delay: float = 0.0


def _no_reply(_line: str) -> Reply | None:
    return None


@dataclass(slots=True)
class Machine:
    hostname: str
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    """By absolute path."""
    directories: set[str] = field(default_factory=set)
    """Those that may be empty; all that lead to files are there anyway."""
    working_directory: str = "/"
    user: int = 0
    reply: Callable[[str], Reply | None] = _no_reply
    """The configured response to a command line, if there is one."""
    now: Callable[[], float] = lambda: 0.0

    def all_directories(self) -> set[str]:
        found = {"/", "/tmp", *self.directories}
        for path in (*self.files, *self.directories):
            while path != "/":
                path = posixpath.dirname(path)
                found.add(path)
        return found

    def inside(self, directory: str) -> list[str]:
        """The names in a directory, sorted."""
        prefix = directory.rstrip("/") + "/"
        paths = (*self.files, *self.all_directories())
        return sorted({path[len(prefix) :].split("/")[0] for path in paths if path.startswith(prefix)} - {""})


class Io(Protocol):
    async def read(self) -> bytes:
        """The next of stdin; nothing at the end. From a terminal, a line."""

    async def out(self, data: bytes) -> None: ...

    async def err(self, data: bytes) -> None: ...

    async def sleep(self, seconds: float) -> None: ...


class TerminalIo(Io, Protocol):
    async def attend(self, work: Awaitable[int]) -> int:
        """Run a command that Ctrl-C interrupts; its exit code."""


@dataclass(slots=True)
class Session:
    """The state of one shell, or of the one program that was started without any."""

    machine: Machine
    env: dict[str, str]
    directory: str
    arguments: list[str] = field(default_factory=list)
    last: int = 0
    """The exit code of the last command."""

    @classmethod
    def of(cls, machine: Machine) -> Session:
        return cls(machine, dict(machine.env), machine.working_directory or "/")

    def child(self) -> Session:
        return Session(self.machine, dict(self.env), self.directory)

    def path(self, text: str) -> str:
        return posixpath.normpath(posixpath.join(self.directory, text))
