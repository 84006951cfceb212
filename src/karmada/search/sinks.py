"""Where changes of cached objects go besides the caches: the full-text index, OpenSearch.

A sink is called on the event loop by the task that follows a member, so it must be quick and must not fail: it takes
note and works later. Calls for one resource of one cluster come in order.
"""

from __future__ import annotations

from typing import Protocol

from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVR


class Sink(Protocol):
    def upsert(self, cluster: str, gvr: GVR, obj: Doc) -> None:
        """Take over a new or changed object; after a restart of this process every object is new."""

    def delete(self, cluster: str, gvr: GVR, namespace: str, name: str, uid: str) -> None:
        """Delete an object; one that was made again under its name is deleted first, then upserted."""

    def replaced(self, cluster: str, gvr: GVR) -> None:
        """Finish a list: all its objects were upserted or had not changed, and those gone were deleted."""

    def forget(self, cluster: str, gvr: GVR | None = None) -> None:
        """Forget the resource, or with None everything, of a cluster that is no longer cached; nothing was deleted."""
