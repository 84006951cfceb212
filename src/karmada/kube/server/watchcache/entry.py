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
from typing import Any, Literal, NamedTuple

import orjson

from karmada.kube.objects.codec import with_revision
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.interface import Event, Stored, StoreDamaged
from karmada.kube.server.storage.packing import PACKED, STORED_OBJECT

CORE = "core"
ADDED: Literal["ADDED"] = "ADDED"
MODIFIED: Literal["MODIFIED"] = "MODIFIED"
DELETED: Literal["DELETED"] = "DELETED"

_MARGIN = 50
"""Levels that lists, tables and reviews may put around an object before it is too deep to be written again."""


def prefix(resource: GroupResource, namespace: str = "") -> str:
    """Return what the keys of a resource, or of its objects in one namespace, start with."""
    return storage_key(resource, namespace, "")


def storage_key(resource: GroupResource, namespace: str, name: str) -> str:
    start = f"{resource.group or CORE}/{resource.resource}/"
    return f"{start}{namespace}/{name}" if namespace else start + name


class KeyParts(NamedTuple):
    resource: GroupResource
    namespace: str
    name: str


def split_key(key: str) -> KeyParts:
    group, resource, *namespace, name = key.split("/")
    return KeyParts(GroupResource("" if group == CORE else group, resource), "".join(namespace), name)


def encode_value(obj: Obj) -> bytes:
    """Return the bytes to store for an object; `obj` stays as it is. BadRequest if it is nested too deeply."""
    metadata: Mapping[str, Any] = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    ordered: Obj = {"apiVersion": None, "kind": None, "metadata": None}
    ordered.update(obj)
    ordered["metadata"] = metadata
    try:
        value = orjson.dumps(_within_margin(ordered))
    except TypeError as error:
        raise BadRequest(f"the object cannot be stored: {error}") from error
    return value[_MARGIN:-_MARGIN]


def _within_margin(obj: Any) -> Any:
    """Return the object within so many lists: it is written only if it may be within other things, too."""
    for _ in range(_MARGIN):
        obj = [obj]
    return obj


class Change:
    """The effect of one write on one object. A DELETED one carries the last content under the deletion's revision."""

    __slots__ = (
        "_appearance", "_disappearance", "_frame", "_protobuf", "entry", "previous", "revision", "size", "time", "type",
    )  # fmt: skip

    def __init__(self, kind: str, entry: Doc, previous: Doc | None, time: float = 0.0) -> None:
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
        """Return the line a watch sends; made once for all watchers."""
        if self._frame is None:
            self._frame = b'{"type":"%b","object":%b}\n' % (self.type.encode(), self.entry.raw)
        return self._frame

    def protobuf_frame(self, encode: Callable[[str, Obj], bytes]) -> bytes:
        """Return what a watch in protobuf sends; made once for all watchers, which encode alike."""
        if self._protobuf is None:
            self._protobuf = encode(self.type, self.entry.object())
        return self._protobuf

    def forget_frame(self) -> None:
        """Release the encoded frames; a watcher that is late encodes them again."""
        self._frame = self._protobuf = self._appearance = self._disappearance = None

    def appearance(self) -> Change:
        """Return what a watcher sees whose selector the object matches since this change."""
        if self._appearance is None:
            self._appearance = Change(ADDED, self.entry, None, self.time)
        return self._appearance

    def disappearance(self) -> Change:
        """Return what a watcher sees whose selector the object no longer matches: the old content, the new revision."""
        if self._disappearance is None:
            old = self.previous if self.previous is not None else self.entry
            self._disappearance = Change(DELETED, old.at(self.revision), self.previous, self.time)
        return self._disappearance

    def __repr__(self) -> str:
        return f"Change({self.type}, {self.entry.key!r}, {self.revision})"


def doc_of(key: str, value: bytes, revision: int) -> Doc:
    """Return the object of the JSON that the store holds under a key; ValueError if that is none."""
    parts = split_key(key)
    return Doc(key, parts.namespace, parts.name, revision, with_revision(value, revision))


def stored_doc(stored: Stored) -> Doc:
    """Return the object that a scan of the store gave; StoreDamaged if that is none."""
    key, value, revision = stored
    if value.startswith(PACKED):
        parts = split_key(key)
        return Doc(key, parts.namespace, parts.name, revision, None, value, STORED_OBJECT)
    try:
        return doc_of(key, value, revision)
    except ValueError as error:
        raise StoreDamaged(
            f"{key} at revision {revision} is no object ({error}): restore a backup, or delete this key"
        ) from error


def written_doc(event: Event, parts: KeyParts) -> Doc | None:
    """Return the object that was written; None for a deletion.

    An object that comes with its bytes need not be parsed from them, and what an update left alone is the same in it.
    """
    key, value, revision, _, packed, obj = event
    if packed is not None and not packed.startswith(PACKED):  # packing it did not pay
        value, packed = packed, None
    raw = None if value is None or (packed is not None and obj is None) else with_revision(value, revision)
    if raw is None and packed is None:
        return None
    doc = Doc(key, parts.namespace, parts.name, revision, raw, packed, STORED_OBJECT)
    if obj is not None:
        obj["metadata"]["resourceVersion"] = str(revision)
        doc.adopt(obj)
    return doc


def change_of(key: str, entry: Doc | None, revision: int, previous: Doc | None, time: float = 0.0) -> Change:
    """Return the change from `previous` (None: there was nothing) to `entry` (None: a deletion)."""
    if entry is not None:
        return Change(ADDED if previous is None else MODIFIED, entry, previous, time)
    if previous is None:
        raise ValueError(f"{key}: deleted at revision {revision}, but it did not exist")
    return Change(DELETED, previous.at(revision), previous, time)
