"""`python -m tests.side_by_side TITLE COMMAND ...`: run commands at the same time, show their output one by one.

Tests that wait for programs leave cores idle, which tests that compute can use. The first command writes to the
terminal as it runs; what the next has written meanwhile follows when the first has ended, and then goes on as it is
written.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOK_SECONDS = 0.2


class Session:
    """One command that runs. With a file its output goes there until it is shown."""

    def __init__(self, title: str, command: str, file: Path | None) -> None:
        self.title = title
        self._file = file
        words = shlex.split(command)
        if file is None:
            self._print_title()
            self._process = subprocess.Popen(words)
        else:
            with file.open("w") as output:
                self._process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT)

    def show(self) -> int:
        """Write its output until it ends; its exit code."""
        if self._file is not None:
            self._print_title()
            self._follow(self._file)
        return self._process.wait()

    def _print_title(self) -> None:
        print(f"==> {self.title}", flush=True)

    def _follow(self, file: Path) -> None:
        with file.open() as output:
            ended = False
            while not ended:
                ended = self._process.poll() is not None
                print(output.read(), end="", flush=True)
                if not ended:
                    time.sleep(LOOK_SECONDS)

    def interrupt(self) -> None:
        """As Ctrl-C does, which has reached it already if it was typed on the terminal."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """A process that is being started when the interrupt comes would run on unknown to us."""
    interrupted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: interrupted.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


def run(titles_and_commands: list[str], folder: Path) -> int:
    """0 if all commands succeed."""
    pairs = list(zip(titles_and_commands[::2], titles_and_commands[1::2], strict=True))
    sessions: list[Session] = []
    try:
        with interrupts_deferred():
            for number, (title, command) in enumerate(pairs):
                sessions.append(Session(title, command, folder / str(number) if number else None))
        codes = [session.show() for session in sessions]
    finally:
        for session in sessions:
            session.interrupt()
    for session, code in zip(sessions, codes, strict=True):
        print(f"==> {session.title}: {f'FAILED (exit code {code})' if code else 'ok'}")
    return int(any(codes))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            code = run(sys.argv[1:], Path(folder))
        except KeyboardInterrupt:
            code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
