"""An indexed set of objects: what an informer caches, by key and by any value computed from an object.

A `Cache` keeps the very objects it is given; an `DocCache` keeps their bytes and parses an object when it is
read, which holds thousands of large ones in a fifth of the memory. An index maps a value to the keys of the objects
that have it; since stored objects never change, the values of an object that leaves are computed again instead of
being kept. Nor are they computed when nothing but the status has changed and the index `ignores_status`: most writes
of an object that has indexes are reports.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

from karmada.kube.objects.doc import Doc, Part, SharedObject, of_elsewhere
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
    def __init__(self, indexes: Mapping[str, IndexFn] | None = None) -> None:
        self._objects: dict[Key, Any] = {}
        self._functions: dict[str, IndexFn] = {}
        self._of_status: dict[str, IndexFn] = {}
        """Functions that may depend on the status."""
        self._indexes: dict[str, _Index] = {}
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    def _hold(self, obj: Obj) -> tuple[Any, Obj]:
        """Return what is kept of an object, and how it is shown."""
        return obj, obj

    def _show(self, held: Any) -> Obj:
        """Return the object of what is kept."""
        shown: Obj = held
        return shown

    def view(self, obj: Obj) -> Obj:
        """Return how an object would be shown."""
        return obj

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def __iter__(self) -> Iterator[Obj]:
        return map(self._show, self._objects.values())

    def keys_outside(self, wanted: Container[Key]) -> builtins.list[Key]:
        return [key for key in self._objects if key not in wanted]

    def get(self, key: Key) -> Obj | None:
        held = self._objects.get(key)
        return None if held is None else self._show(held)

    def glance(self, key: Key) -> Obj | None:
        """As `get`, by one who goes through all objects."""
        return self.get(key)

    def skim(self, key: Key, _parse: Parse) -> Obj | None:
        """Return an object of which nothing matters but what this leaves of it; not kept parsed."""
        return self.get(key)

    def state_of(self, key: Key) -> object | None:
        """Return what is kept of an object, to be compared with `is`: another one once the object has changed."""
        return self._objects.get(key)

    def list(self, namespace: str = "") -> builtins.list[Obj]:
        return [self._show(self._objects[key]) for key in self.keys(namespace)] if namespace else list(self)

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
        objects, show = self._objects, self._show
        return [show(objects[key]) for key in self._indexes[name].get(value, ())]

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
            _insert(index, function(self._show(held)), key)

    def set(self, key: Key, obj: Obj) -> Obj | None:
        """Store the object and return the one it replaces."""
        old = self.get(key)
        self.replace(key, old, obj)
        return old

    def add(self, key: Key, obj: Obj) -> Obj:
        """Store an object of a list where there is none yet; as it is shown from now on."""
        self._objects[key], obj = self._listed(obj)
        for name, function in self._functions.items():
            values = function(obj)
            if values:
                _insert(self._indexes[name], values, key)
        return obj

    def _listed(self, obj: Obj) -> tuple[Any, Obj]:
        """Return what is kept of an object that is one of many, and how it is shown."""
        return obj, obj

    def replace(self, key: Key, old: Obj | None, obj: Obj) -> Obj:
        """Store the object in place of the one that is there; as it is shown from now on."""
        self._objects[key], obj = self._hold(obj)
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


class DocCache(Cache):
    """Keeps bytes: those that the server in this process has anyway, or its own."""

    def __init__(self, indexes: Mapping[str, IndexFn] | None = None, shape: Shape = WHOLE) -> None:
        """Objects are shown in this shape; if it is one of the metadata, that alone is parsed."""
        self._shape = shape
        super().__init__(indexes)

    def _hold(self, obj: Obj) -> tuple[Doc, Obj]:
        if isinstance(obj, Part):
            return obj.source, self.view(obj)
        if not isinstance(obj, SharedObject):
            held, obj = self._own(obj)
            obj = held.adopt(obj)
        else:
            held = obj.source
            held.kept()
        return held, self._show(held) if self._shape.only_metadata else self.view(obj)

    def _own(self, obj: Obj) -> tuple[Doc, Obj]:
        obj = self.view(obj)
        return of_elsewhere(obj), obj

    def _listed(self, obj: Obj) -> tuple[Doc, Obj]:
        """Not kept parsed: those after it in the list would replace it before it is read, and memory stays hot."""
        return (obj.source, self.view(obj)) if isinstance(obj, SharedObject | Part) else self._own(obj)

    def glance(self, key: Key) -> Obj | None:
        held = self._objects.get(key)
        if held is None:
            return None
        return self._show(held) if self._shape.only_metadata else self.view(held.object())

    def skim(self, key: Key, parse: Parse) -> Obj | None:
        held: Doc | None = self._objects.get(key)
        return None if held is None else held.parsed(parse)

    def _show(self, held: Doc) -> Obj:
        return self.view(held.shaped(self._shape))

    def view(self, obj: Obj) -> Obj:
        transform = self._shape.of_object
        if transform is None:
            return obj
        return obj.viewed(transform) if isinstance(obj, SharedObject) else transform(obj)


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
