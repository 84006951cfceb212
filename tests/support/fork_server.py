"""A process that has loaded our programs once and forks for each start: `python -m tests.support.fork_server FD`.

Loading is most of what a start costs: 0.4 to 0.7 s of CPU time. A forked program is a process as any other, with
arguments, environment, folder, descriptors and session of its own. It runs what its console script runs and ends as
Python ends; only its parent is this process, which reports the exit (see forking.py for the other side).

The server has one thread and no event loop, sockets or handlers of the programs: what it shares with them is code.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import gc
import inspect
import json
import logging
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

import karmada

MOST_BYTES = 1_000_000
"""Of a request: arguments and environment."""
MOST_DESCRIPTORS = 32
_ABOVE_TARGETS = 512
_RUN_ALONE = frozenset({"karmada.kube.server.storage.sync_process"})


_POPEN = [*inspect.signature(subprocess.Popen._execute_child).parameters][1:]  # type: ignore[attr-defined]
"""Names of what Popen gives to the method that starts the process."""


@dataclass(frozen=True)
class Start:
    """A program and what its process begins with; `targets` are the numbers that its descriptors shall have."""

    module: str
    arguments: list[str]
    env: dict[str, str]
    cwd: str
    umask: int
    start_new_session: bool
    process_group: int
    targets: list[int]


def program_of(command: Sequence[str]) -> tuple[str, list[str]] | None:
    """The module and its arguments, for `python [-P] -m karmada.…`, and for benchmarks."""
    words = [os.fspath(word) for word in command]
    if words[:1] != [sys.executable]:
        return None
    del words[: 2 if words[1:2] == ["-P"] else 1]
    return (words[1], words[2:]) if words[:1] == ["-m"] and words[1].startswith(("karmada.", "benchmarks.")) else None


def start_of(*popen: Any) -> tuple[Start, list[int]]:
    """What Popen was given for a program of ours, and the descriptors in the order of their targets."""
    given = dict(zip(_POPEN, popen, strict=True))
    program = program_of(given["args"])
    assert program is not None
    streams = {0: given["p2cread"], 1: given["c2pwrite"], 2: given["errwrite"]}
    descriptors = {target: target if own == -1 else own for target, own in streams.items()}
    descriptors |= {descriptor: descriptor for descriptor in given["pass_fds"]}
    start = Start(
        *program,
        env=dict(os.environ if given["env"] is None else given["env"]),
        cwd=os.fspath(given["cwd"] or os.getcwd()),
        **{name: given[name] for name in ("umask", "start_new_session", "process_group")},
        targets=list(descriptors),
    )
    return start, list(descriptors.values())


def close_pipes(popen: subprocess.Popen[Any], *given: Any) -> None:
    """The child's ends, in the parent."""
    names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    ends = dict(zip(_POPEN, given, strict=True))
    popen._close_pipe_fds(*(ends[name] for name in names))  # type: ignore[attr-defined]


class ForkServer:
    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
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
            readable, _, _ = select.select([self._requests, self._woken], [], [])
            if self._woken in readable:
                self._woken.recv(MOST_BYTES)
                self._report_ended()
            if self._requests in readable:
                request, descriptors, _, _ = socket.recv_fds(self._requests, MOST_BYTES, MOST_DESCRIPTORS)
                if not request:
                    return None
                if self._fork(descriptors):
                    return Start(**json.loads(request)), descriptors

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
    gc.collect()
    gc.freeze()  # a collection would copy the pages that are shared


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
    _place(descriptors, start.targets)
    os.environ.clear()
    os.environ.update(start.env)
    sys.stdin = sys.__stdin__ = _stream(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w", line_buffering=os.isatty(1))  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w", line_buffering=True)  # type: ignore[misc]


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _place(descriptors: list[int], targets: list[int]) -> None:
    """Give each descriptor its number; all others are closed."""
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE_TARGETS) for descriptor in descriptors]
    for descriptor, target in zip(moved, targets, strict=True):
        os.dup2(descriptor, target)
    for number in map(int, os.listdir("/dev/fd")):
        if number not in targets:
            with suppress(OSError):  # the listing had one of its own
                os.close(number)


def _stream(descriptor: int, mode: str, line_buffering: bool = False) -> TextIOWrapper:
    """Encoded as the stream that Python has made for the server."""
    like = (sys.stdin, sys.stdout, sys.stderr)[descriptor]
    raw = open(descriptor, f"{mode}b", closefd=False)  # noqa: SIM115
    return TextIOWrapper(raw, like.encoding, like.errors, line_buffering=line_buffering)


def run(start: Start) -> None:
    """As the console script of the module does. After an exception Python ends the process as it always does."""
    module = import_module(start.module)
    sys.modules["__main__"] = module
    sys.argv = [str(module.__file__), *start.arguments]
    subprocess.Popen = ForkingPopen  # type: ignore[misc]
    try:
        code = module.main()
    except SystemExit as end:
        code = end.code
    if code is not None and not isinstance(code, int):
        sys.exit(code)
    _end(code or 0)


class ForkingPopen(subprocess.Popen[Any]):
    """How a forked program starts others of ours, as its own children: `local-up` does. Not with threads around."""

    def _execute_child(self, *given: Any) -> None:
        options = dict(zip(_POPEN, given, strict=True))
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
    requests = socket.socket(fileno=int(sys.argv[1]))
    load_programs()
    forked = ForkServer(requests).serve()
    if forked is not None:
        become(*forked)
        run(forked[0])


if __name__ == "__main__":
    main()
