"""The scheduling queue: active pods, pods in back-off, and unschedulable pods that wait for a change.

Ready pods leave by priority, then by age. A pod that found no node waits until something changes that may help it,
reported by the filters that refused it; it is then ready once its pause since the last attempt is over (1 s, doubled to
10 s). A pod for which nothing changes is tried again after five minutes all the same.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable

from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.scheduler.pods import PodInfo
from karmada.kube.sim.scheduler.timers import Timers

_BACK_OFF = BackOff(1.0, 10.0)
_LONGEST_WAIT = 300.0


def pause_after(attempts: int) -> float:
    return _BACK_OFF.pause(max(0, attempts - 1))


class SchedulingQueue:
    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._known: dict[Key, PodInfo] = {}
        self._ready: list[tuple[int, str, int, PodInfo]] = []
        self._is_ready: set[Key] = set()
        self._pausing: set[Key] = set()
        self._waiting: dict[Key, PodInfo] = {}
        self._by_plugin: dict[str, dict[Key, PodInfo]] = {}
        self._in_hand: dict[Key, int] = {}
        """Pods being worked on, and how many changes had been reported when they were taken."""
        self._again: set[Key] = set()
        """Pods in hand that are requeued whatever the result is."""
        self._changes = 0
        self._last_change: dict[str, int] = {}
        """For each filter the number of the last change that concerned it."""
        self._wake: asyncio.Future[None] | None = None
        self._flushing = False

    def __len__(self) -> int:
        """Pods without a node, wherever they wait."""
        return len(self._known)

    def get(self, key: Key) -> PodInfo | None:
        return self._known.get(key)

    @property
    def idle(self) -> bool:
        """Return whether there is nothing to do now."""
        return not self._is_ready and not self._in_hand

    # putting in

    def add(self, info: PodInfo) -> None:
        """Add a pod that is new or was changed by its owner; one that failed before gets its pause first."""
        old = self._known.get(info.key)
        if old is not None:
            if old.uid == info.uid:
                info.take_over(old)
            self._leave(info.key)
        self._known[info.key] = info
        if info.key in self._in_hand:
            self._again.add(info.key)
        else:
            self._pause_or_ready(info)

    def remove(self, key: Key) -> PodInfo | None:
        self._leave(key)
        return self._known.pop(key, None)

    def _leave(self, key: Key) -> None:
        """Out of every line; heaps are cleaned when their entries come up."""
        self._is_ready.discard(key)
        self._pausing.discard(key)
        info = self._waiting.pop(key, None)
        if info is not None:
            for plugin in info.plugins:
                waiting = self._by_plugin.get(plugin, {})
                waiting.pop(key, None)
                if not waiting:
                    self._by_plugin.pop(plugin, None)

    def _pause_or_ready(self, info: PodInfo) -> None:
        pause = 0.0
        if info.attempts:
            pause = info.failed_at + pause_after(info.attempts) - self._clock.monotonic()
        if pause <= 0:
            self._make_ready(info)
            return
        self._pausing.add(info.key)
        self._timers.after(pause, lambda: self._pause_over(info))

    def _pause_over(self, info: PodInfo) -> None:
        if info.key in self._pausing and self._known.get(info.key) is info:
            self._pausing.discard(info.key)
            self._make_ready(info)

    def _make_ready(self, info: PodInfo) -> None:
        self._is_ready.add(info.key)
        heapq.heappush(self._ready, (-info.needs.priority, info.created, info.order, info))
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # taking out

    async def until_ready(self) -> None:
        while not self._is_ready:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    def pop(self) -> PodInfo | None:
        """Return the most important pod that is ready; it is in hand until `done`, `failed` or `again`."""
        while self._ready:
            info = heapq.heappop(self._ready)[-1]
            if info.key in self._is_ready and self._known.get(info.key) is info:
                self._is_ready.discard(info.key)
                self._in_hand[info.key] = self._changes
                return info
        return None

    def done(self, info: PodInfo) -> None:
        """Remove a pod that has a node."""
        self._put_down(info)
        if self._known.get(info.key) is info:
            del self._known[info.key]

    def failed(self, info: PodInfo, plugins: frozenset[str]) -> None:
        """Park a pod without a node until a change that concerns these filters."""
        changed = self._put_down(info, plugins)
        current = self._tried(info)
        if current is None:
            return
        current.plugins = plugins
        if current is not info or changed:
            self._pause_or_ready(current)
            return
        self._waiting[info.key] = current
        for plugin in current.plugins:
            self._by_plugin.setdefault(plugin, {})[info.key] = current
        self._flush_later()

    def again(self, info: PodInfo) -> None:
        """Something went wrong that has nothing to do with the pod: try again after its pause."""
        self._put_down(info)
        current = self._tried(info)
        if current is not None:
            self._pause_or_ready(current)

    def _tried(self, info: PodInfo) -> PodInfo | None:
        """Return the pod as it is now, which may be newer than the one that was tried, or another of the same name."""
        current = self._known.get(info.key)
        if current is not None and current.uid == info.uid:
            current.attempts = info.attempts + 1
            current.failed_at = self._clock.monotonic()
            current.condition, current.stored_nominated = info.condition, info.stored_nominated
        return current

    def _put_down(self, info: PodInfo, plugins: Iterable[str] = ()) -> bool:
        """Release the pod; return whether something of interest happened meanwhile."""
        since = self._in_hand.pop(info.key, self._changes)
        again = info.key in self._again
        self._again.discard(info.key)
        return again or any(self._last_change.get(plugin, 0) > since for plugin in plugins)

    # changes

    def changed(self, plugins: Iterable[str], helps: Callable[[PodInfo], bool] | None = None) -> None:
        """Something happened that pods refused by these filters wait for, at least those that `helps` says."""
        self._changes += 1
        helped: dict[Key, PodInfo] = {}
        for plugin in plugins:
            self._last_change[plugin] = self._changes
            waiting = self._by_plugin.get(plugin, {})
            helped |= {key: info for key, info in waiting.items() if helps is None or helps(info)}
        for key, info in helped.items():
            self._leave(key)
            self._pause_or_ready(info)

    def reconsider(self, plugins: Iterable[str], judge: Callable[[PodInfo], str | None]) -> None:
        """Move waiting pods that may fit on a node that is new or has changed.

        `judge` names the filter by which this node refuses a pod, which the pod then waits for, too; None: it may fit.
        """
        self._changes += 1
        for plugin in plugins:
            self._last_change[plugin] = self._changes
        for key, info in list(self._waiting.items()):
            refused_by = judge(info)
            if refused_by is None:
                self._leave(key)
                self._pause_or_ready(info)
            elif refused_by not in info.plugins:
                info.plugins |= {refused_by}
                self._by_plugin.setdefault(refused_by, {})[key] = info

    def _flush_later(self) -> None:
        if not self._flushing and self._waiting:
            self._flushing = True
            oldest = next(iter(self._waiting.values()))
            self._timers.after(oldest.failed_at + _LONGEST_WAIT - self._clock.monotonic(), self._flush)

    def _flush(self) -> None:
        """Pods leave `_waiting` in the order in which they failed."""
        self._flushing = False
        limit = self._clock.monotonic() - _LONGEST_WAIT
        due = []
        for info in self._waiting.values():
            if info.failed_at > limit:
                break
            due.append(info)
        for info in due:
            self._leave(info.key)
            self._pause_or_ready(info)
        self._flush_later()

    def clear(self) -> None:
        self._known.clear()
        self._ready.clear()
        self._is_ready.clear()
        self._pausing.clear()
        self._waiting.clear()
        self._by_plugin.clear()
        self._in_hand.clear()
        self._again.clear()
        self._flushing = False
