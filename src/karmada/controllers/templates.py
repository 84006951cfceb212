"""Templates: references to them, light ones, which informers keep, and whole ones, which are read from the server.

The objects of every propagated kind are watched, so what is kept of one decides what ten thousand cost. A light
template has its labels, the annotations of the policy that claims it, and two digests of the content: one changes with
anything but the status, the other only with what users change, not the control plane.

A whole template is read when a binding, a Work or a status is made from it. The controllers on its way read the same
one within moments: the last read is returned while the informer that watches the kind shows the same version. As many
are kept as are on their way at once: the controllers reconcile them in groups (see context).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from karmada.api import well_known
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.doc import SharedObject
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, number

_LAZILY: Final = "lazily "
"""The prefix of a key whose template was not changed by a user: a lazy policy does not update its binding then."""


class Ref(NamedTuple):
    """`namespace` is "" for what lives in none."""

    gvk: GVK
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        """Within the kind."""
        return Key(self.namespace, self.name)

    def queued(self, *, lazily: bool) -> Key:
        text = f"{self.gvk.api_version}/{self.gvk.kind}/{self.name}"
        return Key(self.namespace, _LAZILY + text if lazily else text)

    def __str__(self) -> str:
        return f"{self.gvk.kind} {self.key}"


def ref_of(obj: Obj) -> Ref:
    namespace, name = meta.key(obj)
    return Ref(gvk_of(obj), namespace, name)


def resource_of_binding(binding: Obj) -> Obj:
    """Return the spec.resource of a binding, in the binding's own namespace whatever it says.

    The right to write bindings in a namespace must not be one to propagate objects of other namespaces.
    """
    resource: Obj = binding["spec"]["resource"]
    namespace = meta.namespace(binding)
    return resource if (resource.get("namespace") or "") == namespace else {**resource, "namespace": namespace}


def ref_of_binding(binding: Obj) -> Ref:
    """Return the template of a binding."""
    resource = resource_of_binding(binding)
    return Ref(gvk_of(resource), resource.get("namespace") or "", resource["name"])


def unqueued(key: Key) -> tuple[Ref, bool]:
    """Return the template, and whether the key was enqueued lazily."""
    lazily = key.name.startswith(_LAZILY)
    api_version, kind, name = key.name.removeprefix(_LAZILY).rsplit("/", 2)
    return Ref(gvk_of({"apiVersion": api_version, "kind": kind}), key.namespace, name), lazily


def kind_queued(key: Key) -> str:
    """Return the kind in a key of `Ref.queued`: a lane, so that a kind whose interpretation is slow blocks no other."""
    return key.name.removeprefix(_LAZILY).rpartition("/")[0]


def kind_of_binding_key(key: Key) -> str:
    """Return the kind at the end of a binding's name: each kind has a lane."""
    return key.name.rpartition("-")[2]


_MOST, _MOST_BYTES = 512, 4 << 20
_UNKNOWN_WEIGHT: Final = _MOST_BYTES // 64
"""Bytes that a template from a remote server is counted with, whose size nobody knows."""

# light templates

_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "labels")
_KEPT_ANNOTATIONS: Final = (
    *well_known.POLICY_CLAIM_ANNOTATIONS,
    *well_known.CLUSTER_POLICY_CLAIM_ANNOTATIONS,
)
_NOT_FRAME: Final = frozenset({"managedFields", "resourceVersion", "generation", "labels", "annotations"})
"""Metadata that never counts, or is counted apart."""
_NOT_CONTENT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_OURS: Final = ".karmada.io"
_WHOLE, _OWN = "whole", "own"


@lru_cache(maxsize=4096)
def light_of(gvk: GVK) -> Shape:
    """Return the shape of this kind's light templates: the same for all callers, who share an informer."""
    api_version, kind = gvk.api_version, gvk.kind

    def light(obj: Obj) -> Obj:
        metadata = obj["metadata"]
        kept = {field: metadata[field] for field in _KEPT if field in metadata}
        annotations = metadata.get("annotations") or {}
        claims = {key: annotations[key] for key in _KEPT_ANNOTATIONS if key in annotations}
        if claims:
            kept["annotations"] = claims
        whole, own = _digests(obj)
        return {"apiVersion": api_version, "kind": kind, "metadata": kept, _WHOLE: whole, _OWN: own}

    return Shape("light", light, paged=True)


def changed(old: Obj, new: Obj) -> bool:
    """Return whether anything changed but the status and managedFields; of light templates."""
    return bool(old[_WHOLE] != new[_WHOLE])


def changed_by_user(old: Obj, new: Obj) -> bool:
    """Return whether anything changed besides the labels and annotations that the control plane writes on templates."""
    return bool(old[_OWN] != new[_OWN])


def _digests(obj: Obj) -> tuple[int, int]:
    metadata = obj["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    frame = {field: value for field, value in metadata.items() if field not in _NOT_FRAME}
    content = {field: value for field, value in obj.items() if field not in _NOT_CONTENT}
    users = [
        {key: value for key, value in marks.items() if _OURS not in key or key == well_known.SKIP_AUTO_PROPAGATION}
        for marks in (labels, annotations)
    ]
    common = _digest(frame, content)
    return hash((common, metadata.get("generation"), _digest(labels, annotations))), hash((common, _digest(*users)))


def _digest(*parts: Mapping[str, Any]) -> int:
    return hash(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS))


# whole templates


class _Read(NamedTuple):
    template: Obj
    informer: Informer | None
    """Which shows whether it has changed; None where nobody watches its kind."""
    history: int
    """The informer's, from before it was read."""


class Templates:
    """The templates of a process, for all its controllers."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._informers = informers
        self._recent: Memo[Ref, _Read] = Memo(_MOST, most_weight=_MOST_BYTES)

    async def of(self, reference: Obj) -> Obj | None:
        """Return the template of a binding's spec.resource, in no earlier state than that; otherwise see `whole`."""
        return await self.whole(_ref_of(reference), reference)

    async def whole(self, ref: Ref, reference: Obj | None = None) -> Obj | None:
        """Return a template; None when it is gone, NoMatch for an unknown kind."""
        informer = self._informer(ref)
        found = self._known(ref, informer)
        if found is not None and (reference is None or not _is_later(reference, found)):
            return found
        history = 0 if informer is None else informer.history
        try:
            found = await self._client.get(ref.gvk, ref.name, ref.namespace)
        except NotFound:
            return None
        weight = found.source.weight if isinstance(found, SharedObject) else _UNKNOWN_WEIGHT
        self._recent.put(ref, _Read(found, informer, history), weight)
        return found

    def light(self, reference: Obj) -> Obj | None:
        """Return the template's name and labels, from the informer."""
        ref = _ref_of(reference)
        mapping = self._client.mapper.known(ref.gvk)
        if mapping is None:
            return None
        return self._informers.of(mapping.gvr, shape=light_of(ref.gvk)).get(ref.key)

    async def write_status(self, template: Obj) -> Obj:
        """As it was stored; Conflict when the template has changed since it was read."""
        self._recent.drop(ref_of(template))
        return await self._client.update_status(gvk_of(template), template)

    def _informer(self, ref: Ref) -> Informer | None:
        """Return the one that watches the kind, if somebody has it."""
        mapping = self._client.mapper.known(ref.gvk)
        return None if mapping is None else self._informers.existing(mapping.gvr, light_of(ref.gvk))

    def _known(self, ref: Ref, informer: Informer | None) -> Obj | None:
        """Return the template that was read last, if it is still what this informer of light templates shows."""
        found = self._recent.get(ref)
        if found is None or informer is None or found.informer is not informer or found.history != informer.history:
            return None
        light = informer.get(ref.key) if informer.running and informer.synced else None
        if light is None:
            return None
        read, shown = found.template["metadata"], light["metadata"]
        same = read["uid"] == shown["uid"] and read["resourceVersion"] == shown["resourceVersion"]
        return found.template if same else None


def _ref_of(reference: Obj) -> Ref:
    return Ref(gvk_of(reference), reference.get("namespace") or "", reference["name"])


def _is_later(reference: Obj, template: Obj) -> bool:
    """Return whether a binding refers to a later state than this, or to another template of the name."""
    metadata, uid = template["metadata"], reference.get("uid")
    if uid and uid != metadata["uid"]:
        return True
    return number(reference.get("resourceVersion") or "") > number(metadata["resourceVersion"])
