"""A person's terminal for programs under test: what they write can be read, keys pressed, the window resized."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.eventually import LIMIT

TIMEOUT = LIMIT


class TerminalSession:
    """A program whose standard streams are one terminal of its own."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, *, width: int = 80, height: int = 24
    ) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(width, height)
        self._before = self.settings()
        self.seen = b""
        self.process = subprocess.Popen(
            list(command),
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=None if env is None else dict(env),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> TerminalSession:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT)
        os.close(self._ours)
        os.close(self._theirs)

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._theirs)

    @property
    def is_raw(self) -> bool:
        return not self.settings()[3] & termios.ICANON

    @property
    def is_as_before(self) -> bool:
        return self.settings() == self._before

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, text: str, seconds: float = TIMEOUT) -> str:
        """What was shown since the last time, up to and with `text`."""
        wanted = text.encode()
        end = time.monotonic() + seconds
        while wanted not in self.seen:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._ours], [], [], max(left, 0))
            if not ready:
                raise AssertionError(f"{text!r} was not shown within {seconds:g} s, but {self.seen!r}")
            self.seen += os.read(self._ours, 1 << 16)
        place = self.seen.index(wanted) + len(wanted)
        shown, self.seen = self.seen[:place], self.seen[place:]
        return shown.decode()

    def end(self, seconds: float = TIMEOUT) -> int:
        """The exit code, once there is one."""
        return self.process.wait(seconds)
