"""Objects in a dict, read as parts of an API server read the watch cache."""

from __future__ import annotations

from collections.abc import AsyncIterator

from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj


class FakeReader:
    def __init__(self) -> None:
        self.objects: dict[tuple[GroupResource, str, str], Obj] = {}
        self.lists = 0
        self._version = 0

    def hold(self, resource: GroupResource, obj: Obj) -> Obj:
        """Keep an object as it is."""
        self.objects[resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]] = obj
        return obj

    def store(self, resource: GroupResource, obj: Obj) -> Obj:
        """Keep an object with a new resourceVersion, and with a uid."""
        self._version += 1
        meta = obj.setdefault("metadata", {})
        meta["resourceVersion"] = str(self._version)
        meta.setdefault("uid", f"uid-{self._version}")
        return self.hold(resource, obj)

    def get(self, resource: GroupResource, namespace: str, name: str) -> Obj | None:
        return self.objects.get((resource, namespace, name))

    def list(self, resource: GroupResource, namespace: str = "") -> list[Obj]:
        self.lists += 1
        return [obj for (kind, where, _), obj in self.objects.items() if kind == resource and namespace in ("", where)]

    async def scan(self, resource: GroupResource, namespace: str = "") -> AsyncIterator[Obj]:
        for obj in self.list(resource, namespace):
            yield obj
