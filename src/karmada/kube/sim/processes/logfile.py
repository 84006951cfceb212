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
from karmada.kube.sim.kubelet.logs import Cut, stamp

StreamName = Literal["stdout", "stderr"]
LINE_BYTES = 16 * 1024
FILE_BYTES = 10 * 1024 * 1024
_NANO = 10**9
_TAIL_BYTES = 64 * 1024
"""How much of a log is read first when only its last lines are wanted."""


class Entry(NamedTuple):
    time: str
    stream: str
    text: bytes
    """With its line end."""

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
        """Finish the log of a process that has ended; a last line without an end is written, too."""
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


def history(path: Path, options: LogOptions) -> Iterator[bytes]:
    """Return the lines there are now, as the options select them."""
    cut = Cut(options.limit)
    for entry in _selected(_Reader(path).first(options.tail), options):
        data = cut.take(entry.shown(options.timestamps))
        if not data:
            return
        yield data


async def followed(log: LogFile, options: LogOptions) -> AsyncIterator[bytes]:
    """Yield the lines there are, then each as it is written, until the process ends."""
    cut = Cut(options.limit)
    reader = _Reader(log.path)
    pending = _selected(reader.first(options.tail), options)
    later = options._replace(tail=None)
    while True:
        for entry in pending:
            data = cut.take(entry.shown(options.timestamps))
            if not data:
                return
            yield data
        changed, closed = log.changed, log.closed
        pending = _selected(reader.next(), later)
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


class _Reader:
    """Reads a log from its end or its beginning on, and then what is written, also across a rotation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._offset = 0
        self._parts: dict[str, Entry] = {}
        """Lines whose last part has not come yet, by stream."""

    def first(self, tail: int | None) -> list[Entry]:
        """Return all lines; if only some of the last ones are wanted, at least those, without reading all."""
        size = _TAIL_BYTES
        while True:
            data, all_of_it = _ending(self._path, None if tail is None else size)
            self._parts.clear()
            found = self._parsed(data)
            if all_of_it or len(found) > (tail or 0):
                break
            size *= 4
        if self._path.exists():
            found_at = self._path.stat()
            self._inode, self._offset = found_at.st_ino, found_at.st_size
        return found

    def next(self) -> list[Entry]:
        """Return what was written since the last call."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return []
        found: list[Entry] = []
        with file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self._inode:
                found += self._parsed(self._rest_of_older())
                self._inode, self._offset = inode, 0
            file.seek(self._offset)
            data = file.read()
            self._offset += len(data)
        return found + self._parsed(data)

    def _rest_of_older(self) -> bytes:
        """Return what was not read of the file before; all of it if there was none yet."""
        older = _older(self._path)
        if not older.exists() or (self._inode and older.stat().st_ino != self._inode):
            return b""
        return _from(older, self._offset)

    def _parsed(self, data: bytes) -> list[Entry]:
        """Return the lines that are complete; their parts are put together."""
        found = []
        for line in data.split(b"\n")[:-1]:
            time, stream, kind, text = line.split(b" ", 3)
            name = stream.decode()
            entry = self._parts.pop(name, Entry(time.decode(), name, b""))
            if kind == b"F":
                found.append(entry._replace(text=entry.text + text + b"\n"))
            else:
                self._parts[name] = entry._replace(text=entry.text + text)
        return found


def _ending(path: Path, size: int | None) -> tuple[bytes, bool]:
    """Return the last bytes of a log from the beginning of a line on, and whether that is all; no size: all of it."""
    sizes = [file.stat().st_size if file.exists() else 0 for file in (_older(path), path)]
    if size is None or size >= sum(sizes):
        return b"".join(_from(file, 0) for file in (_older(path), path)), True
    data = _from(path, max(0, sizes[1] - size))
    if len(data) < size:
        data = _from(_older(path), sizes[0] - (size - len(data))) + data
    return data[data.find(b"\n") + 1 :], False


def _from(path: Path, offset: int) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read()
