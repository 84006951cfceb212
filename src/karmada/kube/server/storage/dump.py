"""A portable copy of everything a store holds at one moment, and its way back into any store.

The file is gzipped, a JSON document a line: first a header, then `{"key":…,"object":…}` for each key in key order, the
object being the stored bytes as they are, or `{"key":…,"encrypted":…}` with encrypted bytes in base64: a copy needs no
keys, and what is encrypted in the store is so in the copy. So objects come back byte for byte, uids and all; only
revisions are new. A last line repeats the count, so that a file that was cut off is not taken for a whole one.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from karmada.kube.server.storage.encryption import MARK
from karmada.kube.server.storage.interface import Page, RevisionConflict, Store, Stored

FORMAT = "pykarmada-backup"
VERSION = 2
_VERSIONS = (1, VERSION)
_PAGE = 1000
_WRITES_AT_ONCE = 200
"""Each has to be done within the store's time limit, however slow the store is."""
Progress = Callable[[int], None]


class Source(Protocol):
    """A store to copy, or a reader of one."""

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page: ...


class BadDump(ValueError):
    """The file is not a whole copy that this program can read."""


class Header(msgspec.Struct):
    format: str
    version: int
    revision: int


class Line(msgspec.Struct, omit_defaults=True):
    key: str
    object: msgspec.Raw = msgspec.Raw()
    encrypted: bytes = b""

    @property
    def value(self) -> bytes:
        return self.encrypted or bytes(self.object)


class Footer(msgspec.Struct):
    objects: int


async def back_up(source: Source, path: Path, progress: Progress = lambda _count: None) -> int:
    """Write everything `source` holds now into a new file (0600); returns the number of objects."""
    count, after, revision = 0, "", 0
    with _new_file(path) as out:
        while True:
            page = await source.range("", after=after, limit=_PAGE, revision=revision)
            if not revision:
                revision = page.revision
                _write(out, msgspec.json.encode(Header(FORMAT, VERSION, revision)))
            for stored in page.items:
                _write(out, msgspec.json.encode(_line(stored)))
            count += len(page.items)
            progress(count)
            if not page.remaining:
                break
            after = page.items[-1].key
        _write(out, msgspec.json.encode(Footer(count)))
    return count


def _line(stored: Stored) -> Line:
    if stored.value.startswith(MARK):
        return Line(stored.key, encrypted=stored.value)
    return Line(stored.key, msgspec.Raw(stored.value))


@contextmanager
def _new_file(path: Path) -> Iterator[gzip.GzipFile]:
    """Yield a file of our own that goes away again if writing it fails."""
    path.touch(mode=0o600, exist_ok=False)
    try:
        with gzip.open(path, "wb", compresslevel=4) as out:
            yield out
    except BaseException:
        path.unlink()
        raise


def _write(out: gzip.GzipFile, line: bytes) -> None:
    out.write(line)
    out.write(b"\n")


async def restore(store: Store, path: Path, progress: Progress = lambda _count: None) -> int:
    """Write what the file holds into an empty store; returns the number of objects."""
    _check_whole(path)
    if (await store.range("", limit=1)).items:
        raise BadDump("the store is not empty; restore into a new one")
    count = 0
    batch: list[Line] = []
    for line in _lines(path):
        batch.append(line)
        if len(batch) == _WRITES_AT_ONCE:
            count += await _put(store, batch)
            progress(count)
            batch = []
    count += await _put(store, batch)
    progress(count)
    return count


async def _put(store: Store, lines: list[Line]) -> int:
    try:
        await asyncio.gather(*(store.write(line.key, line.value, expected=0) for line in lines))
    except RevisionConflict as conflict:
        raise BadDump(f"{conflict.key} is there already: somebody else writes into this store") from conflict
    return len(lines)


def _check_whole(path: Path) -> None:
    """Read the file once to its end before anything is written."""
    for _ in _lines(path):
        continue


def _lines(path: Path) -> Iterator[Line]:
    count = 0
    last: bytes | None = None
    try:
        with gzip.open(path, "rb") as file:
            _check_header(next(file, b""))
            for raw in file:
                if last is not None:
                    yield msgspec.json.decode(last, type=Line)
                    count += 1
                last = raw
            footer = msgspec.json.decode(last or b"", type=Footer)
    except (OSError, EOFError, msgspec.DecodeError) as error:
        raise BadDump(f"{path} is not a whole backup: {error}") from error
    if footer.objects != count:
        raise BadDump(f"{path} is not a whole backup: it has {count} objects and should have {footer.objects}")


def _check_header(raw: bytes) -> None:
    header = msgspec.json.decode(raw, type=Header)
    if header.format != FORMAT:
        raise BadDump(f"the file is no backup of this program, but {header.format!r}")
    if header.version not in _VERSIONS:
        raise BadDump(f"the backup has version {header.version}; this program knows version {VERSION}")
