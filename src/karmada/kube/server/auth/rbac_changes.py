"""What is written of roles and bindings, from the watch cache, for the authorizer."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.kube.server.auth.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, Written
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.new_changes import NewChanges

_RESOURCES = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)


class RbacChanges:
    def __init__(self, cache: Cache) -> None:
        self._collections = [cache.collection(resource) for resource in _RESOURCES]
        self._new = [NewChanges(collection) for collection in self._collections]
        self._seen: list[int] = []

    def __call__(self) -> Sequence[Written] | None:
        """Return what was written since the last call; None when anything may have changed."""
        seen = [collection.generation for collection in self._collections]
        if seen == self._seen:
            return ()
        self._seen = seen
        taken = [new.take() for new in self._new]
        written: list[Written] = []
        for resource, changes in zip(_RESOURCES, taken, strict=True):
            if changes is None:
                return None
            written += [Written(resource, change.entry.namespace, change.entry.name) for change in changes]
        return written
