"""What is served: every Resource by group, version and plural, and a counter that rises when that changes.

Built-in resources are added once; custom ones come and go with their CRDs. Discovery and OpenAPI documents are made
from this registry and cached until the counter moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.gvk import GVK, GVR, GroupResource, GroupVersion


class Registry:
    def __init__(self) -> None:
        self._by_version: dict[GroupVersion, dict[str, Resource]] = {}
        self._by_kind: dict[GVK, Resource] = {}
        self._hidden: frozenset[GVR] = frozenset()
        self._builtin_groups: set[str] = set()
        self.generation = 0

    def add(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            self._by_version.setdefault(resource.gvk.group_version, {})[resource.plural] = resource
            self._by_kind[resource.gvk] = resource
            if not resource.custom:
                self._builtin_groups.add(resource.gvk.group)
        self.generation += 1

    def remove(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            plurals = self._by_version.get(resource.gvk.group_version, {})
            if plurals.get(resource.plural) is resource:
                del plurals[resource.plural]
            if self._by_kind.get(resource.gvk) is resource:
                del self._by_kind[resource.gvk]
            if not plurals:
                self._by_version.pop(resource.gvk.group_version, None)
        self.generation += 1

    def hide(self, hidden: Iterable[GVR]) -> None:
        """Leave these, and no others, out of discovery and OpenAPI; they are served all the same."""
        self._hidden = frozenset(hidden)
        self.generation += 1

    def get(self, gvr: GVR) -> Resource | None:
        return self.find(gvr.group_version, gvr.resource)

    def find(self, version: GroupVersion, plural: str) -> Resource | None:
        plurals = self._by_version.get(version)
        return plurals.get(plural) if plurals else None

    def by_kind(self, gvk: GVK) -> Resource | None:
        return self._by_kind.get(gvk)

    def serves(self, version: GroupVersion) -> bool:
        return version in self._by_version

    def has_builtin(self, group: str) -> bool:
        """Return whether the group has built-in kinds: below it, an unknown path is answered with a Status."""
        return group in self._builtin_groups

    def versions(self) -> list[GroupVersion]:
        if self._hidden:
            return [version for version in self._by_version if self.in_version(version)]
        return list(self._by_version)

    def in_version(self, version: GroupVersion) -> list[Resource]:
        found = self._by_version.get(version, {}).values()
        return [resource for resource in found if resource.gvr not in self._hidden] if self._hidden else list(found)

    def versions_of(self, resource: GroupResource) -> list[Resource]:
        return [
            plurals[resource.resource]
            for version, plurals in self._by_version.items()
            if version.group == resource.group and resource.resource in plurals
        ]

    def __iter__(self) -> Iterator[Resource]:
        for plurals in list(self._by_version.values()):
            yield from list(plurals.values())

    def stored(self) -> dict[GroupResource, Resource]:
        """Return one Resource for each place of storage: its storage version where that is served."""
        found: dict[GroupResource, Resource] = {}
        for resource in self:
            known = found.get(resource.storage_resource)
            if known is None or resource.gvk == resource.storage:
                found[resource.storage_resource] = resource
        return found

    def seldom_read(self, resource: GroupResource) -> bool:
        """Return whether what is stored there is hardly ever listed."""
        return any(
            found.strategy.seldom_read for found in self.versions_of(resource) if found.storage_resource == resource
        )
