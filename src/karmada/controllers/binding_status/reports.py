"""The reports of a binding's Works, kept from one summary to the next: only Works that have changed are read again.

The informer decides what has changed: a report is that of one state of a Work (`state_of`), found by the informer's own
index. So nothing that is kept can be out of date, whatever was missed, and all of it can be dropped at any time: when a
binding was not read for a minute, and when all of it takes too much memory, of those first that were not read for
longest. Not worth it are bindings with few Works, and those that are read once when all clusters have reported, as
nearly all are after a start.

While reports are kept, those of Works that change are read when the informer delivers them: they are parsed then.

When they are read (`Gathering`): rarely for many clusters, at once for few. Reading them takes as long as the binding
has clusters, and writes an item for each. Were that done for every report, the cost would be the square of the number
of clusters. So the reports are counted, and read when an eighth of the clusters has reported since they were last read,
or after a while that grows with the number of clusters. The first report after a quiet time is read at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from karmada.controllers.binding_status.aggregation import Report, identity_of, report_of, to_keep
from karmada.controllers.indexes import WORKS_OF
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.runtime.waiting import cancel_and_wait

SHARE: Final = 8
"""Reports of one cluster in so many are read at once."""
PER_CLUSTER: Final = 0.01
"""Seconds for which fewer are gathered, for each cluster: a second for a hundred."""
MOST: Final = 10.0
"""Seconds for which they are gathered at most."""


def enough(clusters: int) -> int:
    """So many reports are worth reading at once."""
    return -(-clusters // SHARE)


def pause(clusters: int) -> float:
    """Seconds until fewer reports are read."""
    return min(MOST, PER_CLUSTER * clusters)


class _Wait:
    __slots__ = ("for_missing", "reports", "until", "wanted")

    def __init__(self, wanted: int, until: float, *, for_missing: bool) -> None:
        self.wanted = wanted
        self.until = until
        self.for_missing = for_missing
        self.reports = 0


class Gathering:
    """The reports that are awaited for each binding. One whose every report is worth reading has no entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits: dict[Key, _Wait] = {}

    def reported(self, key: Key) -> None:
        wait = self._waits.get(key)
        if wait is not None:
            wait.reports += 1

    def remaining(self, key: Key) -> float:
        """Seconds until the reports are to be read; 0 when they are now."""
        wait = self._waits.get(key)
        if wait is None or wait.reports >= wait.wanted:
            return 0.0
        return max(0.0, wait.until - self._clock.monotonic())

    def await_missing(self, key: Key, missing: int, seconds: float) -> float:
        """So many clusters have not reported yet: how long to wait for them, `seconds` at most from the first call."""
        wait, now = self._waits.get(key), self._clock.monotonic()
        until = wait.until if wait is not None and wait.for_missing else now + seconds
        if until <= now:
            return 0.0
        self._waits[key] = _Wait(missing, until, for_missing=True)
        return until - now

    def was_read(self, key: Key, clusters: int) -> None:
        """Record that all reports up to now are in the status."""
        if enough(clusters) > 1:
            until = self._clock.monotonic() + pause(clusters)
            self._waits[key] = _Wait(enough(clusters), until, for_missing=False)
        else:
            self.forget(key)

    def forget(self, key: Key) -> None:
        self._waits.pop(key, None)


FEW: Final = 8
"""Works that are read each time."""
IDLE: Final = 60.0
"""Seconds after which the reports of a binding are dropped."""
MOST_BYTES: Final = 32 << 20
"""Bytes of all reports as JSON. In memory they take half of that where clusters report the same."""
_OF_EACH = 128
"""Bytes that are counted for a report beside its contents."""


class _Read(NamedTuple):
    """A Work that was read."""

    state: object
    report: Report | None
    """None while the Work is being deleted."""


class _Kept(NamedTuple):
    """The Works of one binding, as they were when they were read."""

    reference: Obj
    works: dict[Key, _Read]
    size: int
    at: float


class Reports:
    def __init__(self, works: Informer, clock: Clock, *, most_bytes: int = MOST_BYTES) -> None:
        """`works` has the index WORKS_OF."""
        self._works = works
        self._clock = clock
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._bytes = 0
        self._dropping: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Bindings that were read lately, and have many Works."""
        return len(self._kept)

    async def read(self, binding: Key, binding_id: str, reference: Obj) -> list[Report]:
        """Return the reports of all Works that are not being deleted; others run in between.

        `reference` is the spec.resource.
        """
        keys, before = self._works.keys_by_index(WORKS_OF, binding_id), self._kept.get(binding)
        known = before.works if before is not None and _is_same(before.reference, reference) else {}
        works = await self._read_all(keys, known, reference)
        reports = [found.report for found in works.values() if found.report is not None]
        again = before is not None or not all(report.is_reported for report in reports)
        self._keep(binding, reference, works if again else {}, len(works))
        return reports

    async def _read_all(self, keys: Collection[Key], known: Mapping[Key, _Read], reference: Obj) -> dict[Key, _Read]:
        works: dict[Key, _Read] = {}
        turn = TimeSlice()
        for key in keys:
            found = known.get(key)
            if found is None or found.state is not self._works.state_of(key):
                found = self._read(key, self._works.get(key), reference, keep=len(keys) > FEW)
                if turn.is_over():
                    await turn.next()
            if found is not None:
                works[key] = found
        return works

    def _read(self, key: Key, work: Obj | None, reference: Obj, *, keep: bool) -> _Read | None:
        """Return the report of the object that the informer has; None when it is gone."""
        if work is None:
            return None
        report = None if meta.is_deleting(work) else report_of(work, reference)
        return _Read(self._works.state_of(key), to_keep(report) if keep and report is not None else report)

    def changed(self, binding: Key, work: Obj) -> None:
        """Read a Work that the informer has just delivered, if others of its binding are kept."""
        kept = self._kept.get(binding)
        if kept is not None:
            key = key_of(work)
            found = self._read(key, work, kept.reference, keep=True)
            if found is not None:
                kept.works[key] = found

    # what is kept

    def _keep(self, binding: Key, reference: Obj, works: dict[Key, _Read], count: int) -> None:
        """Keep the report of a binding with so many Works; without any, record that it was read."""
        self.forget(binding)
        if count <= FEW:
            return
        size = _OF_EACH + sum(_OF_EACH + (0 if found.report is None else found.report.size) for found in works.values())
        self._kept[binding] = _Kept(reference, works, size, self._clock.monotonic())
        self._bytes += size
        while self._bytes > self._most_bytes:
            self.forget(next(iter(self._kept)))
        if self._kept and (self._dropping is None or self._dropping.done()):
            self._dropping = asyncio.get_running_loop().create_task(self._drop_idle(), name="reports at rest")

    def forget(self, binding: Key) -> None:
        kept = self._kept.pop(binding, None)
        if kept is not None:
            self._bytes -= kept.size

    def disown(self, owns: Callable[[Key], bool]) -> None:
        for binding in [binding for binding in self._kept if not owns(binding)]:
            self.forget(binding)

    async def _drop_idle(self) -> None:
        """Until there are none."""
        while self._kept:
            binding, kept = next(iter(self._kept.items()))
            wait = kept.at + IDLE - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
            else:
                self.forget(binding)

    async def stop(self) -> None:
        if self._dropping is not None:
            await cancel_and_wait(self._dropping)
        self._kept.clear()
        self._bytes = 0


def _is_same(one: Obj, other: Obj) -> bool:
    return one is other or identity_of(one) == identity_of(other)
