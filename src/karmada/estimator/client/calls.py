"""Calls to the estimators of many clusters at once, under one deadline.

An estimator that does not answer in time loses its connection (see connections), so that the next call to it fails at
once. Only so many calls are on their way at a time: the time-out of those that wait for their turn has not begun, or a
burst of requests would make every estimator look dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from karmada.estimator.client.connections import Connections
from karmada.estimator.client.dialing import Connection, Unanswered
from karmada.estimator.contract import GET_UNSCHEDULABLE_REPLICAS, Method, UnschedulableQuery, unschedulable_request
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

_LATE = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"

Answer = int | EstimateError
_ON_THEIR_WAY = 256


class _Turns:
    """Lets batches of calls begin in order, as long as no more calls are on their way than allowed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._entrance = asyncio.Lock()
        self._ended = asyncio.Event()

    async def begin(self, count: int) -> None:
        async with self._entrance:
            while self._used and self._used + count > self._limit:
                self._ended.clear()
                await self._ended.wait()
            self._used += count

    def end(self, _call: object) -> None:
        """End one call."""
        self._used -= 1
        self._ended.set()


class Calls:
    def __init__(self, connections: Connections, clock: Clock) -> None:
        self._connections = connections
        self._clock = clock
        self.timeout = connections.client_options.timeout
        self._running: set[asyncio.Task[None]] = set()
        self._turns = _Turns(_ON_THEIR_WAY)

    def check(self, clusters: Iterable[str]) -> None:
        """EstimateError unless each of them is connected, and there is time to call them."""
        if self.timeout <= 0:
            raise EstimateError(_LATE)
        connected = self._connections.get
        missing = [cluster for cluster in clusters if connected(cluster) is None]
        if missing:
            raise together(_not_connected(cluster) for cluster in missing)

    def begin(self, method: Method, requests: Mapping[str, bytes], about: str) -> dict[str, asyncio.Future[Answer]]:
        """Call all these clusters; each future has its result within the time-out, whoever waits for it."""
        loop = asyncio.get_running_loop()
        futures: dict[str, asyncio.Future[Answer]] = {cluster: loop.create_future() for cluster in requests}
        task = loop.create_task(self._in_turn(method, requests, about, futures))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return futures

    async def all(self, method: Method, requests: Mapping[str, bytes], about: str) -> dict[str, int]:
        """Return the numbers of all clusters; EstimateError if one of them fails."""
        self.check(requests)
        futures = self.begin(method, requests, about)
        return settled({cluster: await future for cluster, future in futures.items()})

    async def unschedulable_replicas(self, clusters: Iterable[str], resource: Obj, threshold: float) -> dict[str, int]:
        """Return how many replicas of a workload could not be scheduled for longer than the threshold, by cluster."""
        requests = {
            cluster: unschedulable_request(UnschedulableQuery(cluster, resource, threshold)).SerializeToString()
            for cluster in clusters
        }
        return await self.all(GET_UNSCHEDULABLE_REPLICAS, requests, about(resource))

    # one call for each cluster

    async def _in_turn(
        self, method: Method, requests: Mapping[str, bytes], about: str, futures: Mapping[str, asyncio.Future[Answer]]
    ) -> None:
        await self._turns.begin(len(requests))
        for future in futures.values():
            future.add_done_callback(self._turns.end)
        await self._run(method, requests, about, futures)

    async def _run(
        self, method: Method, requests: Mapping[str, bytes], about: str, futures: Mapping[str, asyncio.Future[Answer]]
    ) -> None:
        waiting: dict[asyncio.Task[None], tuple[str, Connection]] = {}
        for cluster, request in requests.items():
            connection = self._connections.get(cluster)
            if connection is None:
                futures[cluster].set_result(_not_connected(cluster))
            else:
                call = self._one(cluster, connection, method, request, about, futures[cluster])
                waiting[asyncio.create_task(call)] = cluster, connection
        if not waiting:
            return
        try:
            await with_timeout(self._clock, _all_done(waiting), self.timeout)
        except TimeoutError:
            for task, (cluster, connection) in waiting.items():
                if not task.done():
                    self._connections.lost(cluster, connection)
                    futures[cluster].set_result(_failed(cluster, method, EstimateError(_LATE)))
        finally:
            await cancel_and_wait(*(task for task in waiting if not task.done()))
            for cluster, future in futures.items():
                if not future.done():  # the process ends
                    future.set_result(_failed(cluster, method, EstimateError("cancelled")))

    async def _one(
        self,
        cluster: str,
        connection: Connection,
        method: Method,
        request: bytes,
        about: str,
        future: asyncio.Future[Answer],
    ) -> None:
        try:
            future.set_result(await connection.call(method, request, timeout=self.timeout + 1, about=about))
        except EstimateError as error:
            if isinstance(error, Unanswered):
                self._connections.lost(cluster, connection)
            future.set_result(_failed(cluster, method, error))


async def _all_done(tasks: Iterable[asyncio.Task[None]]) -> None:
    await asyncio.wait(tasks)


def settled(answers: Mapping[str, Answer]) -> dict[str, int]:
    """Return all numbers; EstimateError if one of them is none."""
    errors = [answer for answer in answers.values() if isinstance(answer, EstimateError)]
    if errors:
        raise together(errors)
    return {cluster: answer for cluster, answer in answers.items() if isinstance(answer, int)}


def together(errors: Iterable[EstimateError]) -> EstimateError:
    texts = sorted({str(error) for error in errors})
    return EstimateError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def about(resource: Obj) -> str:
    """Return what estimators log as the reason of a call."""
    namespace, name = resource.get("namespace") or "", resource.get("name") or ""
    return f"kind={resource.get('kind') or ''}, name={namespace}/{name}"


def _not_connected(cluster: str) -> EstimateError:
    return EstimateError(f"cluster {cluster} does not exist in estimator cache")


def _failed(cluster: str, method: Method, error: EstimateError) -> EstimateError:
    called = method.name.removeprefix("Get")
    return EstimateError(f"gRPC request cluster({cluster}) estimator error when calling {called}: {error}")
