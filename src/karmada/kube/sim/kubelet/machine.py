"""The inside of a simulated container as plain data, and the streams of its programs."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from karmada.kube.sim.kubelet.filesystem import CannotTell, FileSystem

NOT_FOUND, MISUSED, INTERRUPTED = 127, 2, 130
UNKNOWN = -1
"""The exit code of a program that is not simulated, where that is no error."""
MOST_STEPS = 10_000
"""Commands of one script, loops included."""


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
    files: FileSystem = field(default_factory=FileSystem.of)
    working_directory: str = "/"
    user: int = 0
    reply: Callable[[str], Reply | None] = _no_reply
    """The configured response to a command line, if there is one."""
    now: Callable[[], float] = lambda: 0.0


class Io(Protocol):
    async def read(self) -> bytes:
        """Return the next of stdin; nothing at the end. From a terminal, a line."""

    async def out(self, data: bytes) -> None: ...

    async def err(self, data: bytes) -> None: ...

    async def sleep(self, seconds: float) -> None: ...


class TerminalIo(Io, Protocol):
    async def attend(self, work: Awaitable[int]) -> int:
        """Run a command that Ctrl-C interrupts; its exit code."""


class OutOfSteps(CannotTell):
    """A script did more than any script may."""


@dataclass(slots=True)
class Course:
    """The run of one command of a user or one container, with all the shells that it starts."""

    predicting: bool = False
    """Programs that are not simulated have an unknown result; else they do not exist."""
    decided: bool = False
    """A program was run whose only purpose is its exit code."""
    steps: int = 0
    nested: int = 0
    """Commands in commands at this moment."""

    async def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise OutOfSteps("too many steps")
        if self.steps % 50 == 0:
            await asyncio.sleep(0)  # a long script must not hold up other clusters


@dataclass(slots=True)
class Session:
    """The state of one shell, or of the one program that was started without any."""

    machine: Machine
    env: dict[str, str]
    directory: str
    course: Course = field(default_factory=Course)
    arguments: list[str] = field(default_factory=list)
    last: int = 0
    """The exit code of the last command, or UNKNOWN."""
    depth: int = 0
    """Shells in shells."""
    stops_on_failure: bool = False
    """After `set -e`."""

    @classmethod
    def of(cls, machine: Machine, *, predicting: bool = False) -> Session:
        return cls(machine, dict(machine.env), machine.working_directory or "/", Course(predicting))

    def child(self) -> Session:
        """Return a subshell, or a program's environment: it begins like this one and leaves it as it is."""
        return replace(self, env=dict(self.env), depth=self.depth + 1)

    @property
    def status(self) -> int:
        """Return the exit code of the last command; CannotTell when it is unknown."""
        if self.last == UNKNOWN:
            raise CannotTell("the result of a program that is not simulated")
        return self.last

    def path(self, text: str) -> str:
        return posixpath.normpath(posixpath.join(self.directory, text))


Program = Callable[[Session, list[str], Io], Awaitable[int]]
"""(session, arguments, io) → exit code."""
