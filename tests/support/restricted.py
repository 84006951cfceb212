"""Whether manifests keep to the restricted Pod Security profile, and a little beyond."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.pod_security.standards import violations

OWNERS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet"})


def pod_of(obj: Obj) -> Obj | None:
    """The pod that an object has, or is."""
    if obj["kind"] in OWNERS:
        template: Obj = obj["spec"]["template"]
        return template
    return obj if obj["kind"] == "Pod" else None


def privileges(objects: Iterable[Obj]) -> list[str]:
    """What pods of these objects may do and need not; empty when there is nothing."""
    found = []
    for obj in objects:
        pod = pod_of(obj)
        if pod is not None:
            name = f"{obj['kind']}/{obj['metadata']['name']}"
            found += [f"{name}: {problem}" for problem in _problems(pod)]
    return found


def _problems(pod: Obj) -> list[str]:
    spec = pod["spec"]
    found = [str(each) for each in violations("restricted", None, pod["metadata"].get("annotations"), spec)]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        if not container.get("securityContext", {}).get("readOnlyRootFilesystem"):
            found.append(f"container {container['name']} may write to its root file system")
        found += [
            f"container {container['name']} listens on {port['containerPort']}, which needs a capability"
            for port in container.get("ports", ())
            if port["containerPort"] < 1024
        ]
    if spec.get("automountServiceAccountToken", True) and spec.get("serviceAccountName", "default") == "default":
        found.append("it has the token of the default ServiceAccount")
    return found
