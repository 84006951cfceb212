"""Positions in many clusters at once, as one resourceVersion and one continue token.

A resourceVersion is valid in one cluster only. So what clients of the proxy get is a map of cluster to resourceVersion,
as base64url of its JSON. Clients treat it as opaque; what cannot be decoded counts as no version at all.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

from karmada.kube.objects.base64url import b64url, b64url_decode

ANY: Final = "0"
"""The resourceVersion of any cached state."""


class Versions:
    """A resourceVersion for each cluster. Decoded from "0", it is "0" for all until a cluster gets another."""

    __slots__ = ("_any", "_by_cluster")

    def __init__(self, by_cluster: Mapping[str, str] | None = None, *, any_state: bool = False) -> None:
        self._by_cluster = dict(by_cluster or {})
        self._any = any_state

    @classmethod
    def decode(cls, text: str) -> Versions:
        if text == ANY:
            return cls(any_state=True)
        found = _decoded(text)
        valid = all(isinstance(version, str) for version in found.values())
        return cls(found if valid else {})

    def encode(self) -> str:
        if self._any:
            return ANY
        return _encoded(self._by_cluster) if self._by_cluster else ""

    def get(self, cluster: str) -> str:
        """Return the version in a cluster; "" when it has none."""
        return ANY if self._any else self._by_cluster.get(cluster, "")

    def set(self, cluster: str, version: str) -> None:
        self._by_cluster[cluster] = version
        if version != ANY:
            self._any = False

    def copy(self) -> Versions:
        return Versions(self._by_cluster, any_state=self._any)

    def only(self, clusters: Container[str]) -> Versions:
        """Return a copy without other clusters."""
        kept = {cluster: version for cluster, version in self._by_cluster.items() if cluster in clusters}
        return Versions(kept, any_state=self._any)

    def __contains__(self, cluster: str) -> bool:
        return cluster in self._by_cluster

    def __iter__(self) -> Iterator[str]:
        """Return the clusters that have a version of their own."""
        return iter(self._by_cluster)


class Continue(NamedTuple):
    """Where a list goes on: at `cluster`, from its own token if that is set, with the positions in all clusters."""

    versions: str = ""
    cluster: str = ""
    token: str = ""

    @classmethod
    def decode(cls, text: str) -> Continue:
        found = _decoded(text)
        values = [found.get(key, "") for key in ("rv", "cluster", "continue")]
        return cls(*values) if all(isinstance(value, str) for value in values) else cls()

    def encode(self) -> str:
        if not self.cluster:
            return ""
        value = {"rv": self.versions, "cluster": self.cluster}
        return b64url(orjson.dumps({**value, "continue": self.token} if self.token else value))


def _encoded(value: Mapping[str, str]) -> str:
    return b64url(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def _decoded(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(b64url_decode(text)) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
