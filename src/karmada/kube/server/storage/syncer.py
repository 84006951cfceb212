"""Waiting for the disk without stopping the event loop: a small helper process syncs and checkpoints on request.

A thread would do if it were not for the interpreter lock: a thread that returns from fdatasync has to get the lock
back, and a busy event loop, which lets go of it for microseconds in every turn, wins that race nearly always. Measured
with a loop that is busy in turns of 0.2 ms, writes waited for up to two seconds for their thread. A process has its own
lock; it costs 3 MB, and a sync through it takes 40 µs longer than a direct one.

Should the helper die, its work is done in the loop instead: the same guarantees, only slower.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from karmada.kube.server.storage import sync_process

log = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    frames: int
    """in the WAL"""
    copied: int
    """of those, to the database file; the WAL starts anew with the next write if that is all of them"""


SyncDone = Callable[[OSError | None], None]
CheckpointDone = Callable[[Checkpoint | str], None]


class Unsynced:
    """In a Syncer's place where the state may die with the machine, though not with the process.

    What a killed process wrote is in the kernel's hands; nothing waits for the disk, and no helper is needed.
    """

    def __init__(self, path: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._path = path

    def sync(self, done: SyncDone) -> None:
        self._loop.call_soon(done, None)

    def checkpoint(self, done: CheckpointDone) -> None:
        self._loop.call_soon(lambda: done(_result(sync_process.checkpoint(str(self._path), "OFF"))))

    def close(self) -> None:
        """Do nothing: nothing is held open."""


class Syncer:
    """At most one sync and one checkpoint are requested at a time."""

    def __init__(self, path: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._path = path
        # A descriptor of our own, besides the helper's: a write error of the kernel is reported once to each of them.
        self._wal = os.open(f"{path}-wal", os.O_RDWR | os.O_CLOEXEC)
        self._sync_done: SyncDone | None = None
        self._checkpoint_done: CheckpointDone | None = None
        self._answers = b""
        self._socket, self._process = _start(path)
        self._loop.add_reader(self._socket.fileno(), self._readable)
        self._alive = True

    @property
    def pid(self) -> int:
        return self._process.pid

    def sync(self, done: SyncDone) -> None:
        """Make all that is in the WAL durable; `done` is called in a later turn of the loop."""
        self._sync_done = done
        self._order(b"s")

    def checkpoint(self, done: CheckpointDone) -> None:
        """Copy the WAL to the database file; `done` gets an error's text if that failed."""
        self._checkpoint_done = done
        self._order(b"c")

    def close(self) -> None:
        """End the process; nothing may be under way."""
        if self._alive:
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        self._process.wait()
        os.close(self._wal)

    def _order(self, order: bytes) -> None:
        if self._alive:
            try:
                self._socket.send(order)
            except OSError:
                self._lost()
        else:
            self._loop.call_soon(self._do_it_here)

    def _readable(self) -> None:
        try:
            received = self._socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._lost()
            return
        *lines, self._answers = (self._answers + received).split(b"\n")
        for line in lines:
            what, _, result = line.decode().partition(" ")
            if what == "s":
                self._synced(int(result))
            else:
                self._checkpointed(result)

    def _lost(self) -> None:
        log.error("the sync helper (pid %d) of %s is gone; syncing in the main process", self.pid, self._path)
        self._loop.remove_reader(self._socket.fileno())
        self._alive = False
        self._loop.call_soon(self._do_it_here)

    def _do_it_here(self) -> None:
        if self._sync_done is not None:
            self._synced(sync_process.fdatasync(self._wal))
        if self._checkpoint_done is not None:
            self._checkpointed(sync_process.checkpoint(str(self._path)))

    def _synced(self, errno: int) -> None:
        done, self._sync_done = self._sync_done, None
        if done is not None:
            done(OSError(errno, f"fdatasync: {os.strerror(errno)}") if errno else None)

    def _checkpointed(self, result: str) -> None:
        done, self._checkpoint_done = self._checkpoint_done, None
        if done is not None:
            done(_result(result))


def _result(text: str) -> Checkpoint | str:
    numbers = text.split()
    failed = len(numbers) != 2 or not all(number.lstrip("-").isdigit() for number in numbers)
    return text if failed else Checkpoint(int(numbers[0]), int(numbers[1]))


def _start(path: Path) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    wal = os.open(f"{path}-wal", os.O_RDWR | os.O_CLOEXEC)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", sync_process.__file__, str(theirs.fileno()), str(wal), str(path)],
            pass_fds=(theirs.fileno(), wal),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
        os.close(wal)
    ours.setblocking(False)
    return ours, process
