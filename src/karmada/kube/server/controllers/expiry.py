"""What goes by itself after a while: Events an hour after they were last written, finished Jobs with a time to live."""

from __future__ import annotations

import asyncio

import orjson

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import EVENTS, JOBS
from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import matching
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.server.storage.interface import PushStore, StoreUnavailable, Write, write_all
from karmada.kube.server.watchcache.entry import prefix

EVENT_SECONDS = 3600.0
SWEEP_SECONDS = 60.0
_PAGE = 200
_STORED_AT = prefix(EVENTS.group_resource)


def last_written(event: Obj) -> float:
    """Return the latest time in an Event, or the time of its last write."""
    times = [
        event["metadata"].get("creationTimestamp"),
        *(entry.get("time") for entry in event["metadata"].get("managedFields") or ()),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        (event.get("series") or {}).get("lastObservedTime"),
    ]
    return max((parse_time(time) for time in times if time), default=0.0)


class EventExpiry:
    """Sweeps through the Events page by page, so that many of them never hold up anything else.

    What a sweep leaves, and what is written later, lives for a known time: until then there is nothing to look for.
    """

    def __init__(self, client: Client, clock: Clock, store: PushStore | None = None) -> None:
        """`store` has the Events in the order of their last writes: those that have not expired are not even read."""
        self._client = client
        self._clock = clock
        self._store = store
        self._none_before = 0.0
        self._swept = 0
        """Events that were last written up to this revision are gone."""

    async def sweep(self) -> None:
        if self._clock.now() <= self._none_before:
            return
        oldest_kept = await (self._sweep_all() if self._store is None else self._sweep_oldest(self._store))
        self._none_before = oldest_kept + EVENT_SECONDS

    async def _sweep_oldest(self, store: PushStore) -> float:
        """When the oldest was written that is kept; those with a time to come are passed over."""
        position, swept, passed_over = self._swept, self._swept, False
        while True:
            now, kept = self._clock.now(), None
            page = store.oldest(_STORED_AT, since=position, limit=_PAGE)
            expired: list[Write] = []
            for key, value, revision in page:
                written = last_written(orjson.loads(value))
                if now - EVENT_SECONDS <= written <= now:
                    kept = written
                    break
                if written > now:
                    passed_over = True
                else:
                    expired.append(Write(key, None, revision))
                position = revision
                if not passed_over:
                    swept = revision
            await _delete_all(store, expired)
            self._swept = swept
            if kept is not None or len(page) < _PAGE:
                return now if kept is None else kept
            await asyncio.sleep(0)

    async def _sweep_all(self) -> float:
        oldest_kept, token = self._clock.now(), ""
        while True:
            page = await self._client.list(EVENTS, limit=_PAGE, continue_=token)
            limit = self._clock.now() - EVENT_SECONDS
            for event in page["items"]:
                written = last_written(event)
                if written < limit:
                    await self._delete(event)
                else:
                    oldest_kept = min(oldest_kept, written)
            token = page["metadata"].get("continue", "")
            if not token:
                return oldest_kept
            await asyncio.sleep(0)

    async def _delete(self, event: Obj) -> None:
        meta = event["metadata"]
        await delete_if_exists(self._client, EVENTS, meta["name"], meta["namespace"], uid=meta["uid"])


async def _delete_all(store: PushStore, expired: list[Write]) -> None:
    """In one transaction, as a store with leases does it: no request, no admission. What was written again stays."""
    for outcome in await write_all(store, expired):
        if isinstance(outcome, StoreUnavailable):
            raise outcome


def finished_at(job: Obj) -> float | None:
    """When a Job completed or failed; None while it has not."""
    conditions = (job.get("status") or {}).get("conditions")
    for kind in ("Complete", "Failed"):
        condition = get_condition(conditions, kind)
        if condition is not None and condition.get("status") == "True" and condition.get("lastTransitionTime"):
            return parse_time(condition["lastTransitionTime"])
    return None


class TtlAfterFinished(Reconciler):
    name = "ttl-after-finished"
    watches = (Watch(JOBS, when=matching(lambda job: "ttlSecondsAfterFinished" in job["spec"])),)

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._jobs = informers.of(JOBS)
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        job = self._jobs.get(key)
        seconds = job["spec"].get("ttlSecondsAfterFinished") if job is not None else None
        finished = finished_at(job) if job is not None else None
        if job is None or seconds is None or finished is None or "deletionTimestamp" in job["metadata"]:
            return Done
        left = finished + seconds - self._clock.now()
        if left > 0:
            return requeue(left)
        meta = job["metadata"]
        try:
            await self._client.delete(
                JOBS,
                key.name,
                key.namespace,
                propagation="Foreground",
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],
            )
        except NotFound:
            return Done
        return Done
