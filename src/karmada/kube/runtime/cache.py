"""An indexed set of objects: what an informer knows, by key and by any value computed from an object.

It keeps the very objects it is given. An index maps a value to the objects that have it; since stored objects never
change, the values of an object that leaves are computed again instead of being kept.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TypeAlias

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

IndexFn: TypeAlias = Callable[[Obj], Iterable[str]]
_BY_NAMESPACE = "\0namespace"


def _namespaces(obj: Obj) -> Iterable[str]:
    return (obj["metadata"].get("namespace", ""),)


class Cache:
    def __init__(self, indexes: Mapping[str, IndexFn] | None = None) -> None:
        self._objects: dict[Key, Obj] = {}
        self._functions: dict[str, IndexFn] = {}
        self._indexes: dict[str, dict[str, dict[Key, Obj]]] = {}
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def __iter__(self) -> Iterator[Obj]:
        return iter(self._objects.values())

    def keys_outside(self, wanted: Container[Key]) -> builtins.list[Key]:
        return [key for key in self._objects if key not in wanted]

    def get(self, key: Key) -> Obj | None:
        return self._objects.get(key)

    def list(self, namespace: str = "") -> builtins.list[Obj]:
        if not namespace:
            return list(self._objects.values())
        if _BY_NAMESPACE not in self._indexes:
            self.add_index(_BY_NAMESPACE, _namespaces)
        return self.by_index(_BY_NAMESPACE, namespace)

    def by_index(self, name: str, value: str) -> builtins.list[Obj]:
        found = self._indexes[name].get(value)
        return list(found.values()) if found else []

    def index_values(self, name: str) -> Iterable[str]:
        """The values that some object has."""
        return self._indexes[name].keys()

    def add_index(self, name: str, function: IndexFn) -> None:
        """Add an index, also to a cache in use. The same name again must mean the same function."""
        if name in self._functions:
            if self._functions[name] is not function:
                raise ValueError(f"index {name!r} exists with another function")
            return
        self._functions[name] = function
        index = self._indexes[name] = {}
        for key, obj in self._objects.items():
            _insert(index, function(obj), key, obj)

    def set(self, key: Key, obj: Obj) -> Obj | None:
        """Store the object and return the one it replaces."""
        old = self._objects.get(key)
        self._objects[key] = obj
        for name, function in self._functions.items():
            index = self._indexes[name]
            if old is not None:
                _remove(index, function(old), key)
            _insert(index, function(obj), key, obj)
        return old

    def pop(self, key: Key) -> Obj | None:
        old = self._objects.pop(key, None)
        if old is not None:
            for name, function in self._functions.items():
                _remove(self._indexes[name], function(old), key)
        return old


def _insert(index: dict[str, dict[Key, Obj]], values: Iterable[str], key: Key, obj: Obj) -> None:
    for value in values:
        bucket = index.get(value)
        if bucket is None:
            index[value] = {key: obj}
        else:
            bucket[key] = obj


def _remove(index: dict[str, dict[Key, Obj]], values: Iterable[str], key: Key) -> None:
    for value in values:
        bucket = index.get(value)
        if bucket is not None:
            bucket.pop(key, None)
            if not bucket:
                del index[value]
