"""How a template is named: by kind, namespace and name; and how that goes through a queue of plain keys."""

from __future__ import annotations

from typing import Final, NamedTuple

from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

_LAZILY: Final = "lazily "
"""Before the text of a key whose template was not changed by a user: a lazy policy leaves its binding alone then."""


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
    return Ref(GVK.parse(obj["apiVersion"], obj["kind"]), namespace, name)


def resource_of_binding(binding: Obj) -> Obj:
    """The spec.resource of a binding, in the binding's own namespace whatever it says.

    Who may write bindings in a namespace must not have objects of other namespaces propagated or their status written.
    """
    resource: Obj = binding["spec"]["resource"]
    namespace = meta.namespace(binding)
    return resource if (resource.get("namespace") or "") == namespace else {**resource, "namespace": namespace}


def ref_of_binding(binding: Obj) -> Ref:
    """Of the template of a binding."""
    resource = resource_of_binding(binding)
    gvk = GVK.parse(resource["apiVersion"], resource["kind"])
    return Ref(gvk, resource.get("namespace") or "", resource["name"])


def unqueued(key: Key) -> tuple[Ref, bool]:
    """The template and whether only lazily."""
    lazily = key.name.startswith(_LAZILY)
    api_version, kind, name = key.name.removeprefix(_LAZILY).rsplit("/", 2)
    return Ref(GVK.parse(api_version, kind), key.namespace, name), lazily
