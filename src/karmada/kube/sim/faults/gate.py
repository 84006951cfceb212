"""The gate before a simulated cluster's HTTP handlers: injects the faults of requests.

The cluster's own controllers work in-process and do not pass the gate: an unreachable cluster continues to run. Without
faults, a request costs one check of an empty list. Requests that hang wait for the next change of faults and are
checked again, so that healing lets them continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import (
    ApiError,
    Expired,
    NotFound,
    ServerTimeout,
    error_from_status,
)
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.request import Request, RequestInfo
from karmada.kube.server.http.results import PAGE_NOT_FOUND, RawResult, Result
from karmada.kube.sim.faults.kinds import (
    BlackHole,
    Errors,
    Fault,
    Matched,
    Partition,
    ReadOnly,
    Slow,
    Unavailable,
    Unhealthy,
    Watches,
    is_write,
)

Answer = Callable[[Request], Awaitable[Result]]
_TEXTS = {
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "forbidden by an injected fault"),
    409: ("Conflict", "the object has been modified; please apply your changes to the latest version and try again"),
    413: ("RequestEntityTooLarge", "the store is full"),
    429: ("TooManyRequests", "too many requests, please try again later."),
    500: ("InternalError", "Internal error occurred: injected fault"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}


class FaultGate:
    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._faults: tuple[Fault, ...] = ()
        self._changed = asyncio.Event()
        self.before_leases: Callable[[], Awaitable[None]] | None = None
        """Awaited before Leases are read, so that heartbeats need not be written while no client reads them."""
        self.lease_watchers: Callable[[int], None] | None = None
        """Called with the number of lease watches."""
        self._lease_watches = 0

    def set(self, faults: tuple[Fault, ...]) -> None:
        self._faults = faults
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def run(self, request: Request, answer: Answer) -> Result:
        info = request.info
        if info.resource == "leases" and self.before_leases is not None:
            await self.before_leases()
        if self._faults:
            instead = await self._inject(request)
            if instead is not None:
                return instead
        return await answer(request)

    async def send(self, request: Request) -> None:
        """Hold events of a watch before they are sent."""
        while True:
            changed = self._changed
            for fault in self._faults:
                if isinstance(fault, Matched) and fault.matches(request):
                    if isinstance(fault, Watches) and fault.how == "cut":
                        raise ConnectionResetError("an injected fault cut this watch")
                    if _stalls_watches(fault):
                        break
            else:
                return
            await changed.wait()

    def watching(self, request: Request, begins: bool) -> None:
        if request.info.resource == "leases" and self.lease_watchers is not None:
            self._lease_watches += 1 if begins else -1
            self.lease_watchers(self._lease_watches)

    async def _inject(self, request: Request) -> Result | None:
        """Wait, raise, or return the injected response; None: handle the request."""
        position = 0
        while position < len(self._faults):
            fault, changed = self._faults[position], self._changed
            if _hangs(fault, request) and self._is_hit(fault):
                await changed.wait()
                position = 0
                continue
            instead = await self._apply(fault, request)
            if instead is not None:
                return instead
            position += 1
        return None

    def _is_hit(self, fault: Fault) -> bool:
        percent = getattr(fault, "percent", 100.0)
        return percent >= 100.0 or self._random.uniform(0, 100) < percent

    async def _apply(self, fault: Fault, request: Request) -> Result | None:
        info = request.info
        if isinstance(fault, Unhealthy):
            return _health(fault) if info.path in fault.pages else None
        if isinstance(fault, Unavailable):
            return _missing(info) if names(fault, info.gvr) else None
        if isinstance(fault, Matched) and fault.matches(request) and self._is_hit(fault):
            await self._fail(fault, request)
        return None

    async def _fail(self, fault: Matched, request: Request) -> None:
        if isinstance(fault, Slow):
            await self._clock.sleep(fault.seconds + self._random.uniform(0, fault.jitter))
        elif isinstance(fault, Errors):
            raise injected(fault)
        elif isinstance(fault, ReadOnly) and is_write(request):
            raise ServerTimeout("the store does not take writes (injected fault)", retry_after=1)
        elif isinstance(fault, Partition) and fault.how == "refuse":
            raise ConnectionResetError("an injected fault cut this client off")
        elif isinstance(fault, Watches) and fault.how == "expire" and request.info.verb == "watch":
            raise Expired("too old resource version (injected fault)")


def _hangs(fault: Fault, request: Request) -> bool:
    hanging = isinstance(fault, BlackHole) or (isinstance(fault, Partition) and fault.how == "hang")
    return hanging and isinstance(fault, Matched) and fault.matches(request)


def _stalls_watches(fault: Matched) -> bool:
    """Return whether open watches send nothing any more."""
    if isinstance(fault, Partition):
        return fault.how in ("hang", "watches")
    return isinstance(fault, BlackHole) or (isinstance(fault, Watches) and fault.how == "stall")


def injected(fault: Errors) -> ApiError:
    reason, message = _TEXTS[fault.code]
    status: Obj = {"reason": reason, "message": message, "code": fault.code}
    if fault.retry_after:
        status["details"] = {"retryAfterSeconds": fault.retry_after}
    return error_from_status(status, http_code=fault.code)


def names(fault: Unavailable, gvr: GVR) -> bool:
    """Return whether this resource is among what is not available."""
    return any(what in (str(gvr.group_resource), str(gvr.group_version)) for what in fault.what)


def _missing(info: RequestInfo) -> Result:
    if info.is_resource:
        raise NotFound.resource()
    return PAGE_NOT_FOUND


def _health(fault: Unhealthy) -> Result:
    return RawResult(b"[-]injected failed: reason withheld\n", "text/plain; charset=utf-8", fault.code)
