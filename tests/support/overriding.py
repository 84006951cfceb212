"""Objects for tests of override policies, and short functions that apply them."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.overrides.engine import Applied, Overrides
from tests.support.workloads import workload

VERSION = "policy.karmada.io/v1alpha1"
DEPLOYMENTS = {"apiVersion": "apps/v1", "kind": "Deployment"}


def cluster(name: str = "m1", labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    return {"kind": "Cluster", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def rule(target: Obj | None = None, /, **overriders: Any) -> Obj:
    return {"overriders": overriders} if target is None else {"targetCluster": target, "overriders": overriders}


def op(name: str, *rules: Obj, selectors: list[Obj] | None = None, namespace: str = "default", **spec: Any) -> Obj:
    return _policy("OverridePolicy", {"name": name, "namespace": namespace}, rules, selectors, spec)


def cop(name: str, *rules: Obj, selectors: list[Obj] | None = None, **spec: Any) -> Obj:
    return _policy("ClusterOverridePolicy", {"name": name}, rules, selectors, spec)


def _policy(kind: str, metadata: Obj, rules: tuple[Obj, ...], selectors: list[Obj] | None, spec: Obj) -> Obj:
    spec = {
        **spec,
        **({"overrideRules": [*rules]} if rules else {}),
        **({"resourceSelectors": selectors} if selectors else {}),
    }
    return {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def container(name: str = "web", image: str = "nginx:1.19", **more: Any) -> Obj:
    return {"name": name, "image": image, **more}


def deployment(*containers: Obj, **metadata: Any) -> Obj:
    metadata = {"name": "web", "namespace": "default", **metadata}
    return workload("Deployment", pod={"containers": [*containers] or [container()]}, replicas=2, **metadata)


def config_map(**data: str) -> Obj:
    metadata = {"name": "settings", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def containers_of(obj: Obj) -> list[Obj]:
    spec = obj["spec"]
    found: list[Obj] = (spec["template"]["spec"] if "template" in spec else spec)["containers"]
    return found


def applied(obj: Obj, *objects: Obj, to: str = "m1") -> Applied:
    """With these policies and clusters (one named m1 unless others are given); neither they nor `obj` may change."""
    clusters = [] if any(given["kind"] == "Cluster" for given in objects) else [cluster()]
    given = [obj, *objects]
    before = copy_json(given)
    try:
        return Overrides.of_objects([*objects, *clusters]).apply(obj, to)
    finally:
        assert given == before, "an input was changed"


def overridden(obj: Obj, **overriders: Any) -> Obj:
    """By one policy with one rule for everything."""
    return applied(obj, op("policy", rule(**overriders))).manifest
