"""How an object lies in the store and in the watch cache: as bytes, serialised once per write.

A stored value is JSON that starts with apiVersion, kind and metadata, in this order, and has no resourceVersion: that
is the revision of the write, known only afterwards. It is spliced in right behind `"metadata":{`, so what goes to
clients is never serialised again. Ten thousand objects cost their bytes; a parsed object exists only as long as a
reader holds it.

Keys are `<group or "core">/<plural>/<namespace>/<name>`, without the namespace for cluster-scoped resources. Their byte
order is the order of lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import intern
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec
import orjson

from karmada.kube.objects.differences import Sample
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.shared import COMPRESSED, Packed
from karmada.kube.objects.types import Obj, Parse
from karmada.kube.server.storage.interface import Stored, StoreDamaged
from karmada.kube.server.storage.packing import PACKED, unpack

CORE = "core"
ADDED: Literal["ADDED"] = "ADDED"
MODIFIED: Literal["MODIFIED"] = "MODIFIED"
DELETED: Literal["DELETED"] = "DELETED"

_DEEPEST = 254
"""Levels that orjson writes."""
_MARGIN = 50
"""Levels that lists, tables and reviews may put around an object before it is too deep to be written again."""
_METADATA = b'"metadata":{'
_NO_LABELS: Mapping[str, str] = MappingProxyType({})


def prefix(resource: GroupResource, namespace: str = "") -> str:
    """What the keys of a resource, or of its objects in one namespace, start with."""
    start = f"{resource.group or CORE}/{resource.resource}/"
    return f"{start}{namespace}/" if namespace else start


def storage_key(resource: GroupResource, namespace: str, name: str) -> str:
    return prefix(resource, namespace) + name


class KeyParts(NamedTuple):
    group: str
    resource: str
    namespace: str
    name: str


def split_key(key: str) -> KeyParts:
    parts = key.split("/")
    if len(parts) == 4:
        return KeyParts(*parts)
    group, resource, name = parts
    return KeyParts(group, resource, "", name)


def encode_value(obj: Obj) -> bytes:
    """The bytes to store for an object; `obj` stays as it is. ValueError if it is nested too deeply."""
    metadata: Mapping[str, Any] = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    ordered: Obj = {"apiVersion": None, "kind": None, "metadata": None}
    ordered.update(obj)
    ordered["metadata"] = metadata
    try:
        value = orjson.dumps(ordered)
        if _openings(value) > _DEEPEST - _MARGIN:  # only then it can be too deep
            _check_depth(ordered)
    except TypeError as error:
        raise ValueError(f"the object cannot be stored: {error}") from error
    return value


def _openings(value: bytes) -> int:
    """How many brackets open in it. `bytes.count` looks at every byte; `replace` skips to the next one: 1 µs, not 6."""
    return 2 * len(value) - len(value.replace(b"{", b"")) - len(value.replace(b"[", b""))


def _check_depth(obj: Any) -> None:
    """TypeError unless the object can be written within `_MARGIN` more levels."""
    for _ in range(_MARGIN):
        obj = [obj]
    orjson.dumps(obj)


def with_revision(value: bytes, revision: int) -> bytes:
    """A stored value with its resourceVersion spliced in.

    Made for each write, though few are read as bytes: what is kept must be of its exact size, which the bytes that
    were encoded are not. Their block was larger, and what is given back of it leaves memory in pieces.
    """
    at = value.index(_METADATA) + len(_METADATA)
    comma = b"" if value[at : at + 1] == b"}" else b","
    return b'%b"resourceVersion":"%d"%b%b' % (value[:at], revision, comma, value[at:])


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Metadata


_decode_labels = msgspec.json.Decoder(_Labelled).decode


class Entry(Packed):
    """An object at one revision. Never changes; `raw` is as clients get it, resourceVersion included.

    There may be a million: strings that others have, too, are the same string. One that was just written has its bytes
    in both forms; when it is no longer recent it becomes a StoredEntry, without being compressed a second time.
    """

    __slots__ = ("_labels", "_start", "_stored", "name", "namespace", "revision")

    def __init__(self, key: str, namespace: str, name: str, revision: int, raw: bytes) -> None:
        super().__init__(raw)
        rest = len(namespace) + 1 + len(name) if namespace else len(name)
        self._start = intern(key[:-rest])
        self.namespace = intern(namespace)
        self.name = intern(name)
        self.revision = revision
        self._labels: Mapping[str, str] | None = None
        self._stored: bytes | None = None
        """As the store has packed it, until that takes the place of the other bytes."""

    def keep_stored(self, packed: bytes | None) -> None:
        """What the store has packed of it, if anything."""
        if packed is not None and packed.startswith(PACKED):
            self._stored = packed

    @property
    def has_stored(self) -> bool:
        """Whether it costs nothing to compress it."""
        return self._stored is not None

    @property
    def key(self) -> str:
        return f"{self._start}{self.namespace}/{self.name}" if self.namespace else self._start + self.name

    @property
    def labels(self) -> Mapping[str, str]:
        """Read without parsing the rest; kept while the object is fresh, because selectors read them several times."""
        if self._labels is not None:
            return self._labels
        labels = _decode_labels(self.raw).metadata.labels or _NO_LABELS
        if self._sample is None:
            self._labels = labels
        return labels

    def compress(self, sample: Sample) -> bool:
        if self._stored is not None:
            self._bytes, self._stored, self._labels = self._stored, None, None
            self.__class__ = StoredEntry
            return True
        resembles = super().compress(sample)
        if self._sample is not None:
            self._labels = None
        return resembles

    def at(self, revision: int) -> Entry:
        """The same content under another resourceVersion."""
        old = b'%b"resourceVersion":"%d"' % (_METADATA, self.revision)
        new = b'%b"resourceVersion":"%d"' % (_METADATA, revision)
        return Entry(self.key, self.namespace, self.name, revision, self.raw.replace(old, new, 1))

    def __repr__(self) -> str:
        return f"Entry({self.key!r}, {self.revision})"


class StoredEntry(Entry):
    """Keeps what the store has: packed, and without the resourceVersion. Loading many is quick, and they are small."""

    __slots__ = ()

    @property
    def raw(self) -> bytes:
        return with_revision(unpack(self.key, self._bytes), self.revision)

    def parsed(self, parse: Parse) -> Obj:
        """With the resourceVersion put in afterwards, which is less than to copy all bytes for it."""
        obj = parse(unpack(self.key, self._bytes))
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return obj

    @property
    def weight(self) -> int:
        return COMPRESSED * len(self._bytes)

    @property
    def labels(self) -> Mapping[str, str]:
        """Read each time: kept, they would take more than the object does."""
        return _decode_labels(self.raw).metadata.labels or _NO_LABELS

    def compress(self, _sample: Sample) -> bool:
        return True


class Change:
    """What one write did to one object. A DELETED one carries the last content under the deletion's revision."""

    __slots__ = (
        "_appearance", "_disappearance", "_frame", "_protobuf", "entry", "previous", "revision", "size", "time", "type",
    )  # fmt: skip

    def __init__(self, kind: str, entry: Entry, previous: Entry | None, time: float = 0.0) -> None:
        self.type = kind
        self.entry = entry
        self.previous = previous
        self.revision = entry.revision
        self.size = entry.size
        self.time = time
        self._frame: bytes | None = None
        self._protobuf: bytes | None = None
        self._appearance: Change | None = None
        self._disappearance: Change | None = None

    def frame(self) -> bytes:
        """The line a watch sends; made once for all watchers."""
        if self._frame is None:
            self._frame = b'{"type":"%b","object":%b}\n' % (self.type.encode(), self.entry.raw)
        return self._frame

    def protobuf_frame(self, encode: Callable[[str, Obj], bytes]) -> bytes:
        """What a watch in protobuf sends; made once for all watchers, which encode alike."""
        if self._protobuf is None:
            self._protobuf = encode(self.type, self.entry.object())
        return self._protobuf

    def forget_frame(self) -> None:
        """Release the encoded frames; a watcher that is late encodes them again."""
        self._frame = self._protobuf = self._appearance = self._disappearance = None

    def appearance(self) -> Change:
        """What a watcher sees whose selector the object matches since this change."""
        if self._appearance is None:
            self._appearance = Change(ADDED, self.entry, None, self.time)
        return self._appearance

    def disappearance(self) -> Change:
        """What a watcher sees whose selector the object no longer matches: the old content, the new revision."""
        if self._disappearance is None:
            old = self.previous if self.previous is not None else self.entry
            self._disappearance = Change(DELETED, old.at(self.revision), self.previous, self.time)
        return self._disappearance

    def __repr__(self) -> str:
        return f"Change({self.type}, {self.entry.key!r}, {self.revision})"


def entry_of(key: str, value: bytes, revision: int) -> Entry:
    """The entry for what the store holds under a key."""
    parts = split_key(key)
    return Entry(key, parts.namespace, parts.name, revision, with_revision(value, revision))


def new_entry(
    key: str, namespace: str, name: str, revision: int, value: bytes | None, packed: bytes | None
) -> Entry | None:
    """The entry for a write, of what is packed where that is given; None for a deletion."""
    if packed is not None and packed.startswith(PACKED):
        return StoredEntry(key, namespace, name, revision, packed)
    if value is None:
        return None
    return Entry(key, namespace, name, revision, with_revision(value, revision))


def stored_entry(stored: Stored) -> Entry:
    """The entry for what a scan of the store gave; StoreDamaged if that is no object."""
    key, value, revision = stored
    parts = split_key(key)
    if value.startswith(PACKED):
        return StoredEntry(key, parts.namespace, parts.name, revision, value)
    try:
        return Entry(key, parts.namespace, parts.name, revision, with_revision(value, revision))
    except ValueError as error:
        raise StoreDamaged(
            f"{key} at revision {revision} is no object ({error}): restore a backup, or delete this key"
        ) from error


def change_of(key: str, entry: Entry | None, revision: int, previous: Entry | None, time: float = 0.0) -> Change:
    """The change from `previous` (None: there was nothing) to `entry` (None: a deletion)."""
    if entry is not None:
        return Change(ADDED if previous is None else MODIFIED, entry, previous, time)
    if previous is None:
        raise ValueError(f"{key}: deleted at revision {revision}, but it did not exist")
    return Change(DELETED, previous.at(revision), previous, time)
