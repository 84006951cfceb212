"""An object as bytes, parsed on demand; and detection of the mutation of what is shared.

A parsed object takes five times the memory of its bytes. So a `Doc` keeps the bytes, parses them on access and drops
the result when it is no longer referenced: a `SharedObject` is a plain dict that can be referred to weakly, and knows
the Doc it came from. What has not changed for a while is packed: as the store has packed it, or by a `Compressor`.
Objects of a kind resemble one another, so that what differs is a few per cent.

Everything in a shared object is read-only by agreement. With the detector on (the environment variable
KARMADA_MUTATION_DETECTOR, or `detect_mutations`) each is compared with its bytes when it dies and, if still alive, by
`assert_unmutated`.
"""

from __future__ import annotations

import os
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from sys import intern
from types import MappingProxyType
from typing import Any, Protocol, TypedDict, cast

import msgspec
import orjson

from karmada.kube.objects.codec import WORTHWHILE, ZlibDictionary, pays, resembles, with_version
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj, Parse

COMPRESSED = 12
"""How many times smaller objects are when they are packed, about."""
_UNCOMPRESSED_BYTES = 16 << 20
"""Bytes that a Compressor leaves as they are."""
_UNLIKE_LIMIT = 256
"""How many objects may differ too much from the dictionary before it is replaced; compressed objects keep theirs."""
_KEPT_PARSED, _KEPT_BYTES = 2_048, 8 << 20
"""Parsed objects that are kept for the next reader, and bytes of JSON that they are."""
_UNCOMPRESSED = 256
"""Objects of a kind, from other servers, that are not compressed yet."""
_NO_LABELS: Mapping[str, str] = MappingProxyType({})


class SharedObject(dict[str, Any]):
    __slots__ = ("__weakref__", "_view", "source")
    source: Doc
    """Doc that makes it again."""
    _view: tuple[Callable[[Obj], Obj], Obj] | None

    def viewed(self, transform: Callable[[Obj], Obj]) -> Obj:
        """Return what `transform` makes of it: the same for all who read it so, one after the other. Read-only."""
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
    source: Doc

    @classmethod
    def of(cls, source: Doc, fields: Obj) -> Part:
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
    """Return an object that has nothing but a spec and a status, as most custom ones, without its managedFields.

    These are up to half of an object, and are skipped here without being made.
    """
    return cast("Obj", _decode_custom(raw))


class _Whole(msgspec.Struct):
    metadata: dict[str, Any]


class _OfMetadata(msgspec.Struct):
    labels: dict[str, str] | None = None
    uid: str = ""


class _Partial(msgspec.Struct):
    metadata: _OfMetadata


_decode_metadata = msgspec.json.Decoder(_Whole).decode
_decode_partial = msgspec.json.Decoder(_Partial).decode


class Packing(Protocol):
    """How the JSON of an object is packed."""

    def unpacked(self, doc: Doc, packed: bytes, /) -> bytes:
        """Return the JSON of the object, its resourceVersion included."""


class Doc:
    """An object at one revision, as bytes. Never changes; `raw` is as clients get it, resourceVersion included.

    There may be a million: strings that others have, too, are the same string. It has the JSON, the packed bytes, or
    for a while both: what was just written is read soon, and then the JSON goes, without being packed a second time.
    An object that came from no store here has no key and no revision.
    """

    __slots__ = (
        "__weakref__", "_json", "_labels", "_packed", "_packing", "_start", "alive", "name", "namespace", "revision",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        namespace: str,
        name: str,
        revision: int,
        raw: bytes | None,
        packed: bytes | None = None,
        packing: Packing | None = None,
    ) -> None:
        """`raw` is the JSON; without it, `packing` makes it of what is packed."""
        rest = len(namespace) + 1 + len(name) if namespace else len(name)
        self._start = intern(key[:-rest])
        self.namespace = intern(namespace)
        self.name = intern(name)
        self.revision = revision
        self._json = raw
        self._packed = packed
        self._packing = packing
        self._labels: Mapping[str, str] | None = None
        self.alive: weakref.ref[SharedObject] = NOBODY
        """Returns the parsed object, if somebody holds it."""

    @classmethod
    def of(cls, obj: Obj) -> Doc:
        """Return what an object came from, or its bytes."""
        return obj.source if isinstance(obj, SharedObject) else cls("", "", "", 0, orjson.dumps(obj))

    @property
    def key(self) -> str:
        return f"{self._start}{self.namespace}/{self.name}" if self.namespace else self._start + self.name

    @property
    def raw(self) -> bytes:
        raw = self._json
        if raw is None:
            assert self._packing is not None
            assert self._packed is not None
            return self._packing.unpacked(self, self._packed)
        return raw

    @property
    def size(self) -> int:
        """Return how many bytes are kept of it now."""
        kept = self._packed if self._json is None else self._json
        return 0 if kept is None else len(kept)

    @property
    def weight(self) -> int:
        """About how many bytes it is as JSON."""
        return COMPRESSED * self.size if self._json is None else len(self._json)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels, read without parsing the rest; kept with the JSON, since selectors read them often.

        Kept for longer they would take more than the object does.
        """
        if self._labels is not None:
            return self._labels
        labels = _decode_partial(self.raw).metadata.labels or _NO_LABELS
        if self._json is not None:
            self._labels = labels
        return labels

    @property
    def uid(self) -> str:
        return _decode_partial(self.raw).metadata.uid

    @property
    def is_packed(self) -> bool:
        return self._packed is not None

    def drop_json(self) -> None:
        """Keep only the packed bytes, if there are any."""
        if self._packed is not None:
            self._json = self._labels = None

    def compress(self, dictionary: ZlibDictionary) -> bool:
        """Keep only the difference to this dictionary; return False if the two differ too much for that."""
        raw = self._json
        if raw is None or len(raw) < WORTHWHILE:
            return True
        small = dictionary.difference(raw)
        if pays(small, raw):
            self._packed, self._packing = small, dictionary
            self.drop_json()
        return resembles(small, raw)

    def at(self, revision: int) -> Doc:
        """Return the same content under another resourceVersion."""
        raw = with_version(self.raw, self.revision, str(revision))
        return Doc(self.key, self.namespace, self.name, revision, raw)

    def object(self) -> SharedObject:
        """Return the parsed object, the same one for all who hold it at the same time. Read-only."""
        alive = self.alive()
        if alive is not None:
            return alive
        raw = self.raw
        return self._share(orjson.loads(raw), raw)

    def kept(self) -> SharedObject:
        """Return the parsed object, and keep it for a while, since what was read or written is read again soon."""
        obj = self.object()
        _kept.put(self, obj, self.weight)
        return obj

    def parsed(self, parse: Parse) -> Obj:
        """Return what `parse` makes of the object, or the object if somebody holds it. Read-only."""
        alive = self.object() if _detecting else self.alive()
        return parse(self.raw) if alive is None else alive

    def shaped(self, shape: Shape, *, keep: bool = True) -> Obj:
        """Return the object in a shape, and `keep` what was parsed for a while unless it is metadata. Read-only."""
        alive, parse, transform = self.alive(), shape.of_bytes, shape.of_object
        if alive is None and not shape.only_metadata and (parse is None or _detecting):
            alive = self.kept() if keep else self.object()
        obj: Obj | None
        if shape.only_metadata:
            obj = {"metadata": self.metadata()} if parse is None or alive is not None else parse(self.raw)
        elif alive is not None:
            return alive if transform is None else alive.viewed(transform)
        else:
            assert parse is not None
            obj = _kept.get((self, parse)) if keep else None
            if obj is None:
                obj = parse(self.raw)
                if keep:
                    _kept.put((self, parse), obj, self.weight)
        return obj if transform is None else transform(obj)

    def metadata(self) -> Obj:
        """Return the metadata: of the parsed object if somebody holds it, else without parsing the rest. Read-only."""
        alive = self.alive()
        if alive is not None:
            shared: Obj = alive["metadata"]
            return shared
        return _decode_metadata(self.raw).metadata

    def adopt(self, obj: Obj) -> SharedObject:
        """Use this as the parsed object, and keep it for a while; it equals the bytes and is not changed any more."""
        raw = b""
        if _detecting:
            raw = orjson.dumps(obj)  # not the stored bytes, whose order of keys may be another
            if raw != self.raw and orjson.loads(self.raw) != obj:
                _mutated.append(f"adopted {raw.decode()}\nfor     {self.raw.decode()}")
        shared = self._share(obj, raw)
        _kept.put(self, shared, self.weight)
        return shared

    def _share(self, obj: Obj, raw: bytes) -> SharedObject:
        """`raw` is the object as bytes, for the detector."""
        shared = _observe(obj, raw) if _detecting else SharedObject(obj)
        shared.source, shared._view = self, None
        self.alive = alive = _Alive(shared, _died)
        alive.doc = self
        return shared

    def __repr__(self) -> str:
        return f"Doc({self.key!r}, {self.revision})"


class _Alive(weakref.ref[SharedObject]):
    """A parsed object while somebody holds it; then nothing is left, not even of a million that were read once."""

    __slots__ = ("doc",)
    doc: Doc


def _died(alive: weakref.ref[SharedObject]) -> None:
    assert isinstance(alive, _Alive)
    if alive.doc.alive is alive:
        alive.doc.alive = NOBODY


NOBODY = weakref.ref(SharedObject())
"""Returns None."""


class Compressor:
    """Compresses objects once `recent` others were added after them, or `most_bytes` of others.

    Those that were dropped by then cost nothing, nor do those that the store has packed; those that `worth` rejects
    stay as they are.
    """

    def __init__(
        self,
        recent: int = 2_048,
        worth: Callable[[Doc], bool] = lambda _doc: True,
        *,
        most_bytes: int = _UNCOMPRESSED_BYTES,
    ) -> None:
        self._most = recent
        self._most_bytes = most_bytes
        self._worth = worth
        self._recent: deque[weakref.ref[Doc]] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._dictionary: ZlibDictionary | None = None
        self._unlike = 0

    def add(self, doc: Doc) -> None:
        raw = doc._json
        if raw is None:
            return
        size = len(raw)
        self._recent.append(weakref.ref(doc))
        self._sizes.append(size)
        self._bytes += size
        while len(self._recent) > self._most or self._bytes > self._most_bytes:
            self._bytes -= self._sizes.popleft()
            oldest = self._recent.popleft()()
            if oldest is not None:
                self._compress(oldest)

    def _compress(self, doc: Doc) -> None:
        if doc.is_packed:
            doc.drop_json()
        elif not self._worth(doc):
            return
        elif self._dictionary is None:
            self._dictionary = ZlibDictionary(doc.raw)
        elif not doc.compress(self._dictionary):
            self._unlike += 1
            if self._unlike >= _UNLIKE_LIMIT:
                self._dictionary = ZlibDictionary(self._dictionary.text + doc.raw)
                self._unlike = 0


_kept: Memo[Hashable, Obj] = Memo(_KEPT_PARSED, most_weight=_KEPT_BYTES)
"""Parsed objects by Doc, or Doc and parser. Bounded for the process: of a thousand members, each has an informer."""
_compressors: defaultdict[str, Compressor] = defaultdict(partial(Compressor, _UNCOMPRESSED))
"""Compressors by kind: objects of a kind resemble one another in all members."""


def of_elsewhere(obj: Obj) -> Doc:
    """Return an object of another server as bytes, which are compressed later with others of its kind."""
    doc = Doc.of(obj)
    _compressors[obj.get("kind", "")].add(doc)
    return doc


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
