"""The output of one run of a container, as a file of lines with time and stream, in the format of container runtimes.

A line is `<time> <stdout|stderr> <F|P> <text>`; P marks a part of a line that is longer than 16 KiB. When the file
reaches its limit it is renamed, and only that one older file is kept. Readers that follow are woken by every write.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, Literal, NamedTuple

from karmada.kube.objects.times import parse_time
from karmada.kube.server.handlers.pod_logs import LogOptions
from karmada.kube.sim.kubelet.logs import stamp

StreamName = Literal["stdout", "stderr"]
LINE_BYTES = 16 * 1024
FILE_BYTES = 10 * 1024 * 1024
_NANO = 10**9


class Entry(NamedTuple):
    time: str
    stream: str
    text: bytes
    """With its line end, unless it is a part."""

    def shown(self, timestamps: bool) -> bytes:
        return f"{self.time} ".encode() + self.text if timestamps else self.text


class LogFile:
    """Written by one process, read by any number of requests."""

    def __init__(self, path: Path, now: Callable[[], float], *, limit: int = FILE_BYTES) -> None:
        self.path = path
        self._now = now
        self._limit = limit
        self._rest: dict[str, bytes] = {}
        self._size = 0
        self._file: IO[bytes] | None = None
        self.changed = asyncio.Event()
        """Set by the next write, and replaced by another then."""
        self.closed = False

    # writing

    def write(self, stream: StreamName, data: bytes) -> None:
        *lines, rest = (self._rest.get(stream, b"") + data).split(b"\n")
        for line in lines:
            self._lines(stream, line)
        while len(rest) > LINE_BYTES:
            self._append(stream, "P", rest[:LINE_BYTES])
            rest = rest[LINE_BYTES:]
        self._rest[stream] = rest
        if self._file is not None:
            self._file.flush()
        self._wake()

    def close(self) -> None:
        """The process has ended; a last line without an end is written, too."""
        for stream, rest in self._rest.items():
            if rest:
                self._lines(stream, rest)
        self._rest.clear()
        if self._file is not None:
            self._file.close()
        self._file, self.closed = None, True
        self._wake()

    def _lines(self, stream: str, line: bytes) -> None:
        while len(line) > LINE_BYTES:
            self._append(stream, "P", line[:LINE_BYTES])
            line = line[LINE_BYTES:]
        self._append(stream, "F", line)

    def _append(self, stream: str, kind: str, text: bytes) -> None:
        entry = f"{stamp(int(self._now() * _NANO))} {stream} {kind} ".encode() + text + b"\n"
        if self._size + len(entry) > self._limit:
            self._rotate()
        if self._file is None:
            self._file = self.path.open("ab")
            self.path.chmod(0o600)
        self._file.write(entry)
        self._size += len(entry)

    def _rotate(self) -> None:
        if self._file is not None:
            self._file.close()
            self.path.replace(_older(self.path))
        self._file, self._size = None, 0

    def _wake(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


def _older(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


# reading


def entries(path: Path) -> Iterator[Entry]:
    for file in (_older(path), path):
        if file.exists():
            yield from _parsed(file.read_bytes())


def _parsed(data: bytes) -> Iterator[Entry]:
    """Of whole lines."""
    for line in data.split(b"\n")[:-1]:
        time, stream, kind, text = line.split(b" ", 3)
        yield Entry(time.decode(), stream.decode(), text + b"\n" if kind == b"F" else text)


def history(path: Path, options: LogOptions) -> Iterator[bytes]:
    """The lines there are now, as the options select them."""
    cut = _Limit(options.limit)
    for entry in _selected(list(entries(path)), options):
        data = cut.take(entry.shown(options.timestamps))
        if not data:
            return
        yield data


async def followed(log: LogFile, options: LogOptions) -> AsyncIterator[bytes]:
    """The lines there are, then each as it is written, until the process ends."""
    cut = _Limit(options.limit)
    at = _Position(log.path)
    pending = _selected(at.read(), options)
    later = options._replace(tail=None)
    while True:
        for entry in pending:
            data = cut.take(entry.shown(options.timestamps))
            if not data:
                return
            yield data
        changed, closed = log.changed, log.closed
        pending = _selected(at.read(), later)
        if not pending:
            if closed:
                return
            await changed.wait()


def _selected(found: list[Entry], options: LogOptions) -> list[Entry]:
    if options.since is not None:
        found = [entry for entry in found if parse_time(entry.time) >= options.since]
    if options.stream != "All":
        found = [entry for entry in found if entry.stream == options.stream.lower()]
    if options.tail is not None:
        found = found[max(0, len(found) - options.tail) :]
    return found


class _Position:
    """How far a follower has read, also across a rotation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._offset = 0
        self._first = True

    def read(self) -> list[Entry]:
        found: list[Entry] = []
        if self._first:
            self._first = False
            older = _older(self._path)
            if older.exists():
                found += _parsed(older.read_bytes())
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return found
        with file:
            inode = _inode(file)
            if self._inode and inode != self._inode:
                found += self._rest_of_older()
                self._offset = 0
            self._inode = inode
            file.seek(self._offset)
            data = file.read()
            data = data[: data.rfind(b"\n") + 1]
            self._offset += len(data)
        return [*found, *_parsed(data)]

    def _rest_of_older(self) -> list[Entry]:
        older = _older(self._path)
        if not older.exists():
            return []
        with older.open("rb") as file:
            if _inode(file) != self._inode:
                return []
            file.seek(self._offset)
            return list(_parsed(file.read()))


def _inode(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_ino


class _Limit:
    """Counts down the bytes that may still be sent."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit

    def take(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        data = data[: self._left]
        self._left -= len(data)
        return data
