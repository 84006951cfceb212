"""The store on an etcd cluster (v3 gRPC), shared with other servers.

The client is our own and thin, on grpc.aio: the asyncio clients there are for etcd have had no release for years, and
none distinguishes a request that was not sent from one whose answer was lost, which is what a compare-and-swap hangs
on. A few messages are all it takes (etcd_messages); channels and failover are in etcd_connection, watch streams in
etcd_watch.

A key lies under the store's prefix. Behind each value stand a line end and a stamp that no other write has. When the
answer to a write is lost (its member died, its time was up), the store reads the key's history since then: the stamp
distinguishes its own write from an equal one of another server. If it is there, the write is a success with the
revision it has; if it is not, the write is sent again, which is safe because it is a compare-and-swap, and a refusal of
that is checked against the history once more. A deletion leaves no stamp: if the key was deleted meanwhile, it is
unknown by whom, and the caller gets StoreUnavailable, as always when the time does not suffice to find out. A success
is never guessed.

A version whose keys or values earlier ones would misread writes its format beside them (`_FORMAT_KEY`); without it the
format is 1. It is read with the first request of a store that is opened.

A watch resumes on another member by itself. The latest revision, which every read needs, is read once for all
concurrent requests.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

from karmada.kube.client.grpc_library import grpc
from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.encryption import AS_STORED, Encryption
from karmada.kube.server.storage.etcd_connection import Connection, Refused, Tls, Unanswered, attempts
from karmada.kube.server.storage.etcd_messages import (
    COMPACT,
    EQUAL,
    MOD,
    PUT,
    RANGE,
    STATUS,
    TXN,
    WATCH,
    CompactionRequest,
    Compare,
    DeleteRangeRequest,
    PutRequest,
    RangeRequest,
    RequestOp,
    StatusRequest,
    TxnRequest,
    WatchCreateRequest,
    WatchRequest,
)
from karmada.kube.server.storage.etcd_watch import INTERNAL, Stream, Wanted
from karmada.kube.server.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    NewerFormat,
    Page,
    Progress,
    RevisionConflict,
    Stored,
    StoreFull,
    StoreUnavailable,
    prefix_end,
)
from karmada.kube.server.storage.shared_read import SharedRead

DEFAULT_PREFIX = "/registry-karmada/"
TIMEOUT = 5.0
_PAGE = 500
_FIRST_KEY = "\1"  # behind the store's own keys
FORMAT = 1
_FORMAT_KEY = f"{INTERNAL}format"
_HEARTBEAT_SECONDS = 2.0
_SICK_HEARTBEAT_SECONDS = 0.5
_STAMP_LENGTH = 25
_COMPACTED = "required revision has been compacted"
_NO_SPACE = "database space exceeded"
_NO_SPACE_ALARM = "NOSPACE"
_FUTURE = "required revision is a future revision"
log = logging.getLogger(__name__)


class TlsFiles(NamedTuple):
    """Where the certificates lie; `certificate` and `key` may be left out together."""

    authority: Path
    certificate: Path | None = None
    key: Path | None = None

    def read(self) -> Tls:
        own = (self.certificate, self.key)
        return Tls(self.authority.read_bytes(), *(path.read_bytes() if path else b"" for path in own))


class Layout:
    """How keys and values lie in etcd."""

    def __init__(self, prefix: str, encryption: Encryption = AS_STORED) -> None:
        self.encryption = encryption
        self.prefix = prefix.rstrip("/") + "/"
        self._root = self.prefix.encode()
        self._writer = os.urandom(8).hex()
        self._number = itertools.count()

    def raw(self, key: str) -> bytes:
        return self._root + key.encode()

    def range(self, prefix: str) -> tuple[bytes, bytes]:
        return self.raw(prefix), prefix_end(self.prefix + prefix).encode()

    def key(self, raw: bytes) -> str:
        return raw[len(self._root) :].decode()

    def stamped(self, key: str, value: bytes) -> bytes:
        """Return the value as it is stored by one write, and by no other."""
        value = self.encryption.encode(key, value)
        return b"%b\n%b%08x" % (value, self._writer.encode(), next(self._number) & 0xFFFFFFFF)

    def value(self, key: str, raw: bytes) -> bytes:
        return self.encryption.decode(key, raw[:-_STAMP_LENGTH])

    def stored(self, kv: Any) -> Stored:
        key = self.key(kv.key)
        return Stored(key, self.value(key, kv.value), kv.mod_revision)


class EtcdStore:
    def __init__(
        self,
        addresses: Sequence[str],
        *,
        prefix: str = DEFAULT_PREFIX,
        tls: TlsFiles | None = None,
        timeout: float = TIMEOUT,
        encryption: Encryption = AS_STORED,
    ) -> None:
        """`timeout` bounds every call, with all its tries."""
        self.addresses = tuple(addresses)
        self.tls = tls
        self.timeout = timeout
        self.layout = Layout(prefix, encryption)
        self._connection: Connection | None = None
        self._revision = 0
        self._wanted = Wanted()
        self._latest = SharedRead(self._read_latest, timeout)
        self._alarm: StoreUnavailable | None = None
        self._heart: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Wait for a cluster that is just starting, three time-outs long."""
        self._connection = Connection(self.addresses, self.tls.read() if self.tls else None, timeout=self.timeout)
        deadline = asyncio.get_running_loop().time() + 3 * self.timeout
        try:
            answer = await self._connection.read(RANGE, RangeRequest(key=self.layout.raw(_FORMAT_KEY)), deadline)
            self._check_format(int(answer.kvs[0].value) if answer.kvs else FORMAT)
        except BaseException:
            await self._connection.close()
            raise
        self._saw(answer.header.revision)
        self._heart = asyncio.create_task(self._beat(self._connection), name="etcd heartbeat")

    def _check_format(self, found: int) -> None:
        if found > FORMAT:
            raise NewerFormat(f"etcd {','.join(self.addresses)} under {self.layout.prefix}", found, FORMAT)

    async def close(self) -> None:
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.wait((self._heart,))
        if self._connection is not None and not self._connection.closed:
            await self._connection.close()

    def has_given(self, _revision: int) -> bool:
        """Return True: etcd itself refuses what it has compacted, and `etcdutl snapshot restore` compacts all."""
        return True

    def earlier(self, revision: int, writes: int) -> int:
        return revision - writes

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def healthy(self) -> bool:
        return self.last_error is None

    @property
    def last_error(self) -> Exception | None:
        if self._connection is None or self._connection.closed:
            return StoreUnavailable("the store is closed")
        return self._connection.error or self._alarm

    def is_stale(self, key: str, /) -> bool:
        return self.layout.encryption.is_stale(key)

    def _connected(self) -> Connection:
        if self._connection is None:
            raise StoreUnavailable("the store is closed")
        self._connection.check_open()
        return self._connection

    def _saw(self, revision: int) -> None:
        self._revision = max(self._revision, revision)

    def _reported(self, revision: int) -> int:
        """Somebody gets to know this revision, and may wait for a watch to reach it."""
        self._saw(revision)
        self._wanted.add(revision)
        return revision

    # Health

    async def _beat(self, connection: Connection) -> None:
        """Probe regularly, so that failures show, and end, without other requests."""
        while True:
            try:
                answer = await connection.read(RANGE, self._nothing())
                self._saw(answer.header.revision)
                self._alarm = await self._alarms(connection)
            except StoreUnavailable as error:
                log.debug("heartbeat: %s", error)
            await asyncio.sleep(_HEARTBEAT_SECONDS if self.healthy else _SICK_HEARTBEAT_SECONDS)

    async def _alarms(self, connection: Connection) -> StoreUnavailable | None:
        status = await connection.read(STATUS, StatusRequest())
        text = "; ".join(status.errors)
        if _NO_SPACE_ALARM in text:
            way = "writes are refused until etcd is defragmented and the alarm disarmed (etcdctl alarm disarm)"
            return StoreFull(f"{connection}: {_NO_SPACE} ({text}): {way}")
        return StoreUnavailable(f"{connection}: {text}") if text else None

    # Reading

    async def get(self, key: str) -> Stored | None:
        answer = await self._range(RangeRequest(key=self.layout.raw(key)))
        return self.layout.stored(answer.kvs[0]) if answer.kvs else None

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        if prefix.startswith(INTERNAL):
            return Page([], self._reported(await self._latest()), 0)  # no key there: only the revision is read
        low = self.layout.raw(max(prefix, after and after + "\0", _FIRST_KEY))
        _, high = self.layout.range(prefix)
        items: list[Stored] = []
        while True:
            size = min(_PAGE, limit - len(items)) if limit else _PAGE
            answer = await self._range(RangeRequest(key=low, range_end=high, limit=size, revision=max(revision, 0)))
            revision = revision if revision > 0 else answer.header.revision
            items += map(self.layout.stored, answer.kvs)
            remaining = answer.count - len(answer.kvs)
            if not remaining or len(items) == limit:
                return Page(items, self._reported(revision), remaining)
            low = answer.kvs[-1].key + b"\0"

    async def _range(self, request: Any) -> Any:
        try:
            answer = await self._connected().read(RANGE, request)
        except Refused as error:
            if _COMPACTED in str(error):
                raise Compacted(await self._oldest()) from error
            if _FUTURE in str(error):
                raise FutureRevision(await self._latest()) from error
            raise
        self._reported(answer.header.revision)
        return answer

    def _nothing(self) -> Any:
        return RangeRequest(key=self.layout.raw(INTERNAL), count_only=True)

    async def _read_latest(self, deadline: float) -> int:
        answer = await self._connected().read(RANGE, self._nothing(), deadline)
        self._saw(answer.header.revision)
        return int(answer.header.revision)

    async def _oldest(self) -> int:
        """Return the revision up to which all is compacted; only a watch that starts too early gets it."""
        connection = self._connected()
        member = await connection.member(connection.deadline())
        call = member.stream(WATCH)
        try:
            async with asyncio.timeout(self.timeout):
                await call.write(WatchRequest(create=WatchCreateRequest(key=b"\0", start_revision=1)))
                while (response := await call.read()) is not grpc.aio.EOF:
                    if response.compact_revision:
                        return int(response.compact_revision)
        except grpc.aio.AioRpcError as error:
            raise connection.failure(member, error) from error
        except TimeoutError:
            connection.leave(member)
        except asyncio.CancelledError:
            connection.check_cancelled()
            raise
        finally:
            call.cancel()
        raise StoreUnavailable(f"{member.address} does not return its compacted revision")

    # Watching

    def watch(self, prefix: str, *, since: int) -> AsyncIterator[list[Event]]:
        """Goes on over lost connections; ends with StoreUnavailable when the store is closed."""
        return self._follow(prefix, since, impatient=False)

    async def history(self, prefix: str, *, since: int, until: int, limit: int = 0) -> list[Event]:
        until = min(until, await self._latest())
        events: list[Event] = []
        self._reported(until)
        async with aclosing(self._follow(prefix, since, impatient=True)) as batches:
            reached = since
            while reached < until:
                try:
                    async with asyncio.timeout(self.timeout):
                        batch = await anext(batches)
                except TimeoutError:
                    raise StoreUnavailable(f"{self._connected()} did not return its history in time") from None
                for event in batch:
                    if event.revision > until:
                        return events
                    events.append(event)
                    if len(events) == limit:
                        return events
                reached = batch.revision if isinstance(batch, Progress) else batch[-1].revision
        return events

    async def _follow(self, prefix: str, since: int, *, impatient: bool) -> AsyncGenerator[list[Event], None]:
        pauses = attempts()
        while True:
            connection = self._connected()
            stream = Stream(connection, self.layout, self._wanted, self._mark, prefix)
            try:
                await stream.open(since, impatient=impatient)
                while True:
                    for batch in await stream.next():
                        since = stream.position
                        yield batch
                        pauses.reset()
                    self._saw(stream.seen)
            except StoreUnavailable as error:
                connection.check_open()
                log.warning("lost a watch at revision %d, resuming: %s", since, error)
            finally:
                stream.close()
            await pauses.pause()

    async def _mark(self) -> None:
        """Write what concerns nobody but the watches that wait for it."""
        await self._connected().read(PUT, PutRequest(key=self.layout.raw(f"{INTERNAL}mark")))

    # Writing

    async def write(
        self,
        key: str,
        value: bytes | None,
        *,
        expected: int,
        obj: Obj | None = None,  # noqa: ARG002 - every server learns of it by a watch
    ) -> int:
        if value is None and expected == 0:
            raise ValueError(f"{key}: deleting needs the revision of what is deleted")
        connection = self._connected()
        stamped = None if value is None else self.layout.stamped(key, value)
        request = _swap(self.layout.raw(key), stamped, expected)
        before, deadline = self._revision, connection.deadline()
        lost: Unanswered | None = None
        while True:
            answer = None
            try:
                answer = await connection.send(TXN, request, deadline)
            except Unanswered as error:
                lost = error
            except Refused as error:
                if _NO_SPACE not in str(error):
                    raise
                return self._reported(await self._despite_no_space(key, stamped, expected, before, deadline, error))
            if answer is not None and (answer.succeeded or lost is None):
                break
            done = await self._find(key, stamped, expected, before, deadline)
            if done:
                return self._reported(done)
            if answer is not None:
                break
        revision = self._reported(answer.header.revision)
        if not answer.succeeded:
            [found] = answer.responses
            raise RevisionConflict(key, found.range.kvs[0].mod_revision if found.range.kvs else 0)
        return revision

    async def _despite_no_space(
        self, key: str, stamped: bytes | None, expected: int, before: int, deadline: float, error: Refused
    ) -> int:
        """Resolve a write that etcd carried out although it exceeded its quota and was refused."""
        done = await self._find(key, stamped, expected, before, deadline)
        if not done:
            raise StoreFull(str(error)) from error
        return done

    async def _find(self, key: str, stamped: bytes | None, expected: int, since: int, deadline: float) -> int:
        """Return the revision of a write whose answer was lost; 0: it has not happened so far."""
        try:
            async with asyncio.timeout_at(deadline):
                for event in await self.history(key, since=since, until=await self._latest()):
                    if event.key != key:
                        continue
                    if stamped is None:
                        if event.value is None and event.previous is not None and event.previous.revision == expected:
                            raise StoreUnavailable(f"{key}: it is deleted, but whether by this write is unknown")
                    elif event.value is not None and await self._raw(key, event.revision) == stamped:
                        return event.revision
                return 0
        except (Compacted, TimeoutError) as error:
            raise StoreUnavailable(f"{key}: no response in time, the outcome of the write is unknown") from error

    async def _raw(self, key: str, revision: int) -> bytes:
        answer = await self._range(RangeRequest(key=self.layout.raw(key), revision=revision))
        return bytes(answer.kvs[0].value)

    async def compact(self, revision: int) -> None:
        revision = min(revision, await self._latest())
        if revision <= 0:
            return
        try:
            await self._connected().read(COMPACT, CompactionRequest(revision=revision))
        except Refused as error:
            if _COMPACTED not in str(error):
                raise
            log.debug("revision %d is compacted already", revision)


def _swap(key: bytes, value: bytes | None, expected: int) -> Any:
    """Put or delete if the key's last write is `expected`, else return which it is."""
    put = None if value is None else PutRequest(key=key, value=value)
    delete = DeleteRangeRequest(key=key) if value is None else None
    return TxnRequest(
        compare=[Compare(result=EQUAL, target=MOD, key=key, mod_revision=expected)],
        success=[RequestOp(put=put, delete=delete)],
        failure=[RequestOp(range=RangeRequest(key=key, keys_only=True))],
    )
