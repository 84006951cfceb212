"""References to templates by kind, namespace and name, and their encoding as keys of a queue."""

from __future__ import annotations

from typing import Final, NamedTuple

from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

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
