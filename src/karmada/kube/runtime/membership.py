"""One replica's membership of a group that shares work: a Lease of its own, and what the other Leases allow it to do.

Every member has a Lease with the group's label. An annotation on it is the member's view, its `leaseTransitions` the
epoch: both change when the member gives work up. The rules, by which no shard has two owners (see sharing):

* A Lease that exists counts, with the claims of its view. Nobody's clock decides that: who has not seen a Lease renewed
  for its whole duration deletes it, on condition that it is still the same version. Then it is over for its holder,
  whose writes the API server refuses from that moment (see kube/client/fencing).
* When members come or go, a member first starts nothing that it loses and waits for what is under way there; then it
  publishes the new view; and only when it has seen its own publication among the Leases, and no claim of another on the
  same shard, it starts what it gained.
* A member that could not renew for `renew_deadline`, or whose Lease is gone, is out, and its process stops.

It is an elector (see manager): its team starts when the Lease is there, and losing it ends the process's work.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from karmada.kube.client.client import Client
from karmada.kube.client.fencing import HEADER, FencingToken
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import AlreadyExists, ApiError, Conflict, Fenced, NotFound
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.objects.times import micro_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, version
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.sharing import EVERYWHERE, Assignment, View
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.runtime.waiting import until_one_ends, with_timeout

GROUP: Final = "work-sharing/group"
"""The label of a member's Lease: the group's name."""
MEMBERS: Final = "work-sharing/members"
"""The annotation of a member's Lease: its view."""
_UNREACHED = (ApiError, ConnectionFailed, TimeoutError)


class Sharer(Protocol):
    """A controller that divides its work by the shards that this member owns."""

    async def disown(self) -> None:
        """Drop what is kept for shards that are not owned any more; no reconcile of them is under way."""

    async def take_over(self, before: Assignment, now: Assignment) -> None:
        """Start what is owned now and was not before."""


class Lost(Exception):
    """The Lease is gone, or another's."""


def view_of(lease: Obj) -> View:
    return frozenset(filter(None, meta.annotations(lease).get(MEMBERS, "").split(",")))


class Membership(Collector):
    """A member, and a collector of its metrics: members, shards, hand-overs, refused writes."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        group: str,
        name: str,
        namespace: str,
        *,
        clock: Clock,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
    ) -> None:
        """`name` must be of this process alone: after a restart it is another. `client` must not be guarded by this."""
        if not lease_duration > renew_deadline > retry_period * 1.2 > 0:
            raise ValueError(
                "sharing work needs lease duration > renew deadline > 1.2 * retry period > 0, "
                f"got {lease_duration:g}s, {renew_deadline:g}s, {retry_period:g}s"
            )
        self.name = name
        self.identity = f"{name}_{uuid.uuid4()}"
        self.group = group
        self.assignment = Assignment(name)
        self.hand_overs = 0
        """How often the members changed and work was divided anew."""
        self.refused = 0
        """Writes that were not sent, since the Lease was over, or that the server refused for that reason."""
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._leases = informers.of(LEASES, namespace, label_selector=f"{GROUP}={group}")
        self._leases.add_handler(self._lease_changed)
        self._claims: dict[str, View] = {}
        self._seen: dict[str, float] = {}
        """When the Lease of a member was last seen to change."""
        self._sharers: list[Sharer] = []
        self._busy: dict[str, int] = {}
        """How many reconciles are under way, by shard."""
        self._view: View = frozenset()
        self._lease: Obj | None = None
        self._renewed_at = 0.0
        self._writing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self.log = get_logger("sharing").bind(group=group, member=name)

    def add(self, sharer: Sharer) -> None:
        self._sharers.append(sharer)

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(
            "work_sharing_members", "Replicas by which this one divides the work", value=len(self.members)
        )
        yield GaugeMetricFamily(
            "work_sharing_owned_shards",
            "Shards of this replica, of those it has seen",
            value=self.assignment.owned,
        )
        yield CounterMetricFamily(
            "work_sharing_hand_overs", "How often the work was divided anew", value=self.hand_overs
        )
        yield CounterMetricFamily(
            "work_sharing_refused_writes",
            "Writes that were not sent, or refused, since the replica's Lease was over",
            value=self.refused,
        )

    # what may be done

    def owns(self, shard: str) -> bool:
        return self.assignment.owns(shard)

    def begin(self, shard: str) -> bool:
        """Return whether work on the shard may start; each that does must `end`."""
        if shard == EVERYWHERE:
            return True
        if not self.assignment.owns(shard):
            return False
        self._busy[shard] = self._busy.get(shard, 0) + 1
        return True

    def end(self, shard: str) -> None:
        if shard == EVERYWHERE:
            return
        left = self._busy[shard] - 1
        if left:
            self._busy[shard] = left
        else:
            del self._busy[shard]
            self._ended.set()

    @property
    def members(self) -> View:
        """Return the members by which the work is divided now."""
        return self._view

    @property
    def is_alone(self) -> bool:
        """Return whether there is no other member, as far as this one has seen."""
        return not self._claims.keys() - {self.name}

    # the guard of writes

    def check(self) -> Mapping[str, str]:
        lease = self._lease
        if lease is None or not self.leading:
            self.refused += 1
            raise Fenced(f"the Lease {self._namespace}/{self.name} of this replica is over: it must not write any more")
        epoch = lease["spec"].get("leaseTransitions", 0)
        return {HEADER: str(FencingToken(self._namespace, self.name, meta.uid(lease), epoch))}

    def was_refused(self) -> None:
        self.refused += 1

    def seconds_left(self) -> float:
        return max(0.0, self._renewed_at + self._lease_duration - self._clock.monotonic())

    # the elector

    @property
    def leading(self) -> bool:
        """Return whether it is a member: true only as long as no other can have ended that."""
        return self._lease is not None and self._clock.monotonic() < self._renewed_at + self._renew_deadline

    async def try_acquire(self) -> bool:
        """Join the group, without work at first."""
        started = self._clock.monotonic()
        try:
            self._lease = await with_timeout(self._clock, self._create(), self._renew_deadline)
        except _UNREACHED as error:
            self.log.info("Cannot join the group", err=str(error))
            return False
        self._renewed_at = started
        self.log.info("Joined the group")
        return True

    async def acquire(self) -> None:
        while not await self.try_acquire():
            await self._clock.sleep(self._retry_period)

    async def hold(self) -> None:
        """Renew, and divide the work with the others; returns when the membership is lost."""
        self._changed.set()
        try:
            await until_one_ends(self._renew(), self._follow())
        except Lost as error:
            self.log.info("The membership is lost", err=str(error))
        finally:
            if not self.leading:
                self._leave()

    async def release(self) -> None:
        """Leave the group, so that the others need not wait for the Lease to run out."""
        lease = self._lease
        self._leave()
        if lease is None:
            return
        try:
            await with_timeout(self._clock, self._delete(lease, any_version=True), self._retry_period)
        except _UNREACHED as error:
            self.log.info("The Lease could not be deleted and will run out", err=str(error))

    def _leave(self) -> None:
        self._lease = None
        self._view = frozenset()
        self.assignment = Assignment(self.name)

    # the own Lease

    async def _create(self) -> Obj:
        now = micro_time(self._clock.now())
        lease: Obj = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self._namespace, "labels": {GROUP: self.group}},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": max(1, int(self._lease_duration)),
                "leaseTransitions": 0,
                "acquireTime": now,
                "renewTime": now,
            },
        }
        try:
            return await self._client.create(LEASES, lease)
        except AlreadyExists:
            found = await self._read()
            if found["spec"].get("holderIdentity") != self.identity:
                raise
            return await self._client.update(LEASES, self._renewal(found, None))  # the response to it was lost

    async def _read(self) -> Obj:
        return await self._client.get(LEASES, self.name, self._namespace)

    def _renewal(self, lease: Obj, view: View | None) -> Obj:
        """`view` is published with it; when it takes work away, it is a new epoch."""
        spec = {**lease["spec"], "renewTime": micro_time(self._clock.now())}
        metadata = lease["metadata"]
        if view is not None:
            if self._view and view - self._view:
                spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
            annotations = {**meta.annotations(lease), MEMBERS: ",".join(sorted(view))}
            metadata = {**metadata, "annotations": annotations}
        return {**lease, "metadata": metadata, "spec": spec}

    async def _renew(self) -> None:
        while True:
            await self._clock.sleep(self._retry_period)
            if not self.leading:
                raise Lost("it could not be renewed in time")
            await self._write()
            await self._remove_expired()

    async def _write(self, view: View | None = None) -> bool:
        """Renew the Lease; Lost when it is gone, False when it has to be tried again."""
        async with self._writing:
            lease, started = self._lease, self._clock.monotonic()
            if lease is None:
                raise Lost("it was given up")
            seconds = self._renewed_at + self._renew_deadline - started
            try:
                written = await with_timeout(self._clock, self._update(lease, view), max(0.0, seconds))
            except _UNREACHED as error:
                self.log.info("The Lease could not be renewed", err=str(error))
                return False
            if written is None:
                return False
            self._lease, self._renewed_at = written, started
            return True

    async def _update(self, lease: Obj, view: View | None) -> Obj | None:
        try:
            return await self._client.update(LEASES, self._renewal(lease, view))
        except NotFound as error:
            raise Lost("another member has ended it") from error
        except Conflict:
            current = await self._current(lease)
            self._lease = current  # an earlier attempt, whose response was lost
            return None

    async def _current(self, lease: Obj) -> Obj:
        try:
            current = await self._read()
        except NotFound as error:
            raise Lost("another member has ended it") from error
        if meta.uid(current) != meta.uid(lease):
            raise Lost("it is another's")
        return current

    # the other Leases

    def _lease_changed(self, old: Obj | None, new: Obj | None) -> None:
        lease = new if new is not None else old
        assert lease is not None
        name = meta.name(lease)
        if new is None:
            self._seen.pop(name, None)
            self._claims.pop(name, None)
            self._changed.set()
            return
        self._seen[name] = self._clock.monotonic()
        view = view_of(new)
        if self._claims.get(name) != view or (old is not None and meta.uid(old) != meta.uid(new)):
            self._claims[name] = view
            self._changed.set()

    async def _remove_expired(self) -> None:
        """End the membership of those whose Lease has not changed for its whole duration."""
        now = self._clock.monotonic()
        for lease in self._leases.list():
            name = meta.name(lease)
            seconds = float(lease["spec"].get("leaseDurationSeconds") or 0)
            if name != self.name and now > self._seen.get(name, now) + max(seconds, self._lease_duration):
                try:
                    await with_timeout(self._clock, self._delete(lease), self._retry_period)
                except _UNREACHED as error:
                    self.log.info("An expired Lease could not be deleted", other=name, err=str(error))

    async def _delete(self, lease: Obj, *, any_version: bool = False) -> None:
        """Delete a Lease, unless it was renewed since."""
        name, held = meta.name(lease), "" if any_version else meta.resource_version(lease)
        try:
            await self._client.delete(LEASES, name, self._namespace, uid=meta.uid(lease), resource_version=held)
        except (NotFound, Conflict):
            return
        if name != self.name:
            self.log.info("A member's Lease has expired", other=name)

    # dividing the work

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            members = frozenset(meta.name(lease) for lease in self._leases.list())
            if self.name not in members:
                if self._view:
                    raise Lost("another member has ended it")
                continue  # the informer does not have it yet
            if members != self._view:
                await self._adopt(members)
            before, now = self.assignment, Assignment(self.name, self._view, claims=self._claims)
            await self._assign(now)
            if now.may_own_more_than(before):
                for sharer in self._sharers:
                    await sharer.take_over(before, now)

    async def _assign(self, now: Assignment) -> None:
        """Work by it from now on; it is decided on all shards that were seen before, so that they are counted."""
        before, self.assignment = self.assignment, now
        turn = TimeSlice()
        for shard in before.shards:
            now.owns(shard)
            if turn.is_over():
                await turn.next()

    async def _adopt(self, members: View) -> None:
        """Give up what is another's from now on, then publish the new view."""
        await self._assign(self.assignment.narrowed(members))
        while any(not self.assignment.owns(shard) for shard in self._busy):
            self._ended.clear()
            await self._ended.wait()
        for sharer in self._sharers:
            await sharer.disown()
        while not await self._write(members):
            if not self.leading:
                raise Lost("it could not be renewed in time")
            await self._clock.sleep(self._retry_period / 4)
        assert self._lease is not None
        published, history = version(self._lease), self._leases.history
        key = Key(self._namespace, self.name)
        await self._leases.until(lambda: self._leases.has_reached(key, published, history))
        self._view = members
        self.hand_overs += 1
        self.log.info("The work is divided anew", members=len(members))
