"""The members of an etcd cluster: one channel each, a current one, and the next one when that fails.

Every call has a deadline for all its tries together and a shorter one for each try, so a member that hangs costs one
try. A request is sent only over a connection that stands. So there are three sorts of failure, which callers can
distinguish: `StoreUnavailable` (nothing was sent), `Unanswered` (sent, and what became of it is unknown) and `Refused`
(etcd says no, and nothing happened). `read` tries again by itself; `send` never does.

All calls require a leader ("hasleader"): a member that is cut off from the others says so at once, and ends its
watches, instead of keeping its clients waiting.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from karmada.kube.client import cluster_names
from karmada.kube.client.grpc_library import grpc
from karmada.kube.objects.clock import RealClock
from karmada.kube.runtime.back_off import Attempts, BackOff
from karmada.kube.server.storage.etcd_messages import STATUS, Method, StatusRequest
from karmada.kube.server.storage.interface import StoreUnavailable

_HAS_LEADER = (("hasleader", "true"),)
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.keepalive_time_ms", 10_000),  # etcd refuses more than one ping in 5 s
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]
_CONNECT_SECONDS = 1.0
_REFUSALS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}


class Unanswered(StoreUnavailable):
    """The request was sent; whether it was carried out is unknown."""


class Refused(StoreUnavailable):
    """etcd will not do this, and has done nothing."""


class Tls(NamedTuple):
    """In PEM; certificate and key are empty when the client has none."""

    authority: bytes
    certificate: bytes
    key: bytes


def attempts() -> Attempts:
    """Return what makes the pauses between attempts to reach etcd."""
    return Attempts(RealClock(), BackOff(0.02, 0.5))


def _dialled(address: str) -> tuple[str, list[tuple[str, Any]]]:
    """Return where to connect, and the name to expect there: in a simulated cluster Services have no DNS."""
    host, _, port = address.rpartition(":")
    found = cluster_names.lookup(host, int(port)) if port.isdigit() else []
    if not found:
        return address, list(_OPTIONS)
    named = [("grpc.ssl_target_name_override", host), ("grpc.default_authority", address)]
    return f"{found[0][0]}:{found[0][1]}", [*_OPTIONS, *named]


class Member:
    def __init__(self, address: str, tls: Tls | None) -> None:
        self.address = address
        self._tls = tls
        self._by_cluster_name = cluster_names.enabled()
        self._former: list[Any] = []
        self._dial(*_dialled(address))

    def _dial(self, target: str, options: list[tuple[str, Any]]) -> None:
        self._target = target
        if self._tls is None:
            self._channel = grpc.aio.insecure_channel(target, options)
        else:
            authority, certificate, key = self._tls
            credentials = grpc.ssl_channel_credentials(authority, key or None, certificate or None)
            self._channel = grpc.aio.secure_channel(target, credentials, options)
        self._unary: dict[str, Any] = {}

    def _follow_name(self) -> None:
        """In a process of a simulated cluster: the name may lead elsewhere by now, which DNS would have said."""
        target, options = _dialled(self.address)
        if target != self._target:
            self._former.append(self._channel)
            self._dial(target, options)

    async def ready(self, seconds: float) -> bool:
        """Return whether a connection stands, waiting this long for one that is being made."""
        if self._by_cluster_name:
            self._follow_name()
        state = self._channel.get_state(try_to_connect=True)
        try:
            async with asyncio.timeout(seconds):
                while state in (grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING):
                    await self._channel.wait_for_state_change(state)
                    state = self._channel.get_state(try_to_connect=True)
        except TimeoutError:
            return False
        return bool(state is grpc.ChannelConnectivity.READY)

    def call(self, method: Method, request: Any, seconds: float) -> Any:
        unary = self._unary.get(method.path)
        if unary is None:
            unary = self._unary[method.path] = self._channel.unary_unary(
                method.path, request_serializer=_encode, response_deserializer=method.answer.FromString
            )
        return unary(request, timeout=seconds, metadata=_HAS_LEADER)

    def stream(self, method: Method) -> Any:
        """Return a call with messages both ways, until one side ends it."""
        return self._channel.stream_stream(
            method.path, request_serializer=_encode, response_deserializer=method.answer.FromString
        )(metadata=_HAS_LEADER)

    async def close(self) -> None:
        for channel in (*self._former, self._channel):
            await channel.close()


class Connection:
    def __init__(self, addresses: Sequence[str], tls: Tls | None, *, timeout: float) -> None:
        self.timeout = timeout
        self.attempt = timeout * 0.4
        """How long one try may take."""
        self.error: StoreUnavailable | None = None
        """Why the last call failed; None after one that a majority of the members has carried out."""
        self.closed = False
        self._members = [Member(address, tls) for address in addresses]
        self._current = random.randrange(len(self._members))  # so that not all servers burden the same one
        self._loop = asyncio.get_running_loop()

    def __str__(self) -> str:
        return f"etcd at {','.join(member.address for member in self._members)}"

    async def close(self) -> None:
        self.closed = True
        await asyncio.gather(*(member.close() for member in self._members))

    def deadline(self) -> float:
        return self._loop.time() + self.timeout

    async def read(self, method: Method, request: Any, deadline: float | None = None) -> Any:
        """Return the answer to a request that can be repeated."""
        until = self.deadline() if deadline is None else deadline
        pauses = attempts()
        while True:
            try:
                return await self.send(method, request, until)
            except Unanswered as error:
                if self._loop.time() >= until:
                    self.error = error
                    raise
            await pauses.pause(until - self._loop.time())

    async def send(self, method: Method, request: Any, deadline: float) -> Any:
        """Return the answer to a request that is sent at most once."""
        member = await self.member(deadline)
        seconds = max(0.001, min(self.attempt, deadline - self._loop.time()))
        try:
            answer = await member.call(method, request, seconds)
        except grpc.aio.AioRpcError as error:
            raise self.failure(member, error) from error
        except asyncio.CancelledError:
            self.check_cancelled()
            raise
        if method is not STATUS:  # which a member answers without the others
            self.error = None
        return answer

    async def member(self, deadline: float) -> Member:
        """Return a member with a standing connection; StoreUnavailable if there is none by then."""
        pauses = attempts()
        while True:
            for _ in self._members:
                self.check_open()
                member = self._members[self._current]
                if await member.ready(max(0.0, min(_CONNECT_SECONDS, deadline - self._loop.time()))):
                    return member
                self.leave(member)
            if self.error is None or self._loop.time() >= deadline:
                self.error = StoreUnavailable(f"{self} cannot be reached: {await self._reason()}")
            if self._loop.time() >= deadline:
                raise StoreUnavailable(str(self.error))
            await pauses.pause(deadline - self._loop.time())

    def leave(self, member: Member) -> None:
        """Something is wrong with this member: the next call goes to the next one."""
        if member is self._members[self._current]:
            self._current = (self._current + 1) % len(self._members)

    def failure(self, member: Member, error: Any) -> StoreUnavailable:
        """Return what a failed call means."""
        self.check_open()
        text = f"{member.address}: {error.details() or error.code().name}"
        if error.code() in _REFUSALS:
            return Refused(text)
        self.leave(member)
        return Unanswered(text)

    def check_open(self) -> None:
        if self.closed:
            raise StoreUnavailable("the store is closed")

    def check_cancelled(self) -> None:
        """Tell a cancelled task from a closed channel, which grpc calls "cancelled", too."""
        task = asyncio.current_task()
        if task is None or not task.cancelling():
            self.check_open()

    async def _reason(self) -> str:
        """Why there is no connection; only a call returns the reason."""
        member = self._members[self._current]
        self.check_open()
        try:
            await member.call(STATUS, StatusRequest(), 0.2)
        except grpc.aio.AioRpcError as error:
            return f"{member.address}: {error.details() or error.code().name}"
        return "its members have only just come back"


def _encode(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded
