"""TaintNodesByCondition: a new node is tainted not-ready until a controller has observed that it is ready."""

from __future__ import annotations

from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, is_create_of

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition(BuiltinPlugin):
    name = "TaintNodesByCondition"

    def handles(self, attributes: Attributes) -> bool:
        return is_create_of(attributes, "", "nodes")

    async def admit(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        spec = attributes.obj.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any((t.get("key"), t.get("effect")) == (NOT_READY["key"], NOT_READY["effect"]) for t in taints):
            spec["taints"] = [*taints, dict(NOT_READY)]
