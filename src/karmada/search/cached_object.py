"""An object of a member as it is cached: its bytes as the member sent them, complete, in a fixed order at their start.

Every object starts with apiVersion, kind and metadata, whatever the order in which they came and also where a list left
the first two out. So adding an annotation or another resourceVersion for a reader is a splice of bytes, not a parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import orjson

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.entry import Entry

_ANNOTATIONS: Final = re.compile(rb'"annotations"\s*:\s*(\{\s*(\})?|null)')
_MARK: Final = orjson.dumps(CACHED_FROM_CLUSTER)


class _Head(msgspec.Struct):
    metadata: msgspec.Raw


class _Identity(msgspec.Struct):
    uid: str = ""


class _Labels(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Labels


class _Identified(msgspec.Struct):
    metadata: _Identity


_head = msgspec.json.Decoder(_Head).decode
_labelled = msgspec.json.Decoder(_Labelled).decode
_identified = msgspec.json.Decoder(_Identified).decode


class CachedObject(Entry):
    """Never changes. `raw` are its bytes, `object()` the parsed object, shared and read-only."""

    __slots__ = ()

    @property
    def labels(self) -> Mapping[str, str]:
        """Read each time: kept for every object of every cluster, they would take more than the objects do."""
        return _labelled(self.raw).metadata.labels or {}

    @property
    def uid(self) -> str:
        return _identified(self.raw).metadata.uid

    @property
    def resource_version(self) -> str:
        """As its member has it."""
        return str(self.revision)

    def at(self, revision: int) -> CachedObject:
        raw = with_version(self.raw, self.revision, str(revision))
        return CachedObject(self.key, self.namespace, self.name, revision, raw)

    def stamped(self, cluster: str, resource_version: str = "") -> bytes:
        """As readers of many clusters get it: marked with its cluster, and under another version if one is given."""
        raw = marked(self.raw, cluster)
        return with_version(raw, self.revision, resource_version) if resource_version else raw


class Form:
    """How objects of one kind begin, as servers send them, and as they are kept."""

    def __init__(self, gvk: GVK) -> None:
        version, kind = orjson.dumps(gvk.api_version), orjson.dumps(gvk.kind)
        self.kept = b'{"apiVersion":%b,"kind":%b,"metadata":{' % (version, kind)
        self._sent = (
            b'{"metadata":{',
            b'{"kind":%b,"apiVersion":%b,"metadata":{' % (kind, version),
        )
        self._gvk = gvk

    def normal(self, raw: bytes | memoryview) -> bytes:
        """The object's bytes as they are kept."""
        start = bytes(raw[: len(self.kept)])
        if start == self.kept:
            return bytes(raw)
        for sent in self._sent:
            if start.startswith(sent):
                return b"".join((self.kept, raw[len(sent) :]))
        return self._rewritten(orjson.loads(raw))

    def _rewritten(self, obj: Obj) -> bytes:
        first: Obj = {"apiVersion": self._gvk.api_version, "kind": self._gvk.kind, "metadata": obj["metadata"]}
        return orjson.dumps({**first, **{key: value for key, value in obj.items() if key not in first}})


def marked(raw: bytes, cluster: str) -> bytes:
    """With the annotation that names the cluster."""
    start, end = _metadata(raw)
    metadata = raw[start:end]
    found = _ANNOTATIONS.search(metadata)
    if _MARK in metadata or (found is not None and found[1] == b"null"):
        return _edited(
            raw, lambda m: m.update(annotations={**(m.get("annotations") or {}), CACHED_FROM_CLUSTER: cluster})
        )
    value = b"%b:%b" % (_MARK, orjson.dumps(cluster))
    if found is None:
        comma = b"," if metadata[1:].lstrip()[:1] != b"}" else b""
        return b'%b"annotations":{%b}%b%b' % (raw[: start + 1], value, comma, raw[start + 1 :])
    at = start + found.start(1) + 1
    return b"%b%b%b%b" % (raw[:at], value, b"" if found[2] else b",", raw[at:])


def with_version(raw: bytes, revision: int, version: str) -> bytes:
    """With another resourceVersion than this revision."""
    start, end = _metadata(raw)
    old = b'"resourceVersion":"%d"' % revision
    if raw.count(old, start, end) != 1:
        return _edited(raw, lambda metadata: metadata.update(resourceVersion=version))
    at = raw.index(old, start, end)
    return b'%b"resourceVersion":%b%b' % (raw[:at], orjson.dumps(version), raw[at + len(old) :])


def _metadata(raw: bytes) -> tuple[int, int]:
    """Where the metadata begins and ends; it is the first that an object has after apiVersion and kind."""
    start = raw.index(b'"metadata":') + len(b'"metadata":')
    return start, start + len(memoryview(_head(raw).metadata))


def _annotate(metadata: Obj, cluster: str) -> None:
    metadata["annotations"] = {**(metadata.get("annotations") or {}), CACHED_FROM_CLUSTER: cluster}


def _edited(raw: bytes, change: Callable[[Obj], None]) -> bytes:
    """The long way, for objects in which bytes alone do not show what is what."""
    obj = orjson.loads(raw)
    change(obj["metadata"])
    return orjson.dumps(obj)
