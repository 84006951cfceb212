"""Deployments and what is built like them."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj


def workload(kind: str, name: str, replicas: int, pod: Obj, *, selector: Obj | None = None, **metadata: Any) -> Obj:
    """Its pods have the labels that it selects, which are the app's name if there are none."""
    labels = selector or {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }


def one_container(image: str, name: str = "web") -> Obj:
    return {"containers": [{"name": name, "image": image}]}
