"""Templates, policies and bindings for tests of propagation, and a control plane that can be run until it is idle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from karmada.api.policy import ClusterOverridePolicy, ClusterPropagationPolicy, OverridePolicy, PropagationPolicy
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.controllers.context import Context
from karmada.controllers.detector.replica_policies import KINDS as REPLICA_POLICIES
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS, EVENTS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from tests.support.control_plane import ControlPlane, assemble
from tests.support.objects import kube_object
from tests.support.workloads import one_container, workload

POLICIES = PropagationPolicy.gvr
CLUSTER_POLICIES = ClusterPropagationPolicy.gvr
BINDINGS = ResourceBinding.gvr
CLUSTER_BINDINGS = ClusterResourceBinding.gvr

POLICY_ID = "propagationpolicy.karmada.io/permanent-id"
POLICY_NAMESPACE = "propagationpolicy.karmada.io/namespace"
POLICY_NAME = "propagationpolicy.karmada.io/name"
CLUSTER_POLICY_ID = "clusterpropagationpolicy.karmada.io/permanent-id"
CLUSTER_POLICY_NAME = "clusterpropagationpolicy.karmada.io/name"

_MADE_BY_TESTS = (
    *REPLICA_POLICIES,
    POLICIES,
    CLUSTER_POLICIES,
    OverridePolicy.gvr,
    ClusterOverridePolicy.gvr,
    DEPLOYMENTS,
    CONFIG_MAPS,
    SECRETS,
    BINDINGS,
    CLUSTER_BINDINGS,
)
_RESOURCES = {
    "Deployment": DEPLOYMENTS,
    "ConfigMap": CONFIG_MAPS,
    "Secret": SECRETS,
    "ClusterRole": CLUSTER_ROLES,
    "PropagationPolicy": POLICIES,
    "ClusterPropagationPolicy": CLUSTER_POLICIES,
    "ResourceBinding": BINDINGS,
}


def deployment(name: str = "nginx", *, replicas: int = 2, pod: Obj | None = None, **metadata: Any) -> Obj:
    metadata = {"namespace": "default", **metadata}
    return workload("Deployment", name, replicas, {**one_container("nginx:1.25"), **(pod or {})}, **metadata)


def config_map(name: str = "settings", *, data: dict[str, str] | None = None, **metadata: Any) -> Obj:
    metadata = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"k": "v"}}


def cluster_role(name: str = "reader", **metadata: Any) -> Obj:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, **metadata},
        "rules": [],
    }


def selecting(kind: str = "Deployment", **selector: Any) -> Obj:
    versions = {"Deployment": "apps/v1", "ClusterRole": "rbac.authorization.k8s.io/v1"}
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, **selector}


def placed(*clusters: str) -> Obj:
    return {"clusterAffinity": {"clusterNames": list(clusters)}}


def policy(name: str = "pp", *selectors: Obj, namespace: str = "default", **spec: Any) -> Obj:
    return kube_object("policy.karmada.io/v1alpha1", "PropagationPolicy", name, namespace) | {
        "spec": {"resourceSelectors": list(selectors or (selecting(),)), "placement": placed("m1"), **spec}
    }


def cluster_policy(name: str = "cpp", *selectors: Obj, **spec: Any) -> Obj:
    return kube_object("policy.karmada.io/v1alpha1", "ClusterPropagationPolicy", name) | {
        "spec": {"resourceSelectors": list(selectors or (selecting(),)), "placement": placed("m1"), **spec}
    }


class Propagation:
    """A control plane that runs until it is idle on demand; the fake clock advances as far as that takes."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.client = plane.client
        self.writes: list[str] = []
        """What the controllers have written, verb, resource, name; without events and what every namespace has."""
        transport = plane.context.client.transport
        call = transport.call

        async def noted(request: Any) -> Any:
            answer = await call(request)
            if request.method != "GET" and "/events" not in request.path:
                name = answer["metadata"]["name"]
                resource = request.path.split("/")[-1 if request.method == "POST" else -2]
                if not name.startswith("kube-root-ca.crt"):
                    self.writes.append(f"{request.method} {resource} {name}")
            return answer

        transport.call = noted  # type: ignore[method-assign,assignment]

    async def rest(self, seconds: float = 1.0) -> None:
        """Advance the clock by so many seconds, and wait until all controllers are idle."""
        clock = self.plane.clock
        assert isinstance(clock, FakeClock)
        for _ in range(5):
            await clock.advance(seconds / 5)
        for controller in self.plane.manager.controllers.values():
            assert controller.queue.idle, controller.name

    @asynccontextmanager
    async def another(self, parts: Callable[[Context], Sequence[Reconciler]]) -> AsyncIterator[Context]:
        """Further controllers on the same server, as another process would run them."""
        assembly = assemble(self.plane.server, parts, gates=self.plane.context.gates)
        async with assembly.manager:
            yield assembly.context

    async def apply(self, *objects: Obj) -> list[Obj]:
        """Create them, and rest."""
        made = [await self.client.create(_RESOURCES[obj["kind"]], obj) for obj in objects]
        await self.rest()
        return made

    async def change(self, kind: GVR, name: str, patch: Obj, namespace: str = "default") -> Obj:
        changed = await self.client.patch(kind, name, namespace, patch)
        await self.rest()
        return changed

    async def delete(self, kind: GVR, name: str, namespace: str = "default") -> None:
        await self.client.delete(kind, name, namespace)
        await self.rest()

    async def clear(self) -> None:
        """Delete everything that tests create."""
        await self.rest()
        for kind in _MADE_BY_TESTS:
            for found in (await self.client.list_all(kind)).items:
                namespace, name = found["metadata"].get("namespace", ""), found["metadata"]["name"]
                if name == "kube-root-ca.crt" or namespace.startswith("kube-"):
                    continue
                await self.client.delete(kind, name, namespace)
                if await self.find(kind, name, namespace) is not None and "policy" not in kind.group:
                    await self.client.patch(kind, name, namespace, {"metadata": {"finalizers": None}})
            await self.rest()
        for gone in (CLUSTER_ROLES, EVENTS):
            for found in (await self.client.list_all(gone)).items:
                if gone is EVENTS or "kubernetes.io/bootstrapping" not in (found["metadata"].get("labels") or {}):
                    await self.client.delete(gone, found["metadata"]["name"], found["metadata"].get("namespace", ""))
        await self.rest()
        self.writes.clear()

    async def get(self, kind: GVR, name: str, namespace: str = "default") -> Obj:
        return await self.client.get(kind, name, namespace)

    async def find(self, kind: GVR, name: str, namespace: str = "default") -> Obj | None:
        return await self.plane.get(kind, name, namespace)

    async def binding(self, name: str, namespace: str = "default") -> Obj | None:
        return await self.plane.get(BINDINGS, name, namespace)

    async def clusters(self, name: str) -> list[str] | None:
        """The cluster names in the placement of a binding; None without a binding."""
        found = await self.binding(name)
        return None if found is None else found["spec"]["placement"]["clusterAffinity"]["clusterNames"]

    async def claim(self, kind: GVR, name: str, namespace: str = "default") -> str | None:
        """The policy that claims a template or binding; all labels and annotations of the claim must be set."""
        found = await self.get(kind, name, namespace)
        labels, annotations = found["metadata"].get("labels") or {}, found["metadata"].get("annotations") or {}
        by_policy = (POLICY_ID in labels, POLICY_NAME in annotations, POLICY_NAMESPACE in annotations)
        by_cluster_policy = (CLUSTER_POLICY_ID in labels, CLUSTER_POLICY_NAME in annotations)
        assert len(set(by_policy)) == 1, found["metadata"]
        assert len(set(by_cluster_policy)) == 1, found["metadata"]
        assert not (by_policy[0] and by_cluster_policy[0]), found["metadata"]
        if by_policy[0]:
            return f"{annotations[POLICY_NAMESPACE]}/{annotations[POLICY_NAME]}"
        return annotations.get(CLUSTER_POLICY_NAME)

    async def events(self, name: str, namespace: str = "default") -> list[tuple[str, str, str]]:
        return await self.plane.events(name, namespace)
