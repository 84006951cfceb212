"""Objects that are kept as bytes and parsed on demand, shared by all references; and detection of their mutation.

A parsed object takes five times the memory of its bytes. So `Packed` keeps the bytes, parses them on access
and drops the result when it is no longer referenced: a `SharedObject` is a plain dict that can be referred to weakly,
and knows the bytes it came from. What has not changed for a while is compressed by a `Compressor`: objects of a kind
resemble one another, so what differs from a sample of them is a few per cent.

Everything in a shared object is read-only by agreement. With the detector on (the environment variable
KARMADA_MUTATION_DETECTOR, or `detect_mutations`) each is compared with its bytes when it dies and, if still alive, by
`assert_unmutated`.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypedDict, TypeVar, cast

import msgspec
import orjson

from karmada.kube.objects.differences import WORTHWHILE, Sample, pays, resembles
from karmada.kube.objects.types import Obj, Parse

COMPRESSED = 12
"""How many times smaller objects are when they are compressed, about."""
_UNCOMPRESSED_BYTES = 16 << 20
"""Bytes that a Compressor leaves as they are."""
_UNLIKE_LIMIT = 256
"""How many objects may differ too much from the sample before it is replaced; compressed objects keep theirs."""


class SharedObject(dict[str, Any]):
    __slots__ = ("__weakref__", "_view", "source")
    source: Packed
    """Who makes it again."""
    _view: tuple[Callable[[Obj], Obj], Obj] | None

    def viewed(self, transform: Callable[[Obj], Obj]) -> Obj:
        """What `transform` makes of it: the same for all who read it so, one after the other. Read-only."""
        kept = self._view
        if kept is not None and kept[0] is transform:
            return kept[1]
        made = transform(self)
        if made is not self:  # which would keep itself alive
            self._view = (transform, made)
        return made


class Part(dict[str, Any]):
    """Some fields of an object that is kept as bytes; knows these, but is not given out as the object."""

    __slots__ = ("source",)
    source: Packed

    @classmethod
    def of(cls, source: Packed, fields: Obj) -> Part:
        part = cls(fields)
        part.source = source
        return part


class Metadata(TypedDict, total=False):
    """All that an object's metadata may have, except managedFields."""

    name: Any
    generateName: Any
    namespace: Any
    selfLink: Any
    uid: Any
    resourceVersion: Any
    generation: Any
    creationTimestamp: Any
    deletionTimestamp: Any
    deletionGracePeriodSeconds: Any
    labels: Any
    annotations: Any
    ownerReferences: Any
    finalizers: Any


class _Custom(TypedDict, total=False):
    apiVersion: Any
    kind: Any
    metadata: Metadata
    spec: Any
    status: Any


_decode_custom = msgspec.json.Decoder(_Custom).decode


def parse_custom(raw: bytes) -> Obj:
    """An object that has nothing but a spec and a status, as most custom ones, without its managedFields.

    These are up to half of an object, and are skipped here without being made.
    """
    return cast("Obj", _decode_custom(raw))


class _Whole(msgspec.Struct):
    metadata: dict[str, Any]


_decode_metadata = msgspec.json.Decoder(_Whole).decode


class Packed:
    """An object as bytes. Never changes."""

    __slots__ = ("__weakref__", "_bytes", "_sample", "_shared")

    def __init__(self, raw: bytes) -> None:
        self._bytes = raw
        self._sample: Sample | None = None
        """What `_bytes` are the difference to; None when they are all there is."""
        self._shared: _Alive | None = None

    @property
    def raw(self) -> bytes:
        sample = self._sample
        return self._bytes if sample is None else sample.restored(self._bytes)

    @property
    def size(self) -> int:
        """Bytes that are kept of it now."""
        return len(self._bytes)

    @property
    def weight(self) -> int:
        """About how many bytes it is as JSON."""
        return len(self._bytes) if self._sample is None else COMPRESSED * len(self._bytes)

    def compress(self, sample: Sample) -> bool:
        """Store only the difference to this sample; False if the two differ too much for that."""
        raw = self._bytes
        if self._sample is not None or len(raw) < WORTHWHILE:
            return True
        small = sample.difference(raw)
        if pays(small, raw):
            self._bytes, self._sample = small, sample
        return resembles(small, raw)

    @classmethod
    def of(cls, obj: Obj) -> Packed:
        """What keeps this object: the bytes it came from, or new ones."""
        return obj.source if isinstance(obj, SharedObject) else cls(orjson.dumps(obj))

    @property
    def alive(self) -> SharedObject | None:
        """The parsed object, if somebody holds it."""
        return None if self._shared is None else self._shared()

    def object(self) -> SharedObject:
        """The parsed object, the same one for all who hold it at the same time. Read-only."""
        if self._shared is not None:
            alive = self._shared()
            if alive is not None:
                return alive
        raw = self.raw
        return self._share(orjson.loads(raw), raw)

    def parsed(self, parse: Parse) -> Obj:
        """What `parse` makes of the object: the caller's own."""
        return parse(self.raw)

    def metadata(self) -> Obj:
        """The metadata: that of the parsed object if somebody holds it, else without parsing the rest. Read-only."""
        alive = self.alive
        if alive is not None:
            shared: Obj = alive["metadata"]
            return shared
        return _decode_metadata(self.raw).metadata

    def adopt(self, obj: Obj) -> SharedObject:
        """Use this as the parsed object; it must equal the bytes and is not changed any more."""
        raw = b""
        if _detecting:
            raw = orjson.dumps(obj)  # not the stored bytes, whose order of keys may be another
            if raw != self.raw and orjson.loads(self.raw) != obj:
                _mutated.append(f"adopted {raw.decode()}\nfor     {self.raw.decode()}")
        return self._share(obj, raw)

    def _share(self, obj: Obj, raw: bytes) -> SharedObject:
        """`raw` is the object as bytes, for the detector."""
        shared = _observe(obj, raw) if _detecting else SharedObject(obj)
        shared.source, shared._view = self, None
        self._shared = alive = _Alive(shared, _died)
        alive.packed = self
        return shared


class _Alive(weakref.ref[SharedObject]):
    """A parsed object while somebody holds it; then nothing is left, not even of a million that were read once."""

    __slots__ = ("packed",)
    packed: Packed


def _died(alive: weakref.ref[SharedObject]) -> None:
    assert isinstance(alive, _Alive)
    if alive.packed._shared is alive:
        alive.packed._shared = None


P = TypeVar("P", bound=Packed)


class Compressor(Generic[P]):
    """Compresses objects once `recent` others were added after them, or `most_bytes` of others.

    Those that were dropped by then, or that `worth` rejects, cost nothing.
    """

    def __init__(
        self,
        recent: int = 2_048,
        worth: Callable[[P], bool] = lambda _packed: True,
        *,
        most_bytes: int = _UNCOMPRESSED_BYTES,
    ) -> None:
        self._most = recent
        self._most_bytes = most_bytes
        self._worth = worth
        self._recent: deque[weakref.ref[P]] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._sample: Sample | None = None
        self._unlike = 0

    def add(self, packed: P) -> None:
        size = packed.size
        self._recent.append(weakref.ref(packed))
        self._sizes.append(size)
        self._bytes += size
        while len(self._recent) > self._most or self._bytes > self._most_bytes:
            self._bytes -= self._sizes.popleft()
            oldest = self._recent.popleft()()
            if oldest is not None and self._worth(oldest):
                self._compress(oldest)

    def _compress(self, packed: P) -> None:
        if self._sample is None:
            self._sample = Sample(packed.raw)
        elif not packed.compress(self._sample):
            self._unlike += 1
            if self._unlike >= _UNLIKE_LIMIT:
                self._sample = self._sample.extended(packed.raw)
                self._unlike = 0


class _Observed(SharedObject):
    __slots__ = ("raw",)
    raw: bytes

    def __del__(self) -> None:
        _alive.pop(id(self), None)
        _examine(self)


_detecting = bool(os.environ.get("KARMADA_MUTATION_DETECTOR"))
_alive: dict[int, weakref.ref[_Observed]] = {}
_mutated: list[str] = []


def _observe(obj: Obj, raw: bytes) -> SharedObject:
    observed = _Observed(obj)
    observed.raw = raw
    _alive[id(observed)] = weakref.ref(observed)
    return observed


def detect_mutations(on: bool = True) -> None:
    """Watch over the objects that are parsed from now on."""
    global _detecting
    _detecting = on


def is_detecting() -> bool:
    return _detecting


def assert_unmutated() -> None:
    """AssertionError if a shared object was changed since the last call."""
    for reference in list(_alive.values()):
        observed = reference()
        if observed is not None:
            _examine(observed)
    found = list(_mutated)
    _mutated.clear()
    assert not found, "shared objects were changed:\n" + "\n".join(found)


def _examine(observed: _Observed) -> None:
    if observed._view is not None:
        transform, view = observed._view
        if view != transform(observed):
            _mutated.append(f"of {observed.raw.decode()}\nthe view is {view}")
            observed._view = None
    now = orjson.dumps(observed)
    if now == observed.raw:
        return
    if orjson.loads(now) != orjson.loads(observed.raw):
        _mutated.append(f"was {observed.raw.decode()}\nis  {now.decode()}")
    observed.raw = now  # each mutation is reported once
