"""RuntimeClass: a Pod that names one gets its overhead, its node selector and its tolerations."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, is_pod_create, refuse

RUNTIME_CLASSES = GroupResource("node.k8s.io", "runtimeclasses")
_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_NO_OVERHEAD = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(BuiltinPlugin):
    name = "RuntimeClass"

    def handles(self, attributes: Attributes) -> bool:
        return is_pod_create(attributes)

    async def admit(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        spec = attributes.obj["spec"]
        found = self._class_of(attributes, spec)
        if found is None:
            return
        overhead = (found.get("overhead") or {}).get("podFixed")
        if overhead:
            if spec.get("overhead") and _amounts(spec["overhead"]) != _amounts(overhead):
                raise refuse(attributes, _OTHER_OVERHEAD)
            spec["overhead"] = dict(overhead)
        self._place(attributes, spec, found.get("scheduling") or {})

    def _class_of(self, attributes: Attributes, spec: Obj) -> Obj | None:
        name = spec.get("runtimeClassName")
        if not name:
            return None
        found = self.reader.get(RUNTIME_CLASSES, "", name)
        if found is None:
            raise refuse(attributes, f'pod rejected: RuntimeClass "{name}" not found')
        return found

    def _place(self, attributes: Attributes, spec: Obj, scheduling: Obj) -> None:
        selector = dict(spec.get("nodeSelector") or {})
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if selector.get(key, value) != value:
                why = (
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
                raise refuse(attributes, why)
            selector[key] = value
        if selector:
            spec["nodeSelector"] = selector
        have = spec.get("tolerations") or []
        added = [dict(toleration) for toleration in scheduling.get("tolerations") or () if toleration not in have]
        if added:
            spec["tolerations"] = [*have, *added]

    async def validate(self, attributes: Attributes) -> None:
        spec = (attributes.obj or {}).get("spec") or {}
        if spec.get("overhead"):
            found = self._class_of(attributes, spec)
            overhead = ((found or {}).get("overhead") or {}).get("podFixed")
            if not overhead:
                raise refuse(attributes, _NO_OVERHEAD)
            if _amounts(overhead) != _amounts(spec["overhead"]):
                raise refuse(attributes, _OTHER_OVERHEAD)


def _amounts(found: Obj) -> dict[str, Any]:
    return {name: checks.quantity(value) for name, value in found.items()}
