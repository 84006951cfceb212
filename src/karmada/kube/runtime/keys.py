"""Keys: how caches and queues name an object within its resource."""

from __future__ import annotations

from typing import NamedTuple

from karmada.kube.objects.types import Obj


class Key(NamedTuple):
    """`namespace` is "" for what lives in none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> Key:
        namespace, _, name = text.rpartition("/")
        return cls(namespace, name)


def key_of(obj: Obj) -> Key:
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])
