"""ResourceBinding and ClusterResourceBinding: everything in which the two kinds differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from karmada.api import well_known
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.controllers.context import Settings
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key


@dataclass(frozen=True, slots=True)
class BindingKind:
    gvr: GVR
    kind: str
    id_label: str
    """The label with the permanent id, on the binding itself, its Works and their manifests."""
    namespace_annotation: str
    """On Works and manifests, like the next; "" where bindings have no namespace."""
    name_annotation: str
    finalizer: str
    controller: str
    status_controller: str

    def syncs(self, settings: Settings) -> int:
        """Return how many of them are reconciled at once."""
        if self.gvr == ResourceBinding.gvr:
            return settings.concurrent_resourcebinding_syncs
        return settings.concurrent_clusterresourcebinding_syncs

    def id_of(self, binding: Obj) -> str:
        return meta.labels(binding).get(self.id_label, "")

    def shown(self, binding: Obj) -> str:
        """`ResourceBinding(default/web-deployment)`, as events call it."""
        namespace, name = meta.key(binding)
        return f"{self.kind}({namespace}/{name})" if namespace else f"{self.kind}({name})"

    def marks(self, binding: Obj) -> dict[str, str]:
        """Return the annotations that name the binding."""
        metadata = binding["metadata"]
        marks = {self.name_annotation: metadata["name"]}
        if self.namespace_annotation:
            marks[self.namespace_annotation] = metadata["namespace"]
        return marks

    def of_work(self, work: Obj) -> tuple[Key, ...]:
        """Return the binding that a Work was made for; none for Works of others."""
        annotations = meta.annotations(work)
        name = annotations.get(self.name_annotation)
        if not name:
            return ()
        if not self.namespace_annotation:
            return (Key("", name),)
        namespace = annotations.get(self.namespace_annotation)
        return (Key(namespace, name),) if namespace else ()


NAMESPACED: Final = BindingKind(
    gvr=ResourceBinding.gvr,
    kind="ResourceBinding",
    id_label=well_known.BINDING_ID,
    namespace_annotation=well_known.BINDING_NAMESPACE,
    name_annotation=well_known.BINDING_NAME,
    finalizer=well_known.BINDING_FINALIZER,
    controller="binding-controller",
    status_controller="resource-binding-status-controller",
)
CLUSTER_WIDE: Final = BindingKind(
    gvr=ClusterResourceBinding.gvr,
    kind="ClusterResourceBinding",
    id_label=well_known.CLUSTER_BINDING_ID,
    namespace_annotation="",
    name_annotation=well_known.CLUSTER_BINDING_NAME,
    finalizer=well_known.CLUSTER_BINDING_FINALIZER,
    controller="cluster-resource-binding-controller",
    status_controller="cluster-resource-binding-status-controller",
)
KINDS: Final = (NAMESPACED, CLUSTER_WIDE)
