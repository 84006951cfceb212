"""A process that has loaded our programs once and forks for each start: `python -m tests.support.fork_server FD FD`.

Loading is most of what a start costs: 0.4 to 0.7 s of CPU time. A forked program is a process as any other, with
arguments, environment, folder, descriptors and session of its own. It runs what its console script runs and ends as
Python ends; only its parent is this process, which reports the exit (see forking.py for the other side).

The server has one thread and no event loop, sockets or handlers of the programs: what it shares with them is code.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import fcntl
import gc
import logging
import marshal
import os
import pickle
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import karmada
from karmada.api.crds import builtin_crds
from karmada.kube.kinds.definition_schemas import schema_errors
from karmada.kube.schema.builtin import Definitions
from tests.support import forking, forking_on_a_loop
from tests.support.fork_requests import (
    MOST_BYTES,
    MOST_DESCRIPTORS,
    POPEN,
    Start,
    close_pipes,
    program_of,
    request_socket_pair,
    start_of,
)

_ABOVE_TARGETS = 512
_PR_SET_PDEATHSIG = 1
_RUN_ALONE = frozenset({"karmada.kube.server.storage.sync_process"})
_LOADED_BY_EVERY_SERVER = (
    "cryptography.hazmat.backends.openssl.backend",
    "cryptography.hazmat.primitives.serialization",
    "encodings.idna",
    "importlib.metadata",
    "uvloop",
)
"""Modules that no program needs to be loaded itself."""
_START_OTHERS_ON_A_LOOP = frozenset({"karmada.components.sim", "karmada.components.karmada"})
"""Programs that start programs of ours when they have an event loop and threads: the simulator for pods, the control
plane for its workers and the dashboard's drills."""


class ForkServer:
    """`commands` is a bound socket for those who are no child of the one that holds the other end of `requests`."""

    def __init__(self, requests: socket.socket, commands: socket.socket | None = None) -> None:
        self._requests = requests
        self._sources = [requests] if commands is None else [requests, commands]
        self._reports: dict[int, int] = {}
        self._woken, waking = socket.socketpair()
        for end in (self._woken, waking):
            end.setblocking(False)
        self._waking = waking

    def serve(self) -> tuple[Start, list[int]] | None:
        """Returns in each forked process, with what it has to become; None here, once nobody can send requests."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the programs
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waking.fileno(), warn_on_full_buffer=False)
        while True:
            readable, _, _ = select.select([*self._sources, self._woken], [], [])
            if self._woken in readable:
                self._woken.recv(MOST_BYTES)
                self._report_ended()
            for source in self._sources:
                if source not in readable:
                    continue
                request, descriptors, _, _ = socket.recv_fds(source, MOST_BYTES, MOST_DESCRIPTORS)
                if not request and source is self._requests:
                    return None
                if self._fork(descriptors):
                    return Start(**marshal.loads(request)), descriptors

    def _fork(self, descriptors: list[int]) -> bool:
        """True in the child. The first descriptor is for reports about it: its pid, then how it ended."""
        report = descriptors.pop(0)
        pid = os.fork()
        if pid == 0:
            return True
        self._reports[pid] = report
        os.write(report, f"{pid}\n".encode())
        for descriptor in descriptors:
            os.close(descriptor)
        return False

    def _report_ended(self) -> None:
        while self._reports:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            report = self._reports.pop(pid)
            with suppress(BrokenPipeError):  # whoever started it does not wait for it
                os.write(report, f"{status}\n".encode())
            os.close(report)


def load_programs() -> None:
    """Without gRPC, which reads its settings from the environment when it is loaded: who needs it loads it later."""
    sys.modules["grpc"] = None  # type: ignore[assignment]
    for module in pkgutil.walk_packages(karmada.__path__, "karmada."):
        if module.name not in _RUN_ALONE:
            try:
                import_module(module.name)
            except ModuleNotFoundError as error:
                if str(error.name).startswith("karmada"):
                    raise  # others are optional
    del sys.modules["grpc"]
    for name in _LOADED_BY_EVERY_SERVER:
        import_module(name)
    _compile_schemas()
    gc.collect()
    gc.freeze()  # a collection would copy the pages that are shared


def _compile_schemas() -> None:
    """Of all kinds, as every server does when it starts, and keeps them for as long as it runs."""
    Definitions.load().kinds()
    for definition in builtin_crds():
        for version in definition["spec"]["versions"]:
            errors = schema_errors(version, "schema", "")
            assert not errors, errors


def become(start: Start, descriptors: list[int]) -> None:
    """Make this process what `exec` would have made it: session, folder, descriptors, signals, environment, streams."""
    if start.start_new_session:
        os.setsid()
    if start.process_group >= 0:
        os.setpgid(0, start.process_group)
    if start.umask >= 0:
        os.umask(start.umask)
    os.chdir(start.cwd)
    _reset_signals()
    place(descriptors, start.targets)
    os.environ.clear()
    os.environ.update(start.env)
    at_once = bool(start.env.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = _stream(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w", line_buffering=os.isatty(1), write_through=at_once)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w", line_buffering=True, write_through=at_once)  # type: ignore[misc]
    sys.dont_write_bytecode = bool(start.env.get("PYTHONDONTWRITEBYTECODE"))
    if start.preexec:
        pickle.loads(bytes.fromhex(start.preexec))()


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def place(descriptors: list[int], targets: list[int]) -> None:
    """Give each descriptor its number; all others are closed."""
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE_TARGETS) for descriptor in descriptors]
    for descriptor, target in zip(moved, targets, strict=True):
        os.dup2(descriptor, target)
    for number in map(int, os.listdir("/dev/fd")):
        if number not in targets:
            with suppress(OSError):  # the listing had one of its own
                os.close(number)


def _stream(descriptor: int, mode: str, *, line_buffering: bool = False, write_through: bool = False) -> TextIOWrapper:
    """Encoded as the stream that Python has made for the server."""
    like = (sys.stdin, sys.stdout, sys.stderr)[descriptor]
    raw: Any = open(descriptor, f"{mode}b", buffering=0 if write_through else -1, closefd=False)  # noqa: SIM115
    return TextIOWrapper(raw, like.encoding, like.errors, line_buffering=line_buffering, write_through=write_through)


def run(start: Start) -> None:
    """As the console script of the module does. After an exception Python ends the process as it always does."""
    if start.module in _START_OTHERS_ON_A_LOOP:
        start = _serve_beside(start)
    module = import_module(start.module)
    sys.modules["__main__"] = module
    sys.argv = [start.name or str(module.__file__), *start.arguments]
    subprocess.Popen = ForkingPopen  # type: ignore[misc]
    try:
        code = module.main()
    except SystemExit as end:
        code = end.code
    if code is not None and not isinstance(code, int):
        sys.exit(code)
    _end(code or 0)


def _serve_beside(start: Start) -> Start:
    """Fork a server for this program alone, which ends with it, and so does what is forked from that.

    Returns what was given in this process, and in every process that the new server forks what that has to become.
    """
    ours, theirs = request_socket_pair()
    parent = os.getpid()
    if os.fork() != 0:
        theirs.close()
        forking.use(ours)
        asyncio.create_subprocess_exec = forking_on_a_loop.create_subprocess_exec
        return start
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    place([nowhere, nowhere, nowhere, theirs.detach()], [0, 1, 2, 3])
    forked = ForkServer(socket.socket(fileno=3)).serve()
    if forked is None:
        os._exit(0)
    become(*forked)
    return forked[0]


class ForkingPopen(subprocess.Popen[Any]):
    """How a forked program starts others of ours, as its own children: `local-up` does. Not with threads around."""

    def _execute_child(self, *given: Any) -> None:
        options = dict(zip(POPEN, given, strict=True))
        if program_of(options["args"]) is None or len(os.listdir("/proc/self/task")) > 1:
            super()._execute_child(*given)  # type: ignore[misc]
            return
        start, descriptors = start_of(*given)
        self.pid = os.fork()
        if self.pid == 0:
            _run_in_child(start, descriptors, options["preexec_fn"])
        self._child_created = True
        close_pipes(self, *given)


def _run_in_child(start: Start, descriptors: list[int], preexec: Callable[[], None] | None) -> NoReturn:
    """Never returns to what the parent was doing: its event loop and what it does at its end are none of ours."""
    asyncio._set_running_loop(None)
    atexit._clear()
    atexit.register(logging.shutdown)
    try:
        become(start, descriptors)
        if preexec is not None:
            preexec()
        run(start)
    except BaseException:  # noqa: BLE001 - as Python does with what nobody has caught
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def _end(code: int) -> NoReturn:
    """What Python does at its end, except that it would take a thousand modules apart, page by page copied for it."""
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def main() -> None:
    requests, commands = (socket.socket(fileno=int(word)) for word in sys.argv[1:])
    load_programs()
    forked = ForkServer(requests, commands).serve()
    if forked is None:
        shutil.rmtree(Path(commands.getsockname()).parent)
    else:
        become(*forked)
        run(forked[0])


if __name__ == "__main__":
    main()
