"""Requests of any size whose shape hypothesis draws: what is repeated, how, where in which object, and how it is sent.

A `Plan` is a shape like those of `shapes`: the same plan gives a request of any size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from hypothesis import strategies as st

from karmada.kube.objects.types import Obj
from tests.linearity.shapes import (
    APPLY,
    CONFIGMAPS,
    CORE,
    CRDS,
    JSON,
    JSON_PATCH,
    MERGE,
    PODS,
    RBAC,
    STRATEGIC,
    WIDGETS,
    YAML,
    Sent,
)

_DEEPEST = 500
"""Levels of a nested value; decoders refuse more at once."""
_PLACES = {
    CONFIGMAPS: ["data", "binaryData", "immutable", "metadata.labels", "metadata.annotations", "metadata.finalizers"],
    PODS: [
        "spec",
        "spec.containers",
        "spec.volumes",
        "spec.tolerations",
        "spec.nodeSelector",
        "spec.affinity",
        "status",
    ],
    WIDGETS: ["spec", "spec.list", "spec.map", "metadata.ownerReferences", "metadata.managedFields", "status"],
    f"{CORE}/services": ["spec.ports", "spec.selector", "spec.externalIPs"],
    f"{RBAC}/clusterroles": ["rules", "aggregationRule", "metadata"],
    CRDS: ["spec.versions", "spec.names", "spec.conversion"],
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ["spec", "spec.resourceAttributes"],
}
_PATCHED = (CONFIGMAPS, PODS, WIDGETS)
_ARRANGEMENTS = ("keys", "items", "levels of objects", "levels of lists", "one key again", "keys twice", "text")


@dataclass(frozen=True, slots=True)
class Plan:
    path: str
    place: str
    media: str
    arrangement: str
    unit: bytes
    """The JSON of what is repeated."""

    def __call__(self, size: int) -> Sent:
        value = self._repeated(size)
        for name in reversed(self.place.split(".")):
            value = b'{"%b":%b}' % (name.encode(), value)
        if self.media == JSON_PATCH:
            pointer = self.place.replace(".", "/").encode()
            value = b'[{"op":"add","path":"/%b","value":%b}]' % (pointer, self._repeated(size))
        elif not self.place.startswith("metadata"):
            named = b"target" if self.media == APPLY else b"fresh"
            value = b'{"metadata":{"name":"%b"},%b' % (named, value[1:])
        if self.media in (JSON, YAML):
            return Sent("POST", self.path, value, self.media)
        query = "fieldManager=m&force=true" if self.media == APPLY else ""
        return Sent("PATCH", f"{self.path}/target", value, self.media, query)

    def _repeated(self, size: int) -> bytes:
        unit, many = self.unit, max(1, size // (len(self.unit) + 12))
        match self.arrangement:
            case "keys":
                return b"{" + b",".join(b'"key%d":%b' % (n, unit) for n in range(many)) + b"}"
            case "items":
                return b"[" + b",".join([unit] * many) + b"]"
            case "one key again":
                return b"{" + b",".join([b'"key":' + unit] * many) + b"}"
            case "keys twice":
                return b"{" + b",".join(b'"k%d":%b,"k%d":%b' % (n, unit, n, unit) for n in range(many // 2 or 1)) + b"}"
            case "text":
                return orjson.dumps((unit.decode() * (size // max(1, len(unit)) + 1))[:size])
        opening, closing = (b'{"a":', b"}") if self.arrangement == "levels of objects" else (b"[", b"]")
        levels = min(_DEEPEST, max(1, size // (len(opening) + 1)))
        filler = b"[" + b",".join([unit] * max(1, size // (len(unit) + 1))) + b"]"
        return opening * levels + filler + closing * levels


def _mistakes() -> st.SearchStrategy[Any]:
    """Small values: right ones, of wrong types, with unknown and with well-known fields."""
    names = st.sampled_from([
        "name", "image", "key", "value", "operator", "effect", "port", "protocol", "env", "kind", "uid", "apiVersion",
        "resources", "verbs", "apiGroups", "$patch", "x", "",
    ])  # fmt: skip
    scalars = st.sampled_from([
        "", "a", "a/b", "bad value!", "é", "0x1F", "1e9", "Always", 0, -1, 3.5, 2**53, True, None,
    ])  # fmt: skip
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=6,
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    path = draw(st.sampled_from(sorted(_PLACES)))
    media = [JSON, YAML] + ([MERGE, JSON_PATCH, STRATEGIC, APPLY] if path in _PATCHED else [])
    unit: Obj | Any = draw(_mistakes())
    return Plan(
        path=path,
        place=draw(st.sampled_from(_PLACES[path])),
        media=draw(st.sampled_from(media)),
        arrangement=draw(st.sampled_from(_ARRANGEMENTS)),
        unit=orjson.dumps(unit),
    )
