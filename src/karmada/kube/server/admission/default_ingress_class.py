"""DefaultIngressClass: an Ingress that names no class gets the one marked as default."""

from __future__ import annotations

from karmada.kube.kinds.networking import INGRESS_CLASS_ANNOTATION
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, is_create_of
from karmada.kube.server.admission.storage import newest_default

INGRESS_CLASSES = GroupResource("networking.k8s.io", "ingressclasses")
IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"


class DefaultIngressClass(BuiltinPlugin):
    name = "DefaultIngressClass"

    def handles(self, attributes: Attributes) -> bool:
        return is_create_of(attributes, "networking.k8s.io", "ingresses")

    async def admit(self, attributes: Attributes) -> None:
        ingress = attributes.obj
        if ingress is None or (ingress.get("spec") or {}).get("ingressClassName") is not None:
            return
        if INGRESS_CLASS_ANNOTATION in (ingress["metadata"].get("annotations") or {}):
            return
        default = newest_default(self.reader.list(INGRESS_CLASSES), IS_DEFAULT)
        if default is not None:
            ingress.setdefault("spec", {})["ingressClassName"] = default["metadata"]["name"]
