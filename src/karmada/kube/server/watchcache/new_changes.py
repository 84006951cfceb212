"""What is derived from all objects of a collection follows it at the cost of what has changed since the last look."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.kube.server.watchcache.collection import Collection
from karmada.kube.server.watchcache.entry import Change


class NewChanges:
    """Gives the changes of a collection since they were last taken."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._taken: tuple[int, int] | None = None
        """How often the collection was reset, and its last change, when they were last taken."""

    def take(self) -> Sequence[Change] | None:
        """Return them, oldest first; None for the first time and after a gap, when anything may have changed."""
        collection, taken = self._collection, self._taken
        now = self._taken = (collection.resets, collection.changed)
        if taken == now:
            return ()
        return collection.changes_since(taken[1]) if taken is not None and taken[0] == now[0] else None
