"""The simulated member that stands in for a real cluster: as many nodes, as large, and as full.

What is known of a cluster is its summary: nodes, allocatable and allocated resources. Nodes are taken to be alike;
what is allocated to others than the control plane's own workloads is held by one pod on every node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.sim.profile import DEFAULT_VERSION, VERSIONS, NodePool, Profile

_MOST_NODES: Final = 20
"""More are merged into fewer, larger ones."""
_POOL: Final = "node"
_RESOURCES: Final = ("cpu", "memory")


def profile_of(cluster: Obj) -> Profile:
    status = cluster.get("status") or {}
    spec = cluster["spec"]
    nodes = nodes_of(cluster)
    allocatable = (status.get("resourceSummary") or {}).get("allocatable") or {}
    pool = NodePool(
        name=_POOL,
        count=nodes,
        cpu=str(_share(allocatable.get("cpu") or "0", nodes)),
        memory=str(_share(allocatable.get("memory") or "0", nodes)),
        pods=max(1, Quantity.parse(allocatable.get("pods") or "110").value() // nodes),
        zones=tuple(spec.get("zones") or ()),
        region=spec.get("region") or "",
        provider=spec.get("provider") or "",
    )
    return Profile(cluster["metadata"]["name"], version=_version(status), pools=(pool,), system_pods=False)


def nodes_of(cluster: Obj) -> int:
    total = (((cluster.get("status") or {}).get("nodeSummary")) or {}).get("totalNum") or 1
    return min(int(total), _MOST_NODES)


def _version(status: Obj) -> str:
    """Return the cluster's own minor version, if it can be simulated."""
    minor = ".".join((status.get("kubernetesVersion") or "").lstrip("v").split(".")[:2])
    return minor if minor in VERSIONS else DEFAULT_VERSION


def _share(amount: str, of: int) -> Quantity:
    quantity = Quantity.parse(amount)
    return Quantity(quantity.nano // of, quantity.format)


def others_on(cluster: Obj, bindings: Iterable[Obj]) -> list[Obj]:
    """Return Pods for what others have allocated in a cluster, one on every node."""
    name, nodes = cluster["metadata"]["name"], nodes_of(cluster)
    allocated = (((cluster.get("status") or {}).get("resourceSummary")) or {}).get("allocated") or {}
    own = list(_own_requests(name, bindings))
    rest = {what: _rest(allocated.get(what) or "0", [one.get(what) for one in own]) for what in _RESOURCES}
    requests = {what: str(_share(str(amount), nodes)) for what, amount in rest.items() if amount.nano > 0}
    if not requests:
        return []
    return [_pod(f"{name}-{_POOL}-{number}", number, requests) for number in range(1, nodes + 1)]


def _own_requests(cluster: str, bindings: Iterable[Obj]) -> Iterable[dict[str, Quantity]]:
    for binding in bindings:
        spec = binding["spec"]
        replicas = next((t.get("replicas") or 0 for t in spec.get("clusters") or () if t["name"] == cluster), 0)
        request = (spec.get("replicaRequirements") or {}).get("resourceRequest") or {}
        yield {what: Quantity.parse(amount) * replicas for what, amount in request.items() if replicas}


def _rest(allocated: str, own: Sequence[Quantity | None]) -> Quantity:
    rest = Quantity.parse(allocated)
    for amount in own:
        if amount is not None:
            rest -= amount
    return rest


def _pod(node: str, number: int, requests: dict[str, str]) -> Obj:
    container = {"name": "others", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"others-{number}", "namespace": "kube-system"},
        "spec": {"nodeName": node, "containers": [container], "tolerations": [{"operator": "Exists"}]},
    }
