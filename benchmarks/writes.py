"""How many writes a control plane has made, from its API alone.

The resourceVersion of a list is the revision of the store, which every write raises by one, on SQLite as on etcd. So
two lists count all writes between them, whoever made them. Events are counted as objects: an update of one is a write.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks import objects
from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.objects.shapes import METADATA


class Written(NamedTuple):
    """Since the beginning of a store, or between two moments."""

    revisions: int
    events: int

    def since(self, before: Written) -> Written:
        return Written(self.revisions - before.revisions, self.events - before.events)


async def written(control: Client) -> Written:
    policies = await control.list(objects.POLICIES, limit=1)
    events = await control.list(EVENTS, limit=1, shape=METADATA)
    count = len(events["items"]) + int(events["metadata"].get("remainingItemCount") or 0)
    return Written(int(policies["metadata"]["resourceVersion"]), count)
