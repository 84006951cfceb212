"""The programs of a simulated container that change, compare or count: touch, rm, mkdir, test, expr, wc, seq."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

from karmada.kube.sim.kubelet.arithmetic import NoValue, compute, number
from karmada.kube.sim.kubelet.filesystem import FileSystem, Refused
from karmada.kube.sim.kubelet.machine import MISUSED, Io, Program, Session

_LONGEST_SEQUENCE = 10_000


def _split(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the letters of the options, and the rest."""
    names = [text for text in arguments if not text.startswith("-") or text == "-"]
    return "".join(text for text in arguments if text.startswith("-")), names


async def touch(session: Session, arguments: list[str], io: Io) -> int:
    files = session.machine.files

    def make(path: str) -> None:
        if not files.is_directory(path) and not files.is_file(path):
            files.write(path, b"")

    return await _each(session, _split(arguments)[1], io, "touch", make)


async def remove(session: Session, arguments: list[str], io: Io) -> int:
    options, names = _split(arguments)
    files = session.machine.files

    def drop(path: str) -> None:
        if files.is_directory(path) and not set(options) & set("rR"):
            raise Refused("is a directory")
        if files.is_directory(path) or files.is_file(path):
            files.remove(path)
        elif "f" not in options:
            raise Refused("No such file or directory")

    return await _each(session, names, io, "rm", drop)


async def make_directory(session: Session, arguments: list[str], io: Io) -> int:
    options, names = _split(arguments)
    files = session.machine.files

    def make(path: str) -> None:
        if files.is_file(path) or (files.is_directory(path) and "p" not in options):
            raise Refused("File exists")
        above = posixpath.dirname(path)
        if not files.is_directory(above):
            if "p" not in options:
                raise Refused("No such file or directory")
            make(above)
        if not files.is_directory(path):
            files.make_directory(path)

    return await _each(session, names, io, "mkdir", make)


async def _each(session: Session, names: list[str], io: Io, program: str, work: Callable[[str], None]) -> int:
    code = 0
    for name in names:
        try:
            work(session.path(name))
        except Refused as error:
            await io.err(f"{program}: {name}: {error}\n".encode())
            code = 1
    return code


async def count(session: Session, arguments: list[str], io: Io) -> int:
    """Lines, words and bytes."""
    options, names = _split(arguments)
    code = 0
    for name in names or ["-"]:
        content = await _input(io) if name == "-" else session.machine.files.read(session.path(name))
        if content is None:
            await io.err(f"wc: {name}: No such file or directory\n".encode())
            code = 1
            continue
        found = {"l": content.count(b"\n"), "w": len(content.split()), "c": len(content)}
        shown = [str(value) for letter, value in found.items() if letter in options or not options]
        await io.out((" ".join([*shown, *(names and [name])]) + "\n").encode())
    return code


async def _input(io: Io) -> bytes:
    found = b""
    while data := await io.read():
        found += data
    return found


async def sequence(_session: Session, arguments: list[str], io: Io) -> int:
    try:
        numbers = [number(text) for text in arguments]
    except NoValue as error:
        await io.err(f"seq: {error}\n".encode())
        return 1
    match numbers:
        case [last]:
            first, step = 1, 1
        case [first, last]:
            step = 1
        case [first, step, last]:
            pass
        case _:
            await io.err(b"seq: missing operand\n")
            return 1
    if step == 0 or abs(last - first) // abs(step) > _LONGEST_SEQUENCE:
        await io.err(b"seq: too many numbers\n")
        return 1
    await io.out("".join(f"{value}\n" for value in range(first, last + (1 if step > 0 else -1), step)).encode())
    return 0


async def expression(_session: Session, arguments: list[str], io: Io) -> int:
    """expr: numbers and comparisons; texts are only compared for equality."""
    tokens = ["==" if text == "=" else text for text in arguments]
    try:
        if len(tokens) == 3 and tokens[1] in ("==", "!=") and not all(map(_is_number, (tokens[0], tokens[2]))):
            value = int((tokens[0] == tokens[2]) == (tokens[1] == "=="))
        elif len(tokens) == 1 and not _is_number(tokens[0]):
            await io.out(f"{tokens[0]}\n".encode())
            return 0 if tokens[0] else 1
        else:
            value = compute(tokens)
    except NoValue as error:
        await io.err(f"expr: {error}\n".encode())
        return MISUSED
    await io.out(f"{value}\n".encode())
    return 0 if value else 1


def _is_number(text: str) -> bool:
    try:
        number(text)
    except NoValue:
        return False
    return True


# --- test, [ and [[

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _exists(files: FileSystem, path: str) -> bool:
    return files.is_file(path) or files.is_directory(path)


_FILES: dict[str, Callable[[FileSystem, str], bool]] = {
    "-e": _exists,
    "-r": _exists,
    "-w": _exists,
    "-f": FileSystem.is_file,
    "-d": FileSystem.is_directory,
    "-s": lambda files, path: bool(files.read(path)),
    "-x": FileSystem.is_directory,
}


async def test(session: Session, arguments: list[str], io: Io) -> int:
    if arguments and arguments[-1] in ("]", "]]"):
        arguments = arguments[:-1]
    try:
        return 0 if _any(session, arguments) else 1
    except NoValue as error:
        await io.err(f"sh: {error}\n".encode())
        return MISUSED


def _any(session: Session, arguments: Sequence[str]) -> bool:
    return any(_all(session, part) for part in _parted(arguments, ("-o", "||")))


def _all(session: Session, arguments: Sequence[str]) -> bool:
    return all(_holds(session, part) for part in _parted(arguments, ("-a", "&&")))


def _parted(arguments: Sequence[str], joints: tuple[str, str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for text in arguments:
        if text in joints and parts[-1]:
            parts.append([])
        else:
            parts[-1].append(text)
    return parts


def _holds(session: Session, arguments: Sequence[str]) -> bool:
    match arguments:
        case []:
            return False
        case [text]:
            return bool(text)
        case [left, operator, right] if operator in _NUMBERS:
            return _NUMBERS[operator](number(left), number(right))
        case [left, operator, right] if operator in _TEXTS:
            return _TEXTS[operator](left, right)
        case ["!", *rest]:
            return not _holds(session, rest)
        case ["-n", text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case [flag, name] if flag in _FILES:
            return _FILES[flag](session.machine.files, session.path(name))
    raise NoValue(f"{' '.join(arguments)[:100]}: unknown operand")


FILE_PROGRAMS: dict[str, Program] = {
    "touch": touch,
    "rm": remove,
    "mkdir": make_directory,
    "wc": count,
    "seq": sequence,
    "expr": expression,
    "test": test,
    "[": test,
    "[[": test,
}
