"""A tiny command interpreter: what `kubectl exec` finds inside a simulated container.

It works on a `Machine`, a description of the container (environment, files, configured replies), and talks through an
`Io`; it knows nothing of pods or the network. What is in no table does not exist there: exit code 127.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from karmada.kube.sim.kubelet.machine import MISUSED, NOT_FOUND, Io, Machine, Session, TerminalIo
from karmada.kube.sim.kubelet.programs import PROGRAMS, Program, printenv, true
from karmada.kube.sim.kubelet.shell_grammar import ScriptError, Simple, expand, parse

SHELLS = ("sh", "bash", "ash", "dash")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.S)


async def execute(machine: Machine, command: list[str], io: Io) -> int:
    """What exec does: run one program, which may be a shell with a script; its exit code."""
    return await _run(Session.of(machine), command, io, direct=True)


async def interactive(machine: Machine, io: TerminalIo) -> int:
    """A shell at a terminal: read and run line by line, with a prompt, until the end of input or `exit`."""
    session = Session.of(machine)
    while True:
        await io.out(f"{session.directory} # ".encode())
        line = await io.read()
        if not line:
            return session.last
        try:
            session.last = await io.attend(_script(session, line.decode(errors="replace"), io))
        except Exit as ended:
            return ended.code


def is_shell(machine: Machine, command: list[str]) -> bool:
    """A shell without a script, which would read from the terminal."""
    wants = len(command) == 1 and posixpath.basename(command[0]) in SHELLS
    return wants and machine.reply(command[0]) is None


class Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


Sink = Callable[[bytes], Awaitable[None]]


async def _nowhere(_data: bytes) -> None:
    return None


@dataclass(slots=True)
class _Piped:
    """An Io whose ends may be elsewhere: in a pipe, in the other stream, or nowhere."""

    base: Io
    stdin: bytes | None
    out_to: Sink
    err_to: Sink

    async def read(self) -> bytes:
        if self.stdin is None:
            return await self.base.read()
        data, self.stdin = self.stdin, b""
        return data

    async def out(self, data: bytes) -> None:
        await self.out_to(data)

    async def err(self, data: bytes) -> None:
        await self.err_to(data)

    async def sleep(self, seconds: float) -> None:
        await self.base.sleep(seconds)


# scripts


async def _script(session: Session, text: str, io: Io) -> int:
    try:
        commands = parse(text)
    except ScriptError as error:
        await io.err(f"sh: {error}\n".encode())
        return 1 if str(error).startswith("can't create") else MISUSED
    piped: bytes | None = None
    skipping = False
    for index, command in enumerate(commands):
        if command.joint != "|":
            skipping = (command.joint == "&&" and session.last != 0) or (command.joint == "||" and session.last == 0)
            piped = None
        if skipping:
            continue
        into_pipe = index + 1 < len(commands) and commands[index + 1].joint == "|"
        try:
            piped, session.last = await _simple(session, command, io, piped, into_pipe)
        except ScriptError as error:  # what its variables held
            await io.err(f"sh: {error}\n".encode())
            return MISUSED
        await asyncio.sleep(0)  # a long script must not hold up other clusters
    return session.last


async def _simple(session: Session, command: Simple, io: Io, stdin: bytes | None, into_pipe: bool) -> tuple[bytes, int]:
    """What it put into the pipe, and its exit code."""
    gathered = bytearray()

    async def gather(data: bytes) -> None:
        gathered.extend(data)

    out: Sink = gather if into_pipe else io.out
    err: Sink = {"null": _nowhere, "out": out}.get(command.err, io.err)
    out = {"null": _nowhere, "err": err}.get(command.out, out)
    words = expand(command.words, lambda name: _lookup(session, name))
    code = await _assign_or_run(session, words, _Piped(io, stdin, out, err)) if words else 0
    return bytes(gathered), code


async def _assign_or_run(session: Session, words: list[str], io: Io) -> int:
    own, words = _assignments(words)
    if not words:
        session.env |= own
        return 0
    if not own:
        return await _run(session, words, io)
    inner = session.child()
    inner.env |= own
    return await _run(inner, words, io)


def _assignments(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The a=b in front of a command, and the command."""
    own: dict[str, str] = {}
    while words and (match := _ASSIGNMENT.fullmatch(words[0])):
        own[match[1]] = match[2]
        words = words[1:]
    return own, words


def _lookup(session: Session, name: str) -> str:
    arguments = session.arguments
    if name.isdigit():
        return arguments[int(name)] if int(name) < len(arguments) else ""
    special = {"?": str(session.last), "$": "1", "#": str(max(0, len(arguments) - 1)), "@": " ".join(arguments[1:])}
    special["*"] = special["@"]
    return special[name] if name in special else session.env.get(name, "")


# commands


async def _run(session: Session, words: list[str], io: Io, *, direct: bool = False) -> int:
    """`direct`: no shell stands between, so there are only programs."""
    reply = session.machine.reply(" ".join(words))
    if reply is not None:
        if reply.delay:
            await io.sleep(reply.delay)
        await io.out(reply.stdout)
        await io.err(reply.stderr)
        return reply.code
    name = posixpath.basename(words[0])
    program = _STARTERS.get(name) or PROGRAMS.get(name) or (None if direct else _BUILT_IN.get(name))
    if program is not None:
        return await program(session, words[1:], io)
    if direct:
        why = f'exec: "{words[0]}": executable file not found in $PATH'
        await io.err(f"OCI runtime exec failed: exec failed: unable to start container process: {why}\n".encode())
    else:
        await io.err(f"sh: {words[0]}: not found\n".encode())
    return NOT_FOUND


async def _env(session: Session, arguments: list[str], io: Io) -> int:
    """Show the environment, or run something in a changed one."""
    own, command = _assignments(arguments)
    inner = session.child()
    inner.env |= own
    return await _run(inner, command, io, direct=True) if command else await printenv(inner, [], io)


async def _shell(session: Session, arguments: list[str], io: Io) -> int:
    inner = session.child()
    while arguments and arguments[0].startswith("-") and "c" not in arguments[0]:
        arguments = arguments[1:]
    try:
        if not arguments:
            return await _from_input(inner, io)
        if arguments[0].startswith("-"):
            if len(arguments) < 2:
                await io.err(b"sh: -c requires an argument\n")
                return MISUSED
            inner.arguments = arguments[2:]
            return await _script(inner, arguments[1], io)
        content = inner.machine.files.get(inner.path(arguments[0]))
        if content is None:
            await io.err(f"sh: can't open '{arguments[0]}': No such file or directory\n".encode())
            return MISUSED
        inner.arguments = arguments
        return await _script(inner, content.decode(errors="replace"), io)
    except Exit as ended:
        return ended.code


async def _from_input(session: Session, io: Io) -> int:
    """A script that comes through stdin, run line by line as it comes."""
    rest = b""
    while data := await io.read():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            await _script(session, line.decode(errors="replace"), io)
    if rest:
        await _script(session, rest.decode(errors="replace"), io)
    return session.last


async def _exit(session: Session, arguments: list[str], io: Io) -> int:
    if arguments and not arguments[0].isdigit():
        await io.err(f"sh: exit: Illegal number: {arguments[0]}\n".encode())
        raise Exit(MISUSED)
    raise Exit(int(arguments[0]) & 0xFF if arguments else session.last)


async def _export(session: Session, arguments: list[str], _io: Io) -> int:
    for text in arguments:
        session.env |= _assignments([text])[0]
    return 0


async def _cd(session: Session, arguments: list[str], io: Io) -> int:
    wanted = arguments[0] if arguments else session.env.get("HOME", "/")
    target = session.path(wanted)
    if target not in session.machine.all_directories():
        await io.err(f"sh: cd: can't cd to {wanted}: No such file or directory\n".encode())
        return MISUSED
    session.directory = target
    return 0


_STARTERS: dict[str, Program] = {"env": _env, **dict.fromkeys(SHELLS, _shell)}
"""Programs that start others."""
_BUILT_IN: dict[str, Program] = {"exit": _exit, "export": _export, "cd": _cd, ":": true}
"""What only exists inside a shell."""
