"""At most so many keys of a group are reconciled at once; the others are parked until one of them is done.

For reconciles that wait for a server which may be slow, such as a webhook: a worker that only waits for it is missing
to all other keys. A key that gives up its turn passes it to the one of its group that has waited longest, which is
then queued. So no turn is lost, whatever becomes of the object of that key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class GroupShares(Generic[K]):
    def __init__(self, add: Callable[[K], None]) -> None:
        """`add` queues a key that got a turn."""
        self._add = add
        self._group_of: dict[K, Hashable] = {}
        self._taken: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, dict[K, None]] = {}
        self._waits_in: dict[K, Hashable] = {}

    def take(self, key: K, group: Hashable, limit: int) -> bool:
        """Return whether the key has one of the group's turns now; else it is queued when it gets one."""
        if self._group_of.get(key) == group:
            return True
        self.give_up(key)
        if self._waits_in.get(key, group) != group:
            self._leave(key)
        if self._taken[group] < limit:
            self._leave(key)
            self._assign(key, group)
            return True
        self._waiting.setdefault(group, {})[key] = None
        self._waits_in[key] = group
        return False

    def give_up(self, key: K) -> None:
        """Give up the turn of a key that was reconciled; nothing happens if it has none."""
        group = self._group_of.pop(key, None)
        if group is None:
            return
        self._taken[group] -= 1
        following = next(iter(self._waiting.get(group, ())), None)
        if following is not None:
            self._leave(following)
            self._assign(following, group)
            self._add(following)
        elif not self._taken[group]:
            del self._taken[group]

    def drop(self, concerns: Callable[[Hashable], bool]) -> None:
        """Forget groups, with those that wait in them."""
        self._group_of = {key: group for key, group in self._group_of.items() if not concerns(group)}
        self._taken = Counter(self._group_of.values())
        self._waiting = {group: keys for group, keys in self._waiting.items() if not concerns(group)}
        self._waits_in = {key: group for key, group in self._waits_in.items() if not concerns(group)}

    def _leave(self, key: K) -> None:
        """Wait no longer."""
        group = self._waits_in.pop(key, None)
        if group is not None:
            del self._waiting[group][key]
            if not self._waiting[group]:
                del self._waiting[group]

    def _assign(self, key: K, group: Hashable) -> None:
        self._group_of[key] = group
        self._taken[group] += 1
