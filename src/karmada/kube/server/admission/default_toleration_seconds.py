"""DefaultTolerationSeconds: Pods tolerate not-ready and unreachable nodes for five minutes by default.

Updates get the tolerations as well, since an update may only add to those that a Pod has.
"""

from __future__ import annotations

from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin

PODS = GroupResource("", "pods")
SECONDS = 300
KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds(BuiltinPlugin):
    name = "DefaultTolerationSeconds"

    def handles(self, attributes: Attributes) -> bool:
        if attributes.group_resource != PODS or attributes.subresource:
            return False
        return attributes.operation in (CREATE, UPDATE)

    async def admit(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        spec = attributes.obj["spec"]
        have = spec.get("tolerations") or []
        added = [_toleration(key) for key in KEYS if not any(_covers(toleration, key) for toleration in have)]
        if added:
            spec["tolerations"] = [*have, *added]


def _covers(toleration: Obj, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


def _toleration(key: str) -> Obj:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
