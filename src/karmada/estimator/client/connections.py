"""One connection to the estimator of each cluster, kept while the Cluster exists.

A connection is used once it stands; a cluster without one fails at once and holds nobody up. A call that nobody answers
ends its connection: the address is looked up and dialled again, with growing pauses, and the new connection counts when
it has answered a call. So an estimator that hangs costs its callers one time-out, not one each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from karmada.api.cluster import Cluster
from karmada.estimator.client.addresses import addresses
from karmada.estimator.client.dialing import Connection, Refused, connect
from karmada.estimator.client.options import ClientOptions, Tls
from karmada.estimator.contract import MAX_AVAILABLE_REPLICAS, ReplicasQuery, replicas_request
from karmada.estimator.terms import EstimateError
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.controller import ControllerOptions, Done, Enqueue, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout

DIAL_SECONDS = 5.0
"""For each address."""
_BACK_OFF = BackOff(0.005, 60.0)
log = get_logger("scheduler-estimator")

Dial = Callable[[str, Tls], Awaitable[Connection]]


class Connections(Reconciler):
    name = queue_name = "scheduler-estimator"
    workers = 64
    watches = (Watch(Cluster.gvr),)
    options = ControllerOptions(needs_leader=False, grace=0.0)
    """A standby is connected when it takes over. A dial that is under way when the process ends is of no use."""

    def __init__(
        self, informers: Informers, client: Client, clock: Clock, options: ClientOptions, *, dial: Dial = connect
    ) -> None:
        self.client_options = options
        self._clusters = informers.of(Cluster.gvr)
        self._client = client
        self._clock = clock
        self._dial_one = dial
        self._held: dict[str, Connection] = {}
        self._failures: dict[str, int] = {}
        self._doubtful: set[str] = set()
        """Clusters whose last connection stood, and was not answered."""
        self._tried: set[str] = set()
        self._progress = asyncio.Event()
        self._add: Enqueue = lambda _key, _priority=0: None
        self._closing: set[asyncio.Task[None]] = set()

    def attach(self, add: Enqueue) -> None:
        self._add = add

    def get(self, cluster: str) -> Connection | None:
        return self._held.get(cluster)

    def lost(self, cluster: str, connection: Connection) -> None:
        """Nobody answers there."""
        if self._held.get(cluster) is connection:
            log.info("An estimator does not respond", cluster=cluster, address=connection.address)
            self._drop(cluster)
            self._doubtful.add(cluster)
            self._add(Key("", cluster))

    async def first_round(self) -> None:
        """Until each cluster that exists has been dialled once."""
        while any(cluster["metadata"]["name"] not in self._tried for cluster in self._clusters.list()):
            self._progress.clear()
            await self._progress.wait()

    # reconcile

    async def reconcile(self, key: Key) -> Result:
        name = key.name
        cluster = self._clusters.get(key)
        if cluster is None or self._is_skipped(cluster):
            self._drop(name)
            self._forget(name)
            self._count_as_tried(name, cluster is not None)
            return Done
        if name in self._held:
            return Done
        try:
            self._held[name] = await self._dial(name)
        except (ApiError, ConnectionFailed, EstimateError) as error:
            log.info("No connection to an estimator", cluster=name, err=str(error))
            return self._later(name)
        finally:
            self._count_as_tried(name, True)
        log.v(1).info("Connected to an estimator", cluster=name, address=self._held[name].address)
        self._forget(name)
        return Done

    def _is_skipped(self, cluster: Obj) -> bool:
        return self.client_options.skip_pull and (cluster.get("spec") or {}).get("syncMode") == "Pull"

    def _later(self, name: str) -> Result:
        failures = self._failures.get(name, 0)
        self._failures[name] = failures + 1
        return requeue(_BACK_OFF.pause(failures))

    def _forget(self, name: str) -> None:
        self._failures.pop(name, None)
        self._doubtful.discard(name)

    def _count_as_tried(self, name: str, exists: bool) -> None:
        (self._tried.add if exists else self._tried.discard)(name)
        self._progress.set()

    # connections

    async def _dial(self, name: str) -> Connection:
        """Return the first address that answers."""
        problems = []
        for address in await addresses(self._client, name, self.client_options.where):
            try:
                return await with_timeout(self._clock, self._established(name, address), DIAL_SECONDS)
            except (EstimateError, OSError) as error:  # TimeoutError is an OSError
                problems.append(f"dial {address}: {error}")
        raise EstimateError("; ".join(problems))

    async def _established(self, name: str, address: str) -> Connection:
        connection = await self._dial_one(address, self.client_options.tls)
        try:
            if not await connection.ready() or name in self._doubtful:
                await _confirm(name, connection)  # without a connection it says why
        except BaseException:
            self._close(connection)
            raise
        return connection

    def _drop(self, name: str) -> None:
        connection = self._held.pop(name, None)
        if connection is not None:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        """Not before calls under way had their time: gRPC would cancel their callers."""
        task = asyncio.get_running_loop().create_task(connection.close(self.client_options.timeout + 1))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def stop(self) -> None:
        await cancel_and_wait(*self._closing)
        held, self._held = list(self._held.values()), {}
        await asyncio.gather(*(connection.close(0) for connection in held))


async def _confirm(name: str, connection: Connection) -> None:
    """Any answer will do; Unanswered when there is none."""
    request = replicas_request(ReplicasQuery(name, None)).SerializeToString()
    try:
        await connection.call(MAX_AVAILABLE_REPLICAS, request, timeout=DIAL_SECONDS)
    except Refused:
        return


class FirstRound:
    """Holds the start of what comes after it until estimators had the time to be connected."""

    name = "first connections to estimators"

    def __init__(self, connections: Connections, clock: Clock) -> None:
        self._connections = connections
        self._clock = clock

    async def start(self) -> None:
        try:
            await with_timeout(self._clock, self._connections.first_round(), DIAL_SECONDS)
        except TimeoutError:
            log.info("Starting without the estimators that do not respond")

    async def stop(self) -> None:
        """There is nothing to stop."""
