"""The scale subresource of the built-in workloads: replicas in, replicas and a selector out."""

from __future__ import annotations

from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj

SCALE = GVK("autoscaling", "v1", "Scale")
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(obj: Obj, spec: Obj, status: Obj) -> Obj:
    """Return the Scale object of a workload."""
    meta = obj["metadata"]
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {key: meta[key] for key in _METADATA if key in meta},
        "spec": spec,
        "status": status,
    }


class WorkloadScale:
    """Replicas at spec.replicas and status.replicas; `plain`: the selector is a map of labels, nothing more."""

    __slots__ = ("_plain",)

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain

    def get(self, obj: Obj) -> Obj:
        replicas = (obj.get("spec") or {}).get("replicas")
        status: Obj = {"replicas": (obj.get("status") or {}).get("replicas") or 0}
        selector = self.selector(obj)
        if selector:
            status["selector"] = selector
        return scale_of(obj, {"replicas": replicas} if replicas else {}, status)

    def view(self, obj: Obj) -> Obj:
        return self.get(obj)

    def selector(self, obj: Obj) -> str:
        """Return the workload's selector as one line."""
        selector = (obj.get("spec") or {}).get("selector")
        if not selector:
            return ""
        return str(labels_from({"matchLabels": selector} if self._plain else selector))

    def set(self, obj: Obj, replicas: int) -> None:
        """In place."""
        obj.setdefault("spec", {})["replicas"] = replicas
