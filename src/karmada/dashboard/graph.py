"""The way of a resource as a graph: template and policy → binding → Works → objects in members → pods.

Nodes and edges are plain data for the browser; `id` is stable, so that a changed graph is an update of the shown one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from karmada.dashboard.workload import Workload, binding_kind, binding_name, work_name
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj

MOST_CLUSTERS: Final = 40
"""Clusters with nodes of their own, those with problems first; the others are one node that counts them."""
MOST_PODS: Final = 8
"""Pods of one cluster that are nodes of their own; the others are one node that counts them."""
_RANK: Final = {"bad": 0, "warn": 1, "idle": 2, "good": 3}
_POD_STATES: Final = {"Running": "good", "Succeeded": "good", "Failed": "bad"}
_WAITING_BADLY: Final = frozenset(
    {"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "CreateContainerError"}
)


def graph_of(workload: Workload, pods: Mapping[str, Sequence[Obj]], note: str = "") -> Obj:
    """Return the graph of a workload; `pods`: those that are known, by cluster; `note`: what is not shown, and why."""
    nodes: list[Obj] = []
    edges: list[Obj] = []
    ref, binding = workload.ref, workload.binding
    if workload.template is not None:
        nodes.append(_node("template", "template", ref.kind, ref.name, _template_state(workload)))
    if workload.policy is not None:
        nodes.append(_node("policy", "policy", workload.policy.kind, workload.policy.name, "good"))
    if binding is not None:
        kind = "ResourceBinding" if binding_kind(ref).resource == "resourcebindings" else "ClusterResourceBinding"
        nodes.append(_node("binding", "binding", kind, binding_name(ref), _binding_state(workload)))
        edges += [_edge(one, "binding") for one in ("template", "policy") if any(node["id"] == one for node in nodes)]
    ordered = sorted(workload.targets, key=lambda target: (_RANK[target.state], target.cluster))
    for target in ordered[:MOST_CLUSTERS]:
        replicas = "" if target.replicas is None else f" · {target.replicas}"
        work, obj = f"work/{target.cluster}", f"object/{target.cluster}"
        nodes.append(_node(work, "work", "Work", work_name(ref), target.state, target.cluster))
        nodes.append(_node(obj, "object", f"{target.cluster}{replicas}", target.text, target.state, target.cluster))
        edges += [_edge("binding", work), _edge(work, obj)]
        for node in _pods(target.cluster, pods.get(target.cluster) or ()):
            nodes.append(node)
            edges.append(_edge(obj, node["id"]))
    rest = ordered[MOST_CLUSTERS:]
    if rest:
        nodes.append(_node("clusters", "clusters", f"{len(rest)} more clusters", "", rest[0].state))
        edges.append(_edge("binding", "clusters"))
    return {"nodes": nodes, "edges": edges, "note": note}


def _node(ident: str, sort: str, title: str, text: str, state: str, cluster: str = "") -> Obj:
    return {"id": ident, "sort": sort, "title": title, "text": text, "state": state, "cluster": cluster}


def _edge(source: str, target: str) -> Obj:
    return {"id": f"{source}→{target}", "source": source, "target": target}


def _template_state(workload: Workload) -> str:
    if workload.binding is None:
        return "warn"
    states = {target.state for target in workload.targets}
    return next((state for state in ("bad", "warn") if state in states), "good" if states else "warn")


def _binding_state(workload: Workload) -> str:
    condition = workload.condition
    if condition is None:
        return "warn"
    return "good" if condition.get("status") == "True" else "bad"


# pods


def _pods(cluster: str, pods: Sequence[Obj]) -> Iterable[Obj]:
    ordered = sorted(pods, key=lambda pod: (_RANK[pod_state(pod)[0]], meta.name(pod)))
    for pod in ordered[:MOST_PODS]:
        state, text = pod_state(pod)
        yield _node(f"pod/{cluster}/{meta.name(pod)}", "pod", meta.name(pod), text, state, cluster)
    rest = ordered[MOST_PODS:]
    if rest:
        state = pod_state(rest[0])[0]
        yield _node(f"pods/{cluster}", "pods", f"{len(rest)} more pods", "", state, cluster)


def pod_state(pod: Obj) -> tuple[str, str]:
    """Return the state and a word for it, as kubectl's column STATUS has."""
    status = pod.get("status") or {}
    if meta.is_deleting(pod):
        return "idle", "Terminating"
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _WAITING_BADLY:
            return "bad", str(waiting["reason"])
    phase = str(status.get("phase") or "Pending")
    if phase == "Running":
        ready = meta.get_condition(status.get("conditions"), "Ready")
        return ("good", "Running") if ready and ready.get("status") == "True" else ("warn", "Not ready")
    if phase == "Pending":
        scheduled = meta.get_condition(status.get("conditions"), "PodScheduled")
        if scheduled and scheduled.get("status") == "False":
            return "bad", str(scheduled.get("reason") or "Pending")
    return _POD_STATES.get(phase, "warn"), phase
