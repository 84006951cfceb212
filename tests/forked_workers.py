"""`pytest --forks N`: collect once, then run the tests in N forked workers.

The workers of other plug-ins collect on their own: 10 s of CPU time for each. A fork has everything at once. A worker
runs one group of tests at a time (a file, unless a conftest implements `pytest_group`) and requests the next one, in
the order of collection, when it begins the last test of the group: fixtures that both use stay. Reports go to the
parent, which treats them as if the test had run there. A worker that dies is a failure of the test that it ran; one
that takes longer for a test than `faulthandler_timeout` is aborted, which shows where it was.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Literal

import pytest

_FORK = get_context("fork")


@dataclass
class Ran:
    """What a worker reports about one test."""

    index: int
    reports: list[dict[str, Any]] = field(default_factory=list)
    warned: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Stopped:
    """A test has ended the whole session."""

    reason: str


class Request(str):
    """For the next group of tests."""


class Hooks:
    @pytest.hookspec(firstresult=True)
    def pytest_group(self, item: pytest.Item) -> Hashable:
        """What a test is run together with, in one worker."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, metavar="N", help="Run the tests in this many forked workers.")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


@pytest.hookimpl(trylast=True)
def pytest_group(item: pytest.Item) -> Hashable:
    return item.path


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("forks") and (config.getoption("usepdb") or config.getoption("numprocesses", None)):
        raise pytest.UsageError("--forks cannot be combined with --pdb or -n")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Literal[True] | None:
    """None leaves the tests to pytest: without the option, and where it runs none."""
    options = session.config.option
    if not options.forks or options.collectonly or (session.testsfailed and not options.continue_on_collection_errors):
        return None
    assert_one_thread()
    Workers(session).run(options.forks)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def assert_one_thread() -> None:
    """A fork has none of the other threads, but the locks that they hold."""
    threads = threading.active_count()
    if sys.platform == "linux":
        threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        raise pytest.UsageError(f"--forks: {threads} threads run after the collection: {threading.enumerate()}")


class Worker:
    """A forked process, as its parent knows it: `pending` are the tests that it has and did not report."""

    def __init__(self, session: pytest.Session, pending: Iterable[int], siblings: Iterable[Worker]) -> None:
        self.pending = deque(pending)
        self.connection, theirs = _FORK.Pipe()
        inherited = [self.connection, *(sibling.connection for sibling in siblings)]
        self.process: ForkProcess = _FORK.Process(target=_work, args=(session, theirs, [*self.pending], inherited))
        self.process.start()
        self.latest_message = time.monotonic()
        theirs.close()

    def send(self, indices: list[int] | None) -> None:
        """Tests to run, or none any more."""
        self.pending.extend(indices or ())
        with suppress(BrokenPipeError):  # it has died, which is noticed when it is read from
            self.connection.send(indices)

    def signal(self, number: signal.Signals) -> None:
        if self.process.is_alive():
            assert self.process.pid is not None
            os.kill(self.process.pid, number)


class Workers:
    """The parent's side: gives out groups, and passes reports on to pytest."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._hook = session.config.hook
        groups: dict[Hashable, list[int]] = {}
        for index, item in enumerate(session.items):
            groups.setdefault(item.ihook.pytest_group(item=item), []).append(index)
        self._groups = deque(groups.values())
        self._workers: dict[Connection, Worker] = {}
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # of which workers have folders
        self._longest = float(session.config.getini("faulthandler_timeout") or math.inf)

    def run(self, number: int) -> None:
        try:
            for _ in range(min(number, len(self._groups))):
                self._fork(())
            while self._workers:
                for connection in wait([*self._workers], self._seconds_left()):
                    assert isinstance(connection, Connection)
                    self._read(self._workers[connection])
                self._abort_overdue()
        finally:
            self._interrupt()

    def _seconds_left(self) -> float | None:
        """Until the first test has taken too long."""
        left = min(worker.latest_message for worker in self._workers.values()) + self._longest - time.monotonic()
        return None if math.isinf(left) else max(0.0, left)

    def _abort_overdue(self) -> None:
        for worker in self._workers.values():
            if worker.latest_message + self._longest <= time.monotonic():
                worker.latest_message = math.inf
                worker.signal(signal.SIGABRT)

    def _fork(self, pending: Iterable[int]) -> None:
        worker = Worker(self._session, pending, self._workers.values())
        self._workers[worker.connection] = worker

    def _read(self, worker: Worker) -> None:
        try:
            message = worker.connection.recv()
        except (EOFError, ConnectionResetError):  # reset: it has not read all that it was sent
            self._ended(worker)
            return
        worker.latest_message = time.monotonic()
        if isinstance(message, Stopped):
            pytest.exit(message.reason)
        elif isinstance(message, Request):
            worker.send(self._groups.popleft() if self._groups and not self._stopping() else None)
        else:
            worker.pending.remove(message.index)
            self._pass_on(message)
            if self._stopping():
                for each in self._workers.values():
                    each.send(None)

    def _stopping(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)

    def _ended(self, worker: Worker) -> None:
        """What a worker that died has not run is run by another, except the test in which it died."""
        del self._workers[worker.connection]
        worker.connection.close()
        worker.process.join()
        if worker.pending and (worker.process.exitcode or not self._stopping()):
            self._report_death(self._session.items[worker.pending.popleft()], worker.process.exitcode or 0)
        if worker.pending and not self._stopping():
            self._fork(worker.pending)

    def _report_death(self, item: pytest.Item, code: int) -> None:
        cause = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", f"The worker died: {cause}", "call")
        self._hook.pytest_runtest_logreport(report=report)

    def _pass_on(self, ran: Ran) -> None:
        item = self._session.items[ran.index]
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for data in ran.reports:
            report = self._hook.pytest_report_from_serializable(config=self._session.config, data=data)
            hook.pytest_runtest_logreport(report=report)
        for warned in ran.warned:
            self._hook.pytest_warning_recorded.call_historic(kwargs=warned)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _interrupt(self) -> None:
        """As Ctrl-C does; none is left after an orderly end."""
        for worker in self._workers.values():
            worker.signal(signal.SIGINT)
        for worker in self._workers.values():
            worker.connection.close()
            worker.process.join()


def _work(session: pytest.Session, parent: Connection, indices: list[int], inherited: list[Connection]) -> None:
    """The life of a worker. Output that is captured goes to files of its own; the terminal belongs to the parent."""
    for connection in inherited:
        connection.close()
    folders = session.config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.mktemp("worker")
    plugins = session.config.pluginmanager
    plugins.unregister(name="terminalreporter")
    plugins.unregister(name="faulthandler")  # its thread for each test costs more than most tests; the parent watches
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    reporter = Reporter(session.config, parent)
    plugins.register(reporter)
    try:
        _run(session, reporter, indices)
    except (KeyboardInterrupt, pytest.exit.Exception) as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(BrokenPipeError):
            parent.send(Stopped(str(stop) or type(stop).__name__))
    finally:
        session._setupstate.teardown_exact(None)  # of what an early end has left
        capture.stop_global_capturing()


def _run(session: pytest.Session, reporter: Reporter, indices: list[int]) -> None:
    following = reporter.tests(indices)
    index = next(following, None)
    while index is not None and not (reporter.stopped() or session.shouldfail or session.shouldstop):
        after = next(following, None)
        item = session.items[index]
        nextitem = None if after is None else session.items[after]
        reporter.ran = Ran(index)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        reporter.send()
        index = after


class Reporter:
    """A plug-in of the worker's pytest: collects what is reported about the test that runs."""

    def __init__(self, config: pytest.Config, parent: Connection) -> None:
        self._config = config
        self._parent = parent
        self.ran = Ran(-1)

    def tests(self, indices: list[int] | None) -> Iterator[int]:
        """Those given, then group after group from the parent."""
        while indices is not None:
            yield from indices
            self._parent.send(Request())
            indices = self._parent.recv()

    def stopped(self) -> bool:
        """The parent sends nothing unrequested but that there is no more to run."""
        return self._parent.poll()

    def send(self) -> None:
        self._parent.send(self.ran)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self.ran.reports.append(data)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        shown = warnings.WarningMessage(
            str(warning_message.message),  # the warning itself may hold anything
            warning_message.category,
            warning_message.filename,
            warning_message.lineno,
        )
        self.ran.warned.append({"warning_message": shown, "when": when, "nodeid": nodeid, "location": location})
