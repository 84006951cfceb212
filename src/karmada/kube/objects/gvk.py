"""Names of kinds and resources: group/version/kind and group/version/resource."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple


class GroupVersion(NamedTuple):
    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        group, slash, version = api_version.rpartition("/")
        return cls(group if slash else "", version)


class GroupKind(NamedTuple):
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupResource(NamedTuple):
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GVK(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        return f"{self.api_version}, Kind={self.kind}"

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GVK:
        group, version = GroupVersion.parse(api_version)
        return cls(group, version, kind)


class GVR(NamedTuple):
    group: str
    version: str
    resource: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)


@lru_cache(maxsize=4096)
def _parsed(api_version: str, kind: str) -> GVK:
    return GVK.parse(api_version, kind)


def gvk_of(obj: Mapping[str, Any]) -> GVK:
    """Return the GVK of an object, or of a reference or selector with apiVersion and kind."""
    return _parsed(obj.get("apiVersion") or "", obj.get("kind") or "")
