"""An indexed set of objects: what an informer has, by key and by any value computed from an object.

Objects are kept in a `Shape`: as they are shown, or as Docs, which are parsed when they are read and hold thousands of
large objects in a fifth of the memory. An index maps a value to the keys of the objects that have it; since stored
objects never change, the values of an object that leaves are computed again instead of being kept. Nor are they
computed when nothing but the status has changed and the index `ignores_status`: most writes of an object that has
indexes are reports.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

from karmada.kube.objects.doc import Part, SharedObject, of_elsewhere
from karmada.kube.objects.shapes import WHOLE, Shape
from karmada.kube.objects.types import Obj, Parse
from karmada.kube.runtime.keys import Key

IndexFn: TypeAlias = Callable[[Obj], Iterable[str]]
_Index: TypeAlias = dict[str, dict[Key, None]]
_BY_NAMESPACE = "\0namespace"


_F = TypeVar("_F", bound=IndexFn)
_ignoring_status: WeakSet[IndexFn] = WeakSet()
_OF_EACH_WRITE = frozenset({"resourceVersion", "managedFields"})


def ignores_status(function: _F) -> _F:
    """Declare that an index depends on the spec and the metadata alone, without what each write changes in that."""
    _ignoring_status.add(function)
    return function


@ignores_status
def _namespaces(obj: Obj) -> Iterable[str]:
    return (obj["metadata"].get("namespace", ""),)


class Cache:
    def __init__(self, indexes: Mapping[str, IndexFn] | None = None, shape: Shape = WHOLE) -> None:
        self.shape = shape
        self._as_docs = shape.as_docs
        self._objects: dict[Key, Any] = {}
        """Docs, or objects as they are shown."""
        self._functions: dict[str, IndexFn] = {}
        self._of_status: dict[str, IndexFn] = {}
        """Functions that may depend on the status."""
        self._indexes: dict[str, _Index] = {}
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def keys_outside(self, wanted: Container[Key]) -> builtins.list[Key]:
        return [key for key in self._objects if key not in wanted]

    def get(self, key: Key) -> Obj | None:
        """Return an object, which is soon read again: it is kept parsed for a while."""
        held = self._objects.get(key)
        if held is None or not self._as_docs:
            return held
        shown: Obj = held.shaped(self.shape)
        return shown

    def peek(self, key: Key, parse: Parse | None = None) -> Obj | None:
        """Return an object to those who go through many, without keeping it parsed.

        `parse` makes of its bytes all that they need, where it is not parsed.
        """
        held = self._objects.get(key)
        if held is None or not self._as_docs:
            return held
        shown: Obj = held.shaped(self.shape, keep=False) if parse is None else held.parsed(parse)
        return shown

    def state_of(self, key: Key) -> object | None:
        """Return what is kept of an object, to be compared with `is`: another one once the object has changed."""
        return self._objects.get(key)

    def list(self, namespace: str = "") -> builtins.list[Obj]:
        return self._shown(self.keys(namespace))

    def keys(self, namespace: str = "") -> builtins.list[Key]:
        """For going through many without having all of them in memory."""
        if not namespace:
            return list(self._objects)
        if _BY_NAMESPACE not in self._indexes:
            self._index_by_namespace()
        return self.keys_by_index(_BY_NAMESPACE, namespace)

    def _index_by_namespace(self) -> None:
        """From the keys: a million objects are not parsed because one cluster of them goes."""
        self._functions[_BY_NAMESPACE] = _namespaces
        index: _Index = {}
        for key in self._objects:
            _insert(index, (key.namespace,), key)
        self._indexes[_BY_NAMESPACE] = index

    def by_index(self, name: str, value: str) -> builtins.list[Obj]:
        return self._shown(self._indexes[name].get(value, ()))

    def _shown(self, keys: Iterable[Key]) -> builtins.list[Obj]:
        objects, shape = self._objects, self.shape
        return [objects[key].shaped(shape) if self._as_docs else objects[key] for key in keys]

    def keys_by_index(self, name: str, value: str) -> builtins.list[Key]:
        return list(self._indexes[name].get(value, ()))

    def has(self, name: str, value: str) -> bool:
        """Return whether some object has this value of an index."""
        return value in self._indexes[name]

    def index_values(self, name: str) -> Iterable[str]:
        """Return the values that some object has."""
        return self._indexes[name].keys()

    def add_index(self, name: str, function: IndexFn) -> None:
        """Add an index, also to a cache in use. The same name again must mean the same function."""
        if name in self._functions:
            if self._functions[name] is not function:
                raise ValueError(f"index {name!r} exists with another function")
            return
        self._functions[name] = function
        if function not in _ignoring_status:
            self._of_status[name] = function
        index = self._indexes[name] = {}
        for key, held in self._objects.items():
            _insert(index, function(held.shaped(self.shape) if self._as_docs else held), key)

    def set(self, key: Key, obj: Obj) -> Obj | None:
        """Store the object and return the one it replaces."""
        old = self.get(key)
        self.replace(key, old, obj)
        return old

    def replace(self, key: Key, old: Obj | None, obj: Obj, *, keep: bool = True) -> Obj:
        """Store the object in place of the one that is there; return it as it is shown from now on.

        Those of a list are not kept parsed: others would take their place before they are read, and memory stays hot.
        """
        shape = self.shape
        if not self._as_docs:
            self._objects[key] = obj = shape.of(obj)
        elif isinstance(obj, SharedObject):
            doc = self._objects[key] = obj.source
            if keep:
                doc.kept()
            obj = doc.shaped(shape, keep=False)
        elif isinstance(obj, Part):
            self._objects[key], obj = obj.source, shape.of(obj)
        else:
            obj = shape.of(obj)
            doc = self._objects[key] = of_elsewhere(obj)
            if keep:
                obj = doc.adopt(obj)
                obj = doc.shaped(shape, keep=False)
        if self._functions:
            self._index(key, old, obj)
        return obj

    def _index(self, key: Key, old: Obj | None, obj: Obj) -> None:
        reported = old is not None and _is_same_but_status(old, obj)
        for name, function in (self._of_status if reported else self._functions).items():
            values = tuple(function(obj))
            if old is not None:
                before = tuple(function(old))
                if before == values:
                    continue
                _remove(self._indexes[name], before, key)
            if values:
                _insert(self._indexes[name], values, key)

    def pop(self, key: Key) -> Obj | None:
        old = self.get(key)
        if old is not None:
            del self._objects[key]
            for name, function in self._functions.items():
                _remove(self._indexes[name], function(old), key)
        return old


def _is_same_but_status(old: Obj, new: Obj) -> bool:
    """Return whether two states differ in their status only, and in the metadata that each write changes."""
    if old.get("spec") is not new.get("spec"):
        return False
    before, now = old["metadata"], new["metadata"]
    for key, value in now.items():
        known = before.get(key)
        if known is not value and known != value and key not in _OF_EACH_WRITE:  # most are the very same
            return False
    gone: set[str] = before.keys() - now.keys()
    return gone <= _OF_EACH_WRITE


def _insert(index: _Index, values: Iterable[str], key: Key) -> None:
    for value in values:
        index.setdefault(value, {})[key] = None


def _remove(index: _Index, values: Iterable[str], key: Key) -> None:
    for value in values:
        bucket = index.get(value)
        if bucket is not None:
            bucket.pop(key, None)
            if not bucket:
                del index[value]
