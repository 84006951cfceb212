"""Keys and versions: how caches and queues name an object within its resource, and which of two states is newer."""

from __future__ import annotations

from sys import intern
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


_make = tuple.__new__  # as Key() does, without the call of a function that a key of each object would cost


def key_of(obj: Obj) -> Key:
    """Return the key of an object; its words are the same strings in all caches, indexes and queues."""
    metadata = obj["metadata"]
    return _make(Key, (intern(metadata.get("namespace", "")), intern(metadata["name"])))


def name_of(key: Key) -> str:
    """Return the object's own name, also where a key has more in front of it: `kind/name`."""
    return key.name.rpartition("/")[2]


def number(resource_version: str) -> int:
    """Return a resourceVersion as a number; 0 for what is none."""
    return int(resource_version) if resource_version.isdecimal() else 0


def version(obj: Obj) -> int:
    return number(obj["metadata"].get("resourceVersion", ""))
