"""An object of a member as it is cached: its bytes as the member sent them, complete, in a fixed order at their start.

Every object starts with apiVersion, kind and metadata, whatever the order in which they came and also where a list left
the first two out. So adding an annotation or another resourceVersion for a reader is a splice of bytes, not a parse.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.objects.codec import metadata_span, with_metadata, with_version
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

_ANNOTATIONS: Final = re.compile(rb'"annotations"\s*:\s*(\{\s*(\})?|null)')
_MARK: Final = orjson.dumps(CACHED_FROM_CLUSTER)


def stamped(doc: Doc, cluster: str, resource_version: str = "") -> bytes:
    """Return an object as readers of many clusters get it: marked with its cluster, under another version if given."""
    raw = marked(doc.raw, cluster)
    return with_version(raw, doc.revision, resource_version) if resource_version else raw


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
        """Return the object's bytes as they are kept."""
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
    start, end = metadata_span(raw)
    metadata = raw[start:end]
    found = _ANNOTATIONS.search(metadata)
    if _MARK in metadata or (found is not None and found[1] == b"null"):
        return with_metadata(
            raw, lambda m: m.update(annotations={**(m.get("annotations") or {}), CACHED_FROM_CLUSTER: cluster})
        )
    value = b"%b:%b" % (_MARK, orjson.dumps(cluster))
    if found is None:
        comma = b"," if metadata[1:].lstrip()[:1] != b"}" else b""
        return b'%b"annotations":{%b}%b%b' % (raw[: start + 1], value, comma, raw[start + 1 :])
    at = start + found.start(1) + 1
    return b"%b%b%b%b" % (raw[:at], value, b"" if found[2] else b",", raw[at:])
