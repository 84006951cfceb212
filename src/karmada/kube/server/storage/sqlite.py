"""The store on one disk: a log of revisions in SQLite, where an acknowledged write is on disk and many share one sync.

Writing. All SQL runs on the event loop's thread; a statement takes microseconds, less than handing it to a thread. The
writes that arrive in one turn of the loop become one transaction. SQLite (WAL, synchronous=NORMAL) does not sync on
commit; instead a helper process (syncer.py explains why not a thread) calls fdatasync on its own descriptor of the -wal
file, which syncs the inode whoever wrote to it, and only when that returned are the writers of the batch answered and
its events published. While one sync runs, later batches commit and then share the next one. Until it is durable a
write is invisible: reads look at most at the durable revision.

Why an acknowledged write survives a power cut. Its frames, up to and including a commit frame, were in the WAL before
the fdatasync began, which also makes the file's length durable; recovery replays every complete transaction. The WAL is
only overwritten from its start after a checkpoint: that syncs the WAL, copies its pages to the database file, syncs
that file, and only then marks the frames as copied, all inside SQLite (synchronous=NORMAL keeps exactly these syncs).
The first write into a reused WAL syncs the new header before any frame, so frames of the old and the new round are
never mistaken for one another. If a batch is checkpointed before its own fdatasync, it already is in the synced
database file. The WAL's directory entry is synced once when the store opens, and the file stays until the store is
closed.

Checkpoints run in the helper, on a connection of its own, so that their syncs never hold up the loop. They do not block
writers; if writers outrun them until the WAL is large, writes (not the loop) wait for one checkpoint to catch up.

Failure. A transaction that fails because the file is locked is rolled back, its writers get StoreUnavailable, and the
next batch tries again. One that fails because the disk is full is rolled back, too; sqlite_space then lets deletions,
what leads to them, and compaction go on. After any other error, above all a failed sync (the kernel may have
dropped the pages, a second sync would lie), the store refuses writes until it is opened anew.

Damage. Each row has a checksum (sqlite_log), which every read verifies, and the last acknowledged revision is kept
beside the database. A store that is damaged or ends before that revision is not opened (sqlite_check), unless the loss
is accepted.

One process at a time is ensured by flock on a file beside the database.

The state at a revision is the newest row of each key up to it, found by the index alone. Compaction walks the
revisions it gives up, deletes what they replaced and the deletions among them, in small transactions sized by the
clock; an interrupted walk goes on at the next opening.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.encryption import AS_STORED, Encryption
from karmada.kube.server.storage.interface import (
    Event,
    Failure,
    Page,
    RevisionConflict,
    Stored,
    StoreFull,
    StoreUnavailable,
    Write,
    prefix_end,
    resource_prefix,
)
from karmada.kube.server.storage.local import LocalStore
from karmada.kube.server.storage.packing import pack
from karmada.kube.server.storage.sqlite_checkpoints import Checkpoints
from karmada.kube.server.storage.sqlite_files import PAGE_SIZE, Acknowledged, lock, sync_file
from karmada.kube.server.storage.sqlite_log import (
    APPEND,
    COUNT_ROWS,
    EXISTS,
    FIRST_KEY,
    HISTORY,
    LAST_KEY,
    LATEST,
    NEXT,
    OLDEST,
    PREVIOUS,
    SET_META,
    SWEEP,
    add_checksums,
    begin,
    checksum,
    count_range,
    damaged_row,
    intact,
    last_revisions,
    prepare_schema,
    read_range,
    refusal,
)
from karmada.kube.server.storage.sqlite_opening import Opening
from karmada.kube.server.storage.sqlite_space import RESERVE, SMALL_RESERVE, Space, is_full
from karmada.kube.server.storage.syncer import Syncer, Unsynced

log = logging.getLogger(__name__)

_HISTORY_WINDOW = 1_000  # revisions looked at in one step of a history read
_SMALLEST_STEP = 10
_SWEEP_SECONDS = 0.001  # how long one step of a compaction may take
_AT_ONCE = 64
"""Writers that go on in one turn of the event loop: each does a good part of a millisecond's work before it waits."""
_PASSING_ERRORS = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_Outcomes = list[int | Failure]
_Answer = asyncio.Future[_Outcomes]


class _Pending(NamedTuple):
    """Writes that came together: one of them, or a group."""

    writes: Sequence[Write]
    answer: _Answer


class _Batch(NamedTuple):
    """A committed transaction whose writers wait for the sync."""

    revision: int
    events: list[Event]
    answers: list[tuple[_Answer, _Outcomes]]


class SqliteStore(LocalStore):
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synced: bool = True,
        accept_loss: bool = False,
        encryption: Encryption = AS_STORED,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Without `synced` an answered write survives the process, but perhaps not the machine.

        `accept_loss` opens a damaged store without what is lost, instead of refusing it.
        """
        super().__init__()
        self.path = Path(path)
        self._accept_loss = accept_loss
        self._encryption = encryption
        self._now = now
        self._synced_writes = synced
        self._revision = 0
        self._first = 0
        """The revision at which this process began: all later ones are its own."""
        self._committed = 0
        self._error: Exception | None = None
        self._broken = False
        self._pending: list[_Pending] = []
        self._flushing = False
        self._unsynced: list[_Batch] = []
        self._syncing: list[_Batch] = []
        self._answers: deque[tuple[_Answer, _Outcomes]] = deque()
        """Answers to writes that are durable."""
        self._idle: list[asyncio.Future[None]] = []
        self._space = Space(self.path, RESERVE if synced else SMALL_RESERVE)
        self._wal = Checkpoints(self.path, self._space, self._run_out, self._checkpointed)
        self._syncer: Syncer | Unsynced

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def last_error(self) -> Exception | None:
        return super().last_error or self._error or self._space.exceeded

    # Opening and closing

    async def open(self) -> None:
        """StoreLocked if another process has it open, StoreUnavailable if it cannot be opened."""
        self._loop = asyncio.get_running_loop()
        with ExitStack() as undo:
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                undo.callback(os.close, lock(self.path))
                self._acknowledged = Acknowledged(self.path)
                undo.callback(self._acknowledged.close)
                self._space.open()
                undo.callback(self._space.close)
                acknowledged = self._acknowledged.revision
                opening = Opening(self.path, acknowledged, synced=self._synced_writes, accept_loss=self._accept_loss)
                self._db = opening.open(self._space, self._open_log)
                undo.callback(self._db.close)
                self._space.watch(self._db)
                self._syncer = self._wal.syncer = Syncer(self.path) if self._synced_writes else Unsynced(self.path)
                undo.callback(self._syncer.close)
                await self._sweep()
            except (sqlite3.Error, OSError) as e:
                raise StoreUnavailable(f"cannot open {self.path}: {e}") from e
            self._close_files = undo.pop_all()

    def _open_log(self, db: sqlite3.Connection) -> None:
        self._cursor = db.cursor()
        prepare_schema(self._cursor, self.path)
        meta = dict(self._cursor.execute("SELECT name, value FROM meta").fetchall())
        self._compacted, self._swept, self._legacy = meta["compacted"], meta["swept"], meta["legacy"]
        self._first = self._revision = self._committed = begin(self._cursor, self._compacted, self._now())
        self._cursor.execute(SET_META, (self._compacted, "compacted"))  # any write: it makes the WAL file
        if self._synced_writes:
            sync_file(f"{self.path}-wal")
            sync_file(self.path.parent)
        db.execute("PRAGMA busy_timeout = 0")  # from now on a lock held by another process must not stop the loop

    async def close(self) -> None:
        """Wait for the writes in flight; what comes later is refused."""
        if self._closed:
            return
        self._end()
        while self._pending or self._unsynced or self._syncing or self._answers or self._wal.running:
            await self._something_ends()
        self._close_files.close()

    async def _something_ends(self) -> None:
        turn = self._loop.create_future()
        self._idle.append(turn)
        await turn

    def _settled(self) -> None:
        """Go on after a batch or a checkpoint has ended."""
        idle, self._idle = self._idle, []
        for turn in idle:
            if not turn.done():
                turn.set_result(None)

    # Reading

    def peek(self, key: str) -> Stored | None:
        return self._at(key, self._revision)

    def _at(self, key: str, revision: int) -> Stored | None:
        rows = self._read(LATEST, (key, revision))
        return self._stored(key, rows[0] if rows else None)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        revision = self._readable(revision)
        items = self._scan(prefix, after, limit, revision)
        found = [Stored(key, self._encryption.decode(key, value), at) for key, value, at in items]
        with self._reading():
            left = count_range(self._cursor, prefix, found[-1].key, revision) if 0 < limit == len(found) else 0
        return Page(found, revision, left)

    def scan(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> list[Stored]:
        items = self._scan(prefix, after, limit, self._readable(revision))
        return [Stored(key, self._encryption.reveal(key, value), at) for key, value, at in items]

    def _scan(self, prefix: str, after: str, limit: int, revision: int) -> list[Stored]:
        with self._reading():
            return read_range(self._cursor, self.path, prefix, after, limit, revision)

    def oldest(self, prefix: str, *, since: int, limit: int) -> list[Stored]:
        rows = self._read(OLDEST, (since, self._revision, prefix, prefix_end(prefix) or LAST_KEY, limit))
        found = (self._stored(key, (revision, value, total)) for key, revision, value, total in rows)
        return [stored for stored in found if stored is not None]

    def sizes(self, prefix: str, most: int) -> dict[str, int]:
        """Count by leaps through the index: what is counted is all that is read."""
        counts: dict[str, int] = {}
        low, end = prefix, prefix_end(prefix) or LAST_KEY
        while rows := self._read(FIRST_KEY, (low, end)):
            start = resource_prefix(rows[0][0])
            low = prefix_end(start)
            [(counts[start],)] = self._read(COUNT_ROWS, (start, low, most))
        return counts

    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:
        end = prefix_end(prefix) or LAST_KEY
        until = min(until, self._revision)
        events: list[Event] = []
        while True:
            self._check_compacted(since)
            upto = min(until, self._ahead(since, _HISTORY_WINDOW))
            left = limit - len(events) if limit else -1
            rows = self._read(HISTORY, (since, upto, prefix, end, left))
            for key, value, revision, total, old, replaced, old_total in rows:
                previous = self._stored(key, (replaced, old, old_total)) if replaced else None
                new = self._stored(key, (revision, value, total))
                events.append(Event(key, new.value if new is not None else None, revision, previous))
            since = upto
            if since >= until or len(events) == limit > 0:
                return events
            await asyncio.sleep(0)

    def has_given(self, revision: int) -> bool:
        if revision >= self._first or revision <= self._compacted:
            return True
        return bool(self._read(EXISTS, {"rev": revision}))

    def earlier(self, revision: int, writes: int) -> int:
        rows = self._read(PREVIOUS, (revision, writes))
        return rows[0][0] if rows else self._compacted

    def _ahead(self, revision: int, writes: int) -> int:
        """Return the revision of the last of so many writes after this one."""
        rows = self._read(NEXT, (revision, writes - 1))
        return rows[0][0] if rows else self._committed

    def _stored(self, key: str, row: tuple[int, bytes | None, int | None] | None) -> Stored | None:
        """Return what a row of LATEST says; a deletion is nothing."""
        if row is None:
            return None
        revision, value, total = row
        if not intact(revision, key, value, total):
            raise damaged_row(self.path, revision, key)
        return None if value is None else Stored(key, self._encryption.decode(key, value), revision)

    def is_stale(self, key: str, /) -> bool:
        return self._encryption.is_stale(key)

    def _read(self, sql: str, arguments: tuple[Any, ...] | dict[str, Any]) -> list[Any]:
        with self._reading():
            return self._cursor.execute(sql, arguments).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise StoreUnavailable for an error of SQLite."""
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT:
                raise refusal(self.path, [str(error)]) from error
            raise StoreUnavailable(f"cannot read {self.path}: {error}") from error

    # Writing

    async def write(self, key: str, value: bytes | None, *, expected: int, obj: Obj | None = None) -> int:
        [outcome] = await self._enqueue((Write(key, value, expected, None, obj),))
        if isinstance(outcome, int):
            return outcome
        raise outcome

    async def write_all(self, writes: Sequence[Write]) -> list[int | Failure]:
        """They become one transaction, with one answer for all of them."""
        try:
            return [*await self._enqueue(writes)]
        except StoreUnavailable as failure:
            return [failure] * len(writes)

    def _enqueue(self, writes: Sequence[Write]) -> _Answer:
        for write in writes:
            if write.expected == 0 and write.value is None and write.packed is None:
                raise ValueError(f"{write.key}: deleting needs the revision of what is deleted")
        answer: _Answer = self._loop.create_future()
        if self._closed or self._broken:
            failure = StoreUnavailable(str(self.last_error))
            failure.__cause__ = self.last_error
            answer.set_exception(failure)
            return answer
        self._pending.append(_Pending(writes, answer))
        self._schedule_flush()
        return answer

    def _schedule_flush(self) -> None:
        if not self._flushing and not self._wal.hold:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Commit what gathered since the last turn of the loop, and see to it that it is synced."""
        self._flushing = False
        pending, self._pending = self._pending, []
        if self._broken:
            self._refuse([one.answer for one in pending])
            return
        if not self._space.reserved:
            self._space.check()
        try:
            batch = self._commit(pending)
        except Exception as e:
            self._roll_back(e)
            if is_full(e) and self._space.exceeded is None:
                self._run_out(e)
                self._pending[:0] = pending
                self._schedule_flush()
            else:
                self._refuse([one.answer for one in pending])
            if not isinstance(e, sqlite3.Error):
                raise  # a mistake of ours, which the loop logs; its writers do not wait for ever
            return
        self._error = None
        self._unsynced.append(batch)
        self._sync()
        self._wal.start_if_due()

    def _run_out(self, error: Exception) -> None:
        """Use the reserve when there is no space, first for the WAL, so that it can be written from its start again."""
        self._error = None
        self._space.exceed(str(error))
        if not self._wal.running:
            self._wal.start()

    def _commit(self, pending: list[_Pending]) -> _Batch:
        refused: Mapping[int, StoreFull] = {}
        if self._space.exceeded is not None:
            writes = [write for one in pending for write in one.writes]
            refused = self._space.refused(writes, lambda write: self._at(write.key, write.expected))
        self._cursor.execute("BEGIN IMMEDIATE")
        revision = self._committed
        latest = last_revisions(self._cursor, [write.key for one in pending for write in one.writes])
        rows: list[tuple[int, str, int, int, bytes | None, int]] = []
        events: list[Event] = []
        answers: list[tuple[_Answer, _Outcomes]] = []
        start = "\0"  # no key starts with it
        for some, answer in pending:
            if answer.done():
                continue  # its writer has given up
            outcomes: _Outcomes = []
            answers.append((answer, outcomes))
            for write in some:
                if refused and id(write) in refused:
                    outcomes.append(refused[id(write)])
                    continue
                key, value, expected, packed, obj = write
                current = latest[key]
                if current != expected:
                    outcomes.append(RevisionConflict(key, current))
                    continue
                revision += 1
                if packed is None and value is not None:
                    packed = pack(value)
                latest[key] = 0 if packed is None else revision
                if not key.startswith(start):  # for many writes of a resource once
                    start = resource_prefix(key)
                    encode = self._encryption.encoder(start)
                stored = packed if packed is None or encode is None else encode(key, packed)
                rows.append((revision, key, packed is not None, current, stored, checksum(revision, key, stored)))
                events.append(Event(key, value, revision, None, packed, obj))
                outcomes.append(revision)
                self._wal.pages += 2 + (len(stored) // PAGE_SIZE if stored else 0)
        if rows:
            self._cursor.executemany(APPEND, rows)
        self._cursor.execute("COMMIT")
        self._committed = revision
        return _Batch(revision, events, answers)

    def _roll_back(self, error: Exception) -> None:
        self._error = error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        self._broken = isinstance(error, sqlite3.Error) and code not in _PASSING_ERRORS
        if self._db.in_transaction:
            try:
                self._cursor.execute("ROLLBACK")
            except sqlite3.Error as e:
                self._error, self._broken = e, True

    def _refuse(self, answers: list[_Answer]) -> None:
        for answer in answers:
            if not answer.done():
                failure = StoreUnavailable(f"cannot write to {self.path}: {self._error}")
                failure.__cause__ = self._error
                answer.set_exception(failure)
        self._settled()

    def _sync(self) -> None:
        if self._syncing:
            return  # goes on when that sync has ended
        self._syncing, self._unsynced = self._unsynced, []
        if self._syncing[-1].revision == self._revision:
            self._answer()  # nothing but conflicts with what is durable already
        else:
            self._syncer.sync(self._synced)

    def _synced(self, error: OSError | None) -> None:
        if error is not None:
            self._error, self._broken = error, True
            batches, self._syncing, self._unsynced = self._syncing + self._unsynced, [], []
            self._refuse([answer for batch in batches for answer, _ in batch.answers])
            return
        try:
            self._answer()
            self._acknowledge()
        finally:
            if self._unsynced:
                self._sync()

    def _acknowledge(self) -> None:
        if self._synced_writes:
            try:
                self._acknowledged.record(self._revision)
            except OSError as e:
                if not is_full(e):
                    self._error, self._broken = e, True
                elif self._space.exceeded is None:  # on a file system that never writes in place
                    self._run_out(e)

    def _answer(self) -> None:
        """Report that batches are durable: to the listeners first, then to the writers."""
        batches, self._syncing = self._syncing, []
        self._revision = batches[-1].revision
        try:
            events = batches[0].events if len(batches) == 1 else [event for batch in batches for event in batch.events]
            if events:
                self._publish(events)
        finally:
            releasing = bool(self._answers)
            for batch in batches:
                self._answers.extend(batch.answers)
            if not releasing:
                self._release()

    def _release(self) -> None:
        """Let some writers go on, and others with the next turns: requests and timers do not wait for all of them."""
        for _ in range(min(_AT_ONCE, len(self._answers))):
            answer, outcomes = self._answers.popleft()
            if not answer.done():
                answer.set_result(outcomes)
        if self._answers:
            self._loop.call_soon(self._release)
        else:
            self._settled()

    def _checkpointed(self) -> None:
        if self._pending:
            self._schedule_flush()
        self._settled()

    # Compaction

    async def compact(self, revision: int) -> None:
        revision = min(revision, self._revision)
        await self._until_checkpointed()
        if revision > self._compacted:
            self._transaction(lambda: self._cursor.execute(SET_META, (revision, "compacted")))
            self._compacted = revision
            await self._sweep()
        await self._in_steps(lambda: self._legacy, self._sum_step)

    async def _sweep(self) -> None:
        """Delete what the revisions up to the compacted one replaced."""
        await self._in_steps(lambda: self._compacted - self._swept, self._sweep_step)

    async def _in_steps(self, left: Callable[[], int], step: Callable[[int], None]) -> None:
        """Small transactions over so many revisions each, and pauses as long as they took."""
        size = 50
        while left() > 0 and not self._closed:
            began = time.perf_counter()
            try:
                step(size)
            except StoreUnavailable as error:
                if not is_full(error.__cause__) or size == _SMALLEST_STEP:
                    raise
                size = _SMALLEST_STEP
                await self._empty_wal()
                continue
            took = time.perf_counter() - began
            size = max(_SMALLEST_STEP, min(2_000, int(size * _SWEEP_SECONDS / max(took, 1e-5))))
            self._wal.start_if_due()
            await asyncio.sleep(took)
            await self._until_checkpointed()

    async def _empty_wal(self) -> None:
        """Empty the WAL, whose content may be all that fills the disk."""
        if not self._wal.running:
            self._wal.start()
        while self._wal.running and not self._closed:
            await self._something_ends()

    async def _until_checkpointed(self) -> None:
        """While disk space is scarce, what is in the WAL is copied before more is written."""
        while self._wal.hold and not self._closed:
            await self._something_ends()

    def _sweep_step(self, size: int) -> None:
        low, high = self._swept, min(self._compacted, self._ahead(self._swept, size))

        def sweep() -> None:
            for sql in SWEEP:
                self._cursor.execute(sql, (low, high))
                self._wal.pages += 2 * self._cursor.rowcount
            self._cursor.execute(SET_META, (high, "swept"))

        self._transaction(sweep)
        self._swept = high

    def _sum_step(self, size: int) -> None:
        """Give checksums to some of what was stored before there were any."""
        rows = self._read(PREVIOUS, (self._legacy, size))
        low = rows[0][0] if rows else 0

        def add() -> None:
            self._wal.pages += 2 * add_checksums(self._cursor, low, self._legacy)

        self._transaction(add)
        self._legacy = low

    def _transaction(self, work: Callable[[], object]) -> None:
        if self._closed or self._broken:
            raise StoreUnavailable(str(self.last_error)) from self.last_error
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
            work()
            self._cursor.execute("COMMIT")
            self._error = None
        except sqlite3.Error as e:
            self._roll_back(e)
            if is_full(e) and self._space.exceeded is None:
                self._run_out(e)
                self._transaction(work)
                return
            raise StoreUnavailable(f"cannot compact {self.path}: {e}") from e
