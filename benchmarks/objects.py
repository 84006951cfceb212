"""What is made in control planes: manifests of ordinary size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj

DEPLOYMENTS = GVR("apps", "v1", "deployments")
CONFIG_MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
POLICIES = GVR("policy.karmada.io", "v1alpha1", "propagationpolicies")
OVERRIDES = GVR("policy.karmada.io", "v1alpha1", "overridepolicies")
WEBS = GVR("benchmark.example.io", "v1", "webs")
"""A kind of its own, in the shape of a Deployment."""
KINDS = {
    DEPLOYMENTS: ("apps/v1", "Deployment"),
    CONFIG_MAPS: ("v1", "ConfigMap"),
    WEBS: ("benchmark.example.io/v1", "Web"),
}
MARK = {"benchmark": "propagation"}
"""On everything that is brought to members: what is in a namespace by itself does not count."""
IMAGE = "nginx:1.27"
REGISTRY = "registry.example.com"
"""What the override policy puts before an image, with the cluster's name."""


def numbered(number: int) -> str:
    return f"web-{number:06d}"


def namespace(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def deployment(name: str, namespace: str) -> Obj:
    """About 1 KB as it is stored."""
    labels = {"app": name, "tier": "web"}
    container = {
        "name": "web",
        "image": IMAGE,
        "ports": [{"containerPort": 80}],
        "env": [{"name": "MODE", "value": "production"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 80}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels | MARK},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def config_map(name: str, namespace: str) -> Obj:
    data = {"mode": "production", "settings.yaml": "\n".join(f"key-{line}: value-{line}" for line in range(20))}
    metadata = {"name": name, "namespace": namespace, "labels": MARK}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def web(name: str, namespace: str) -> Obj:
    """A Deployment under another name."""
    api_version, kind = KINDS[WEBS]
    return {**deployment(name, namespace), "apiVersion": api_version, "kind": kind}


MAKERS = {DEPLOYMENTS: deployment, CONFIG_MAPS: config_map, WEBS: web}


def policy(namespace: str, kind: GVR, clusters: Sequence[str]) -> Obj:
    """All marked objects of a kind in a namespace, to these clusters, the replicas to each."""
    api_version, name = KINDS[kind]
    return {
        "apiVersion": POLICIES.group + "/" + POLICIES.version,
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": namespace},
        "spec": {
            "resourceSelectors": [{"apiVersion": api_version, "kind": name, "labelSelector": {"matchLabels": MARK}}],
            "placement": {"clusterAffinity": {"clusterNames": list(clusters)}},
        },
    }


def override_policy(namespace: str, clusters: Sequence[str]) -> Obj:
    """Another registry and another variable for each cluster."""
    return {
        "apiVersion": OVERRIDES.group + "/" + OVERRIDES.version,
        "kind": "OverridePolicy",
        "metadata": {"name": "all", "namespace": namespace},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "overrideRules": [_rule(cluster) for cluster in clusters],
        },
    }


def _rule(cluster: str) -> Obj:
    variable = {"path": "/spec/template/spec/containers/0/env/0/value", "operator": "replace", "value": cluster}
    image = {"component": "Registry", "operator": "add", "value": f"{cluster}.{REGISTRY}"}
    return {
        "targetCluster": {"clusterNames": [cluster]},
        "overriders": {"imageOverrider": [image], "plaintext": [variable]},
    }


def image_of(deployment: Obj) -> str:
    containers: list[Any] = deployment["spec"]["template"]["spec"]["containers"]
    image: str = containers[0]["image"]
    return image


def image_patch(image: str) -> Obj:
    """A strategic merge patch."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}}
