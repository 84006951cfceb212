"""What aggregated servers say of themselves: their resources for discovery, their schemas for OpenAPI.

Kept until the backend says something else; a backend that is lost takes its resources along, so that discovery shows
its group-version as stale. `generation` rises with every change.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.types import Obj


class Documents:
    def __init__(self) -> None:
        self.generation = 0
        self._resources: dict[GroupVersion, tuple[Obj, ...]] = {}
        self._openapi: dict[GroupVersion, tuple[str, bytes]] = {}

    def resources(self, version: GroupVersion) -> tuple[Obj, ...] | None:
        return self._resources.get(version)

    def openapi(self) -> dict[GroupVersion, tuple[str, bytes]]:
        return self._openapi

    def learn(self, version: GroupVersion, resources: tuple[Obj, ...] | None) -> None:
        """Take over the backend's APIResourceList, or None if it could not be had."""
        if self._resources.get(version) == resources:
            return
        if resources is None:
            del self._resources[version]
        else:
            self._resources[version] = resources
        self.generation += 1

    def openapi_tag(self, version: GroupVersion) -> str:
        known = self._openapi.get(version)
        return known[0] if known is not None else ""

    def learn_openapi(self, version: GroupVersion, tag: str, document: bytes) -> None:
        self._openapi[version] = (tag or hashlib.sha512(document).hexdigest().upper(), _packed(document))

    def forget_openapi(self, version: GroupVersion) -> None:
        self._openapi.pop(version, None)

    def forget(self, version: GroupVersion) -> None:
        self.learn(version, None)
        self.forget_openapi(version)


def _packed(document: bytes) -> bytes:
    packer = zlib.compressobj(4, zlib.DEFLATED, 31)
    return packer.compress(document) + packer.flush()


def listed_resources(answer: Any) -> tuple[Obj, ...] | None:
    """Return the entries of an APIResourceList that discovery can show; None if it is none."""
    if not isinstance(answer, dict) or answer.get("kind") != "APIResourceList":
        return None
    entries = [entry for entry in answer.get("resources") or () if isinstance(entry, dict)]
    return tuple(
        {"singularName": "", "namespaced": False, "verbs": [], **entry}
        for entry in entries
        if entry.get("name") and entry.get("kind")
    )
