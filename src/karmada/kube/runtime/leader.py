"""Leader election on a Lease: of all candidates with one lease name, at most one believes to lead.

A candidate never compares its clock with another's: it notes when it *saw* the lease change, and takes over when the
record has not changed for its whole lease duration. The holder renews every `renew_period` and gives up when no renewal
succeeded for `renew_deadline`, counted from the moment before the renewal was sent. As the deadline is shorter than the
lease, a holder that is cut off has stopped believing before anyone else can start; `leading` itself reads the clock, so
even a process that was suspended in between does not believe longer. All writes are compare-and-swap on the
resourceVersion.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.objects.times import micro_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.runtime.writes import retry_on_conflict

if TYPE_CHECKING:
    from karmada.kube.runtime.metrics import Metrics

_JITTER = 0.2
_TRIES = 5
_OURS = ("holderIdentity", "renewTime")
"""They tell a write of this candidate from those of others, also of one identity."""


class LeaderElector:
    """`identity` must be unique among the candidates (e.g. host name and a random suffix)."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        identity: str,
        *,
        clock: Clock | None = None,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        renew_period: float | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """`renew_period` is how often a lease that is held is renewed (default: every `retry_period`)."""
        if not lease_duration > renew_deadline > retry_period * 1.2 > 0:
            raise ValueError(
                "leader election needs lease_duration > renew_deadline > 1.2 * retry_period > 0, "
                f"got {lease_duration:g}, {renew_deadline:g}, {retry_period:g}"
            )
        if renew_period is not None and not renew_deadline > renew_period + retry_period:
            raise ValueError("leader election needs renew_deadline > renew_period + retry_period, for a second try")
        if not identity:
            raise ValueError("leader election needs an identity")
        self.name = name
        self.namespace = namespace
        self.identity = identity
        self._client = client
        self._clock = clock or RealClock()
        self._lease_duration = lease_duration
        self.renew_deadline = renew_deadline
        self.retry_period = retry_period
        self._renew_period = retry_period if renew_period is None else renew_period
        self._gauge = metrics.leading.labels(name) if metrics else None
        self.log = get_logger("leader").bind(lease=f"{namespace}/{name}", identity=identity)
        self._observed: Obj | None = None
        self._sent: Obj = dict.fromkeys(_OURS)
        """The last record that was to replace another, whether or not it was answered."""
        self._expires_at = 0.0
        self._renewed_at: float | None = None

    @property
    def leading(self) -> bool:
        """Return True only as long as no other candidate can have taken the lease."""
        renewed = self._renewed_at
        return renewed is not None and self._clock.monotonic() < renewed + self.renew_deadline

    @property
    def leader(self) -> str:
        """Who holds the lease, as far as this candidate has seen."""
        return str(((self._observed or {}).get("spec") or {}).get("holderIdentity") or "")

    # the three acts

    async def acquire(self) -> None:
        """Wait until this candidate leads."""
        self.log.info("Waiting for the lease")
        while not await self.try_acquire():
            await self._clock.sleep(self._pause())

    async def try_acquire(self) -> bool:
        """Return one attempt; whether this candidate leads now."""
        if not await self._attempt(self.renew_deadline):
            return False
        self.log.info("Lease acquired")
        if self._gauge is not None:
            self._gauge.set(1)
        return True

    async def observe(self) -> None:
        """Note who holds the lease now: if that stays so for the whole lease duration, it is free."""
        try:
            self._note(await with_timeout(self._clock, self._read(), self.renew_deadline))
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            self.log.v(1).info("The lease cannot be read", err=str(error))

    async def _read(self) -> Obj:
        return await self._client.get(LEASES, self.name, self.namespace)

    async def seize(self) -> str:
        """Take the lease, whoever holds it; returns who else did, or "" for nobody."""
        started = self._clock.monotonic()
        previous = await with_timeout(
            self._clock, retry_on_conflict(self._seize, clock=self._clock), self.renew_deadline
        )
        self._renewed_at = started
        self.log.info("Lease taken", previous=previous)
        return previous

    async def _seize(self) -> str:
        try:
            lease = await self._read()
        except NotFound:
            await self._create()
            return ""
        spec = lease.get("spec") or {}
        previous = str(spec.get("holderIdentity") or "")
        await self._write(lease)
        return "" if previous == self.identity else previous

    def _pause(self) -> float:
        """Until the next try: a little at random, but not beyond the moment the lease that was seen runs out."""
        pause = self.retry_period * (1 + random.random() * _JITTER)
        left = self._expires_at - self._clock.monotonic()
        return min(pause, left) if left > 0 else pause

    async def hold(self) -> None:
        """Renews; returns when the lease is lost."""
        pause = self._renew_period
        try:
            while self._renewed_at is not None:
                deadline = self._renewed_at + self.renew_deadline
                await self._clock.sleep(min(pause, deadline - self._clock.monotonic()))
                left = deadline - self._clock.monotonic()
                renewed = left > 0 and await self._attempt(left)
                if left <= 0 or (not renewed and self.leader != self.identity):
                    break
                pause = self._renew_period if renewed else self.retry_period
        finally:
            if not self.leading or self.leader != self.identity:
                self._step_down()

    async def release(self) -> None:
        """Give the lease up, so that the next one need not wait for it to run out."""
        if not self.leading or self._observed is None:
            self._step_down()
            return
        spec = self._observed["spec"]
        now = micro_time(self._clock.now())
        released = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "leaseTransitions": spec.get("leaseTransitions", 0),
            "acquireTime": now,
            "renewTime": now,
        }
        self._step_down()
        try:
            await with_timeout(self._clock, self._give_up(self._observed, released), self.retry_period)
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            self.log.info("The lease could not be released and will run out", err=str(error))

    async def _give_up(self, lease: Obj, spec: Obj) -> None:
        try:
            await self._client.update(LEASES, {**lease, "spec": spec})
        except Conflict:  # a renewal that was cut off in its middle may have been stored
            lease = await self._read()
            if all((lease.get("spec") or {}).get(name) == self._sent[name] for name in _OURS):
                await self._client.update(LEASES, {**lease, "spec": spec})

    def _step_down(self) -> None:
        if self._renewed_at is not None:
            self.log.info("Not leading any more")
        self._renewed_at = None
        if self._gauge is not None:
            self._gauge.set(0)

    # one try

    async def _attempt(self, seconds: float) -> bool:
        """Take or renew the lease; False when another has it or the server did not respond in time."""
        started = self._clock.monotonic()
        try:
            won = await with_timeout(self._clock, self._take_or_renew(), seconds)
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            self.log.v(1).info("Attempt failed", err=str(error))
            return False
        if won:
            self._renewed_at = started
        elif self.leader != self.identity:
            self._renewed_at = None
        return won

    async def _take_or_renew(self) -> bool:
        if self.leading and self._observed is not None and self.leader == self.identity:
            try:
                await self._write(self._observed)
                return True
            except ApiError as error:
                self.log.v(1).info("Quick renewal failed, reading the lease", err=error.message)
        for _ in range(_TRIES):
            try:
                lease = await self._read()
            except NotFound:
                await self._create()
                return True
            self._note(lease)
            if self.leader not in ("", self.identity) and self._clock.monotonic() < self._expires_at:
                return False
            try:
                await self._write(lease)
                return True
            except Conflict as error:  # of several with one identity (SharedLeader) another was faster
                self.log.v(1).info("The lease was written meanwhile", err=error.message)
        return False

    def _note(self, lease: Obj) -> None:
        if self._observed is None or self._observed.get("spec") != lease.get("spec"):
            spec = lease.get("spec") or {}
            self._expires_at = self._clock.monotonic() + float(spec.get("leaseDurationSeconds") or 0)
            holder = spec.get("holderIdentity") or ""
            if holder != self.leader:
                self.log.info("New leader", leader=holder)
        self._observed = lease

    async def _create(self) -> None:
        lease: Obj = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": self._record(None),
        }
        self._note(await self._client.create(LEASES, lease))

    async def _write(self, lease: Obj) -> None:
        self._sent = self._record(lease.get("spec") or {})
        self._note(await self._client.update(LEASES, {**lease, "spec": self._sent}))

    def _record(self, old: Obj | None) -> Obj:
        """Return the lease in this candidate's name; other fields of the old record stay."""
        now = micro_time(self._clock.now())
        record: Obj = {**(old or {}), "holderIdentity": self.identity, "renewTime": now}
        record["leaseDurationSeconds"] = int(self._lease_duration)
        if old is None:
            record.update(acquireTime=now, leaseTransitions=0)
        elif old.get("holderIdentity") != self.identity:
            record.update(acquireTime=now, leaseTransitions=(old.get("leaseTransitions") or 0) + 1)
        return record
