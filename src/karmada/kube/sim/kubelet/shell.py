"""A small shell: what `kubectl exec` finds inside a simulated container, and what a container's own script does.

It works on a `Machine`, a description of the container (environment, files, configured replies), and talks through an
`Io`; it knows nothing of pods or the network. For a user, what is in no table does not exist: exit code 127. When it
predicts how a container's script goes, that script may well run programs that are not simulated: it goes on until their
result matters, and raises CannotTell then.
"""

from __future__ import annotations

import posixpath
import re

from karmada.kube.sim.kubelet.arithmetic import NoValue, evaluate
from karmada.kube.sim.kubelet.filesystem import CannotTell, Refused
from karmada.kube.sim.kubelet.machine import (
    MISUSED,
    NOT_FOUND,
    UNKNOWN,
    Io,
    Machine,
    OutOfSteps,
    Program,
    Session,
    TerminalIo,
)
from karmada.kube.sim.kubelet.programs import PROGRAMS, printenv, true
from karmada.kube.sim.kubelet.shell_grammar import (
    Command,
    For,
    Group,
    If,
    Loop,
    Pipeline,
    Sequence,
    Simple,
    parse,
)
from karmada.kube.sim.kubelet.shell_streams import Streams, gathering, given, redirected
from karmada.kube.sim.kubelet.shell_words import DEEPEST, Incomplete, Piece, ScriptError, Values, Word, expand, joined

SHELLS = ("sh", "bash", "ash", "dash")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.S)
_DECISIVE = frozenset({"true", "false", "exit"})
_BEYOND = frozenset({"eval", "source", ".", "wait", "return", "read", "shift"})
"""Commands that change a shell in ways that this one does not simulate."""
_DEEPEST_COMMAND = 60
"""Commands in commands, whichever shell they are in."""


async def execute(machine: Machine, command: list[str], io: Io) -> int:
    """Return what exec does: run one program, which may be a shell with a script; its exit code."""
    try:
        return await start(Session.of(machine), command, io)
    except OutOfSteps as error:
        await io.err(f"sh: {error}\n".encode())
        return MISUSED


async def start(session: Session, command: list[str], io: Io) -> int:
    return await _run(session, command, Streams.over(io), direct=True)


async def interactive(machine: Machine, io: TerminalIo) -> int:
    """Return a shell at a terminal: read and run line by line, with a prompt, until the end of input or `exit`."""
    session = Session.of(machine)
    lines = ""
    while True:
        await io.out(b"> " if lines else f"{session.directory} # ".encode())
        line = await io.read()
        if not line:
            return session.last
        lines += line.decode(errors="replace")
        if _goes_on(lines):
            continue
        session.course.steps = 0
        try:
            session.last = await io.attend(_script(session, lines, Streams.over(io)))
        except Exit as ended:
            return ended.code
        except OutOfSteps as error:
            await io.err(f"sh: {error}\n".encode())
        lines = ""


def is_shell(machine: Machine, command: list[str]) -> bool:
    """Return a shell without a script, which would read from the terminal."""
    wants = len(command) == 1 and posixpath.basename(command[0]) in SHELLS
    return wants and machine.reply(command[0]) is None


def is_simulated(program: str) -> bool:
    """Return whether a container that runs this program has a course that can be predicted."""
    name = posixpath.basename(program)
    return name in PROGRAMS or name in _STARTERS


class Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Jump(Exception):
    """Out of so many loops, and there to the next round or behind the loop."""

    def __init__(self, levels: int, again: bool) -> None:
        super().__init__(levels)
        self.levels, self.again = levels, again


# scripts


def _goes_on(lines: str) -> bool:
    """Return whether a script can only be complete with more lines."""
    try:
        parse(lines)
    except Incomplete:
        return True
    except ScriptError:
        return False
    return False


async def _script(session: Session, text: str, io: Streams) -> int:
    try:
        return await _sequence(session, parse(text), io)
    except _Jump:
        return session.last  # outside of any loop it leads nowhere
    except ScriptError as error:
        if session.course.predicting:
            raise CannotTell(str(error)) from error
        await io.err(f"sh: {error}\n".encode())
        return MISUSED


async def _sequence(session: Session, sequence: Sequence, io: Streams, *, tested: bool = False) -> int:
    """Run a command; `tested`: its exit code is a condition, so a failure does not end the script."""
    for index, (joint, pipeline) in enumerate(sequence.items):
        if (joint == "&&" and session.status != 0) or (joint == "||" and session.status == 0):
            continue
        session.last = await _pipeline(session, pipeline, io)
        joined_on = index + 1 < len(sequence.items) and sequence.items[index + 1][0] != ";"
        ends = session.stops_on_failure and not (tested or joined_on or pipeline.negated)
        if ends and session.last not in (0, UNKNOWN):
            raise Exit(session.last)
    return session.last


async def _pipeline(session: Session, pipeline: Pipeline, io: Streams) -> int:
    *before, last = pipeline.commands
    source = io.read_from
    for command in before:
        gathered, gather = gathering()
        await _in_subshell(session, command, Streams(io.base, source, gather, io.err_to, captured=True))
        source = given(bytes(gathered))
    if before:
        session.last = await _in_subshell(session, last, Streams(io.base, source, io.out_to, io.err_to, io.captured))
    else:
        session.last = await _command(session, last, io)
    return int(session.status == 0) if pipeline.negated else session.last


async def _in_subshell(session: Session, command: Command, io: Streams) -> int:
    try:
        return await _command(_deeper(session), command, io)
    except Exit as ended:
        return ended.code


def _deeper(session: Session) -> Session:
    if session.depth >= DEEPEST:
        raise ScriptError("nested too deeply")
    return session.child()


async def _command(session: Session, command: Command, io: Streams) -> int:
    course = session.course
    await course.step()
    if course.nested >= _DEEPEST_COMMAND:
        raise ScriptError("nested too deeply")
    course.nested += 1
    try:
        return await _one(session, command, io)
    finally:
        course.nested -= 1


async def _one(session: Session, command: Command, io: Streams) -> int:
    values = _values(session, io)
    try:
        inner = await redirected(session, command.redirections, io, values)
    except Refused as error:
        await io.err(f"sh: {error}\n".encode())
        return 1
    match command:
        case Simple():
            return await _simple(session, command, inner, values)
        case If():
            return await _if(session, command, inner)
        case Loop():
            return await _loop(session, command, inner)
        case For():
            return await _for(session, command, inner, values)
        case Group():
            return await _group(session, command, inner)


async def _if(session: Session, command: If, io: Streams) -> int:
    for condition, body in command.branches:
        session.last = await _sequence(session, condition, io, tested=True)
        if session.status == 0:
            return await _sequence(session, body, io)
    session.last = 0
    return await _sequence(session, command.otherwise, io) if command.otherwise else 0


async def _loop(session: Session, command: Loop, io: Streams) -> int:
    code = 0
    while True:
        await session.course.step()
        session.last = await _sequence(session, command.condition, io, tested=True)
        if (session.status == 0) == command.until:
            return code
        if await _round(session, command.body, io):
            return 0
        code = session.last


async def _for(session: Session, command: For, io: Streams, values: Values) -> int:
    session.last = 0
    for value in await expand(command.words, values):
        await session.course.step()
        session.env[command.name] = value
        if await _round(session, command.body, io):
            return 0
    return session.last


async def _round(session: Session, body: Sequence, io: Streams) -> bool:
    """Return one round of a loop; whether it is the last."""
    try:
        session.last = await _sequence(session, body, io)
    except _Jump as jump:
        if jump.levels > 1:
            raise _Jump(jump.levels - 1, jump.again) from None
        session.last = 0
        return not jump.again
    return False


async def _group(session: Session, command: Group, io: Streams) -> int:
    if not command.subshell:
        return await _sequence(session, command.body, io)
    return await _in_subshell(session, Group(command.body, subshell=False), io)


# simple commands


async def _simple(session: Session, command: Simple, io: Streams, values: Values) -> int:
    at = next((at for at, word in enumerate(command.words) if not _assigned(word)), len(command.words))
    own = dict([await _assignment(word, values) for word in command.words[:at]])
    words = await expand(command.words[at:], values)
    if not words:
        session.env |= own
        return values.code
    inner = session
    if own:
        inner = session.child()
        inner.env |= own
    try:
        return await _run(inner, words, io)
    except Refused as error:
        await io.err(f"{words[0]}: {error}\n".encode())
        return 1


def _assigned(word: Word) -> bool:
    first = word.pieces[0]
    return not first.quoted and first.kind == "text" and bool(_ASSIGNMENT.match(first.text))


async def _assignment(word: Word, values: Values) -> tuple[str, str]:
    first, *others = word.pieces
    name, _, rest = first.text.partition("=")
    return name, await joined(Word([Piece(rest), *others]), values)


def _values(session: Session, io: Streams) -> Values:
    async def output(script: str) -> str:
        gathered, gather = gathering()
        inner = _deeper(session)
        try:
            inner.last = await _sequence(inner, parse(script), Streams(io.base, io.read_from, gather, io.err_to, True))
        except Exit as ended:
            inner.last = ended.code
        values.code = inner.last
        return gathered.decode(errors="replace").rstrip("\n")

    def expression(text: str) -> str:
        try:
            return str(evaluate(text, lambda name: _lookup(session, name)))
        except NoValue as error:
            raise ScriptError(str(error)) from None

    def matches(pattern: str) -> list[str]:
        found = session.machine.files.glob(session.path(pattern))
        return found if pattern.startswith("/") else [posixpath.relpath(path, session.directory) for path in found]

    values = Values(lambda name: _lookup(session, name), output, expression, matches)
    return values


def _lookup(session: Session, name: str) -> str:
    arguments = session.arguments
    if name.isdigit():
        return arguments[int(name)] if int(name) < len(arguments) else ""
    match name:
        case "?":
            return str(session.status)
        case "$":
            return "1"
        case "#":
            return str(max(0, len(arguments) - 1))
        case "@" | "*":
            return " ".join(arguments[1:])
    return session.env.get(name, "")


async def _run(session: Session, words: list[str], io: Streams, *, direct: bool = False) -> int:
    """`direct`: no shell stands between, so there are only programs."""
    reply = session.machine.reply(" ".join(words))
    if reply is not None:
        if reply.delay:
            await io.sleep(reply.delay)
        await io.out(reply.stdout)
        await io.err(reply.stderr)
        return reply.code
    name = posixpath.basename(words[0])
    session.course.decided = session.course.decided or name in _DECISIVE
    program = _STARTERS.get(name) or PROGRAMS.get(name) or (None if direct else _BUILT_IN.get(name))
    if program is not None:
        return await program(session, words[1:], io)
    if session.course.predicting:
        if io.captured:
            raise CannotTell(f"the output of {name}")
        return UNKNOWN
    if direct:
        why = f'exec: "{words[0]}": executable file not found in $PATH'
        await io.err(f"OCI runtime exec failed: exec failed: unable to start container process: {why}\n".encode())
    else:
        await io.err(f"sh: {words[0]}: not found\n".encode())
    return NOT_FOUND


async def _env(session: Session, arguments: list[str], io: Io) -> int:
    """Show the environment, or run something in a changed one."""
    inner = _deeper(session)
    while arguments and (match := _ASSIGNMENT.fullmatch(arguments[0])):
        inner.env[match[1]] = match[2]
        arguments = arguments[1:]
    return await _run(inner, arguments, Streams.over(io), direct=True) if arguments else await printenv(inner, [], io)


async def _shell(session: Session, arguments: list[str], io: Io) -> int:
    inner, streams = _deeper(session), Streams.over(io)
    while arguments and arguments[0].startswith("-") and "c" not in arguments[0]:
        inner.stops_on_failure = inner.stops_on_failure or "e" in arguments[0]
        arguments = arguments[1:]
    try:
        if not arguments:
            return await _from_input(inner, streams)
        if arguments[0].startswith("-"):
            if len(arguments) < 2:
                await io.err(b"sh: -c requires an argument\n")
                return MISUSED
            inner.arguments = arguments[2:]
            inner.stops_on_failure = "e" in arguments[0]
            return await _script(inner, arguments[1], streams)
        content = inner.machine.files.read(inner.path(arguments[0]))
        if content is None:
            await io.err(f"sh: can't open '{arguments[0]}': No such file or directory\n".encode())
            return MISUSED
        inner.arguments = arguments
        return await _script(inner, content.decode(errors="replace"), streams)
    except Exit as ended:
        return ended.code


async def _from_input(session: Session, io: Streams) -> int:
    """Return a script that comes through stdin, run as soon as what came is complete."""
    rest, waiting = b"", ""
    while data := await io.read():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            waiting += line.decode(errors="replace") + "\n"
            if not _goes_on(waiting):
                session.last = await _script(session, waiting, io)
                waiting = ""
    if rest or waiting:
        session.last = await _script(session, waiting + rest.decode(errors="replace"), io)
    return session.last


async def _exit(session: Session, arguments: list[str], io: Io) -> int:
    if arguments and not arguments[0].isdigit():
        await io.err(f"sh: exit: Illegal number: {arguments[0]}\n".encode())
        raise Exit(MISUSED)
    raise Exit(int(arguments[0]) & 0xFF if arguments else session.status)


async def _export(session: Session, arguments: list[str], _io: Io) -> int:
    for text in arguments:
        if match := _ASSIGNMENT.fullmatch(text):
            session.env[match[1]] = match[2]
    return 0


async def _unset(session: Session, arguments: list[str], _io: Io) -> int:
    for name in arguments:
        session.env.pop(name, None)
    return 0


async def _set(session: Session, arguments: list[str], _io: Io) -> int:
    for text in arguments:
        if text[:1] in ("-", "+") and "e" in text:
            session.stops_on_failure = text[0] == "-"
    return 0


async def _cd(session: Session, arguments: list[str], io: Io) -> int:
    wanted = arguments[0] if arguments else session.env.get("HOME", "/")
    target = session.path(wanted)
    if not session.machine.files.is_directory(target):
        await io.err(f"sh: cd: can't cd to {wanted}: No such file or directory\n".encode())
        return MISUSED
    session.directory = target
    return 0


async def _exec(session: Session, arguments: list[str], io: Io) -> int:
    if not arguments:
        return 0
    raise Exit(await _run(session, arguments, Streams.over(io), direct=True))


async def _beyond(_session: Session, _arguments: list[str], _io: Io) -> int:
    raise ScriptError("not supported in a simulated container")


def _jump(again: bool) -> Program:
    async def jump(_session: Session, arguments: list[str], _io: Io) -> int:
        raise _Jump(int(arguments[0]) if arguments and arguments[0].isdigit() else 1, again)

    return jump


_STARTERS: dict[str, Program] = {"env": _env, **dict.fromkeys(SHELLS, _shell)}
"""Programs that start others."""
_BUILT_IN: dict[str, Program] = {
    "exit": _exit,
    "export": _export,
    "unset": _unset,
    "set": _set,
    "cd": _cd,
    "exec": _exec,
    "break": _jump(again=False),
    "continue": _jump(again=True),
    "trap": true,
    ":": true,
    **dict.fromkeys(_BEYOND, _beyond),
}
"""Commands that exist only inside a shell."""
