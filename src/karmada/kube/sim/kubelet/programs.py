"""The programs of a simulated container that need no shell: echo, cat, env and a few more."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

from karmada.kube.objects.times import parse_duration
from karmada.kube.sim.kubelet.file_programs import FILE_PROGRAMS
from karmada.kube.sim.kubelet.machine import Io, Program, Session

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0", "a": "\a", "b": "\b"}


async def echo(_session: Session, arguments: list[str], io: Io) -> int:
    end, escapes = "\n", False
    while arguments and re.fullmatch("-[neE]+", arguments[0]):
        end = "" if "n" in arguments[0] else end
        escapes = "e" in arguments[0] or escapes
        arguments = arguments[1:]
    text = " ".join(arguments)
    await io.out(((_unescaped(text) if escapes else text) + end).encode())
    return 0


async def printf(_session: Session, arguments: list[str], io: Io) -> int:
    if not arguments:
        await io.err(b"printf: usage: printf FORMAT [ARGUMENT]...\n")
        return 1
    values = iter(arguments[1:])
    text = re.sub(r"%[sd%]", lambda match: "%" if match[0] == "%%" else next(values, ""), _unescaped(arguments[0]))
    await io.out(text.encode())
    return 0


async def cat(session: Session, arguments: list[str], io: Io) -> int:
    code = 0
    for name in arguments or ["-"]:
        if name == "-":
            while data := await io.read():
                await io.out(data)
            continue
        content = session.machine.files.read(session.path(name))
        if content is not None:
            await io.out(content)
            continue
        directory = session.machine.files.is_directory(session.path(name))
        why = "read error: Is a directory" if directory else f"can't open '{name}': No such file or directory"
        await io.err(f"cat: {why}\n".encode())
        code = 1
    return code


async def printenv(session: Session, arguments: list[str], io: Io) -> int:
    for name in arguments or session.env:
        if name in session.env:
            await io.out(f"{session.env[name]}\n".encode() if arguments else f"{name}={session.env[name]}\n".encode())
    return 0 if all(name in session.env for name in arguments) else 1


async def hostname(session: Session, _arguments: list[str], io: Io) -> int:
    await io.out(f"{session.machine.hostname}\n".encode())
    return 0


async def true(_session: Session, _arguments: list[str], _io: Io) -> int:
    return 0


async def false(_session: Session, _arguments: list[str], _io: Io) -> int:
    return 1


async def sleep(session: Session, arguments: list[str], io: Io) -> int:
    total = 0.0
    for text in arguments:
        try:
            total += float("inf") if text in ("inf", "infinity") else _seconds(text)
        except ValueError:
            await io.err(f"sleep: invalid number '{text}'\n".encode())
            return 1
    if not arguments:
        await io.err(b"sleep: missing operand\n")
        return 1
    if total == float("inf") and not session.course.predicting:
        await asyncio.get_running_loop().create_future()
    await io.sleep(total)
    return 0


async def pwd(session: Session, _arguments: list[str], io: Io) -> int:
    await io.out(f"{session.directory}\n".encode())
    return 0


async def ls(session: Session, arguments: list[str], io: Io) -> int:
    code, files = 0, session.machine.files
    for name in [text for text in arguments if not text.startswith("-")] or ["."]:
        path = session.path(name)
        if files.is_directory(path):
            await io.out("".join(f"{entry}\n" for entry in files.names(path)).encode())
        elif files.is_file(path):
            await io.out(f"{name}\n".encode())
        else:
            await io.err(f"ls: {name}: No such file or directory\n".encode())
            code = 1
    return code


async def date(session: Session, _arguments: list[str], io: Io) -> int:
    moment = datetime.fromtimestamp(session.machine.now(), UTC)
    await io.out(moment.strftime("%a %b %e %H:%M:%S UTC %Y\n").encode())
    return 0


async def whoami(session: Session, _arguments: list[str], io: Io) -> int:
    if session.machine.user:
        await io.err(f"whoami: unknown uid {session.machine.user}\n".encode())
        return 1
    await io.out(b"root\n")
    return 0


async def identity(session: Session, arguments: list[str], io: Io) -> int:
    user = session.machine.user
    full = f"uid={user} gid={user}" if user else "uid=0(root) gid=0(root) groups=0(root)"
    await io.out(f"{user if '-u' in arguments else full}\n".encode())
    return 0


PROGRAMS: dict[str, Program] = {
    "echo": echo,
    "printf": printf,
    "cat": cat,
    "printenv": printenv,
    "hostname": hostname,
    "true": true,
    "false": false,
    "sleep": sleep,
    "pwd": pwd,
    "ls": ls,
    "date": date,
    "whoami": whoami,
    "id": identity,
    **FILE_PROGRAMS,
}


def _seconds(text: str) -> float:
    """Return seconds: 5, 0.5, 10s, 1m, 2h."""
    try:
        return float(text)
    except ValueError:
        return parse_duration(text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), text)
