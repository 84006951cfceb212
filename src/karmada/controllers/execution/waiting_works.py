"""Works that wait for something: for their cluster to be ready, or for the control plane to respond.

There may be a million of them, all Works of clusters that an agent handles: of each its name is kept, which the caches
have anyway, and no key.
"""

from __future__ import annotations

from collections.abc import Iterator

from karmada.kube.runtime.keys import Key


class WaitingWorks:
    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, set[str]]] = {}
        """By what they wait for and by namespace, the names."""

    def add(self, awaited: str, key: Key) -> None:
        self._waiting.setdefault(awaited, {}).setdefault(key.namespace, set()).add(key.name)

    def take(self, awaited: str) -> Iterator[Key]:
        """Those that waited for it, which wait no more."""
        for namespace, names in self._waiting.pop(awaited, {}).items():
            for name in names:
                yield Key(namespace, name)

    def drop(self, awaited: str) -> None:
        self._waiting.pop(awaited, None)
