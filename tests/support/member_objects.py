"""Nodes, pods and what makes them, as a member's API server has them."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from tests.support.objects import kube_object

CORDONED: Obj = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def node(
    name: str, *, labels: dict[str, str] | None = None, taints: Any = (), cordoned: bool = False, **has: str
) -> Obj:
    """`has` is its allocatable: cpu="4", memory="8Gi", pods="110"."""
    spec: Obj = {"taints": list(taints)} if taints else {}
    if cordoned:
        spec["unschedulable"] = True
    metadata = {"name": name, "uid": f"uid-{name}", "labels": labels or {}}
    status = {"allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def pod(name: str, where: str = "", phase: str = "Running", *, namespace: str = "default", **requests: str) -> Obj:
    """`requests` are those of its one container."""
    spec: Obj = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if where:
        spec["nodeName"] = where
    return kube_object("v1", "Pod", name, namespace, uid=f"uid-{name}", spec=spec, status={"phase": phase})


def unschedulable_pod(name: str, owner: Obj, since: str, reason: str = "Unschedulable") -> Obj:
    """A pod of a ReplicaSet that found no node."""
    waiting = pod(name, phase="Pending", namespace=owner["metadata"]["namespace"])
    waiting["metadata"] |= {
        "labels": owner["spec"]["template"]["metadata"]["labels"],
        "ownerReferences": [_owner(owner)],
    }
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "lastTransitionTime": since}
    waiting["status"]["conditions"] = [condition]
    return waiting


def deployment(name: str, *, image: str = "web:1", namespace: str = "default") -> Obj:
    return kube_object("apps/v1", "Deployment", name, namespace, uid=f"uid-{name}") | {
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": _template(name, image)}
    }


def replica_set(owner: Obj, name: str, *, image: str = "web:1", created: str = "2026-01-01T00:00:00Z") -> Obj:
    app, namespace = owner["metadata"]["name"], owner["metadata"]["namespace"]
    template = _template(app, image)
    template["metadata"]["labels"]["pod-template-hash"] = name
    metadata = {
        "name": name, "namespace": namespace, "uid": f"uid-{name}",
        "creationTimestamp": created, "labels": template["metadata"]["labels"], "ownerReferences": [_owner(owner)],
    }  # fmt: skip
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": {"app": app, "pod-template-hash": name}}, "template": template},
    }


def _template(app: str, image: str) -> Obj:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def _owner(obj: Obj) -> Obj:
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"],
        "controller": True,
    }  # fmt: skip
