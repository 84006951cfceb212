"""Programs of ours as processes that need not load first: they are forked from one that has (fork_server.py).

`start` and `run` are `subprocess.Popen` and `subprocess.run` for tests that start `python -m karmada.…`. Tests of the
command line itself (what it loads, its console scripts, closed streams) use subprocess. `shell_path` is for shells.
"""

from __future__ import annotations

import marshal
import os
import pickle
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.support.fork_requests import POPEN, Start, close_pipes, program_of, request_socket_pair, start_of

_ROOT = Path(__file__).parents[2]
_READ_AT_THE_START = ("PYTHON", "LC_", "LANG", "TZ", "SSL_", "OPENSSL_", "UV_")
"""Variables that Python and libraries have read when a program is forked; with others it is started afresh."""
_READ_LATER = {
    "LC_CTYPE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
}
"""But for those that the forked process heeds or reads itself, and for what Python sets where there is no locale, and
would set again."""

_COMMANDS = {
    "karmadactl": "karmada.cli.karmadactl",
    "kubectl-karmada": "karmada.cli.karmadactl",
    "kubectl_complete-karmada": "karmada.cli.parsing.complete",
}
"""Programs for people, and their modules."""
_SCRIPT = """#!{python} -IS
import sys
sys.path.append("{library}")
from forked_command import run
run{call}
"""


class _Server:
    """It ends when this process and those forked from it have, since then nobody holds the other end of its socket."""

    def __init__(
        self, requests: socket.socket, process: subprocess.Popen[bytes] | None = None, commands: Path | None = None
    ) -> None:
        self._socket = requests
        self.process = process
        self.commands = commands

    @classmethod
    def started(cls) -> _Server:
        ours, theirs = request_socket_pair()
        commands = Path(tempfile.mkdtemp(prefix="forked-commands-"))  # which the server removes
        with theirs, _commands_in(commands) as bound:
            descriptors = (theirs.fileno(), bound.fileno())
            command = [sys.executable, "-m", "tests.support.fork_server", *map(str, descriptors)]
            env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process of several threads cannot be forked
            process = _Popen(command, cwd=_ROOT, env=env, stdin=subprocess.DEVNULL, pass_fds=descriptors)
        return cls(ours, process, commands)

    def end(self) -> None:
        self._socket.close()
        if self.process is not None:
            self.process.wait()

    def fork(self, start: Start, descriptors: list[int]) -> int:
        """The descriptor from which to read the pid, and later how the process ended."""
        reading, writing = os.pipe()
        try:
            socket.send_fds(self._socket, [marshal.dumps(asdict(start))], [writing, *descriptors])
        finally:
            os.close(writing)
        return reading


_Popen = subprocess.Popen
_servers: list[_Server] = []
_starting = threading.Lock()


def _server() -> _Server:
    """Started on the first use."""
    with _starting:
        if not _servers:
            _servers.append(_Server.started())
        return _servers[0]


def share() -> None:
    """Have one server for all processes that will be forked from this one: each would load it, in 1.7 s of CPU time."""
    _server()


def stop() -> None:
    """End a server that no other process uses any more."""
    while _servers:
        _servers.pop().end()


def _commands_in(folder: Path) -> socket.socket:
    """Write the scripts, which send requests to the socket that is returned."""
    path = folder / "requests"
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bound.bind(str(path))
    for name, module in _COMMANDS.items():
        script = folder / name
        call = (str(path), name, module)
        script.write_text(_SCRIPT.format(python=sys.executable, library=Path(__file__).parent, call=call))
        script.chmod(0o755)
    return bound


def shell_path() -> str:
    """The PATH of a shell that finds our programs; those for people are forked."""
    commands = _server().commands if sys.platform == "linux" else None
    folders = [commands, Path(sys.executable).parent, os.environ["PATH"]]
    return os.pathsep.join(str(folder) for folder in folders if folder is not None)


def use(requests: socket.socket) -> None:
    """Have programs forked by the server at the other end."""
    _servers[:] = [_Server(requests)]


class ForkedProgram(subprocess.Popen[Any]):
    """Its parent is the server, which reports its pid and its exit."""

    def _execute_child(self, *given: Any) -> None:
        self._looking = threading.Lock()
        try:
            start, descriptors = start_of(*given)
            preexec = dict(zip(POPEN, given, strict=True))["preexec_fn"]
            if preexec is not None:
                start = replace(start, preexec=pickle.dumps(preexec).hex())
            self.report = os.fdopen(_server().fork(start, descriptors))
            self.pid = int(self.report.readline())
            self._child_created = True
        finally:
            close_pipes(self, *given)

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        self._look(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if not self._look(timeout):
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _look(self, seconds: float | None) -> bool:
        """Whether it has ended, after waiting at most so long."""
        with self._looking:
            if self.returncode is None and select.select([self.report], [], [], seconds)[0]:
                self.returncode = os.waitstatus_to_exitcode(int(self.report.readline()))
                self.report.close()
            return self.returncode is not None


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """As subprocess.Popen does, in whose place it may be put."""
    kind = ForkedProgram if forkable(command, options) else _Popen
    return kind(command, **options)


def run(
    command: Sequence[str],
    *,
    input: Any = None,  # noqa: A002 - as there
    timeout: float | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """As subprocess.run does, with all output captured."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(command, **{**streams, **options}) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def forkable(command: Sequence[str], options: Mapping[str, Any]) -> bool:
    return (
        program_of(command) is not None
        and sys.platform == "linux"
        and _portable(options.get("preexec_fn"))
        and not _differs(options.get("env"))
    )


def _portable(function: Callable[[], None] | None) -> bool:
    """Whether the process that forks can call it: it must be found by its name."""
    try:
        return function is None or bool(pickle.dumps(function))
    except (AttributeError, pickle.PicklingError):
        return False


def _differs(env: Mapping[str, str] | None) -> bool:
    """From ours, in what is read at the start only."""
    if env is None:
        return False
    names = {name for name in (*env, *os.environ) if name.startswith(_READ_AT_THE_START)} - _READ_LATER
    return any(env.get(name) != os.environ.get(name) for name in names)
