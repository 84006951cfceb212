"""What informers keep of a member's nodes and pods: what counts for capacity, and nothing else.

The summary of a cluster and its estimator are computed from the same informers, so both share these. Strings and
amounts that many objects have in common are one object in memory.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

from karmada.estimator.requests import Amounts, node_amounts, pod_amounts
from karmada.kube.objects.meta import controller_of, get_condition, has_condition
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj

Counted = tuple[str, Amounts]
"""A pod: its node ("" while it has none), and what it reserves."""
_OVER = ("Succeeded", "Failed")
_CORDONED: Obj = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_KEEPING_OUT = ("NoSchedule", "NoExecute")


class Unschedulable(NamedTuple):
    """A pod for which the member's scheduler finds no node."""

    since: float
    controller: str
    """The uid of what made it."""
    labels: Mapping[str, str]


def slim_pod(pod: Obj) -> Obj:
    """Record a pod; `counted` is None for one that is over and has left its node's resources free."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    node = spec.get("nodeName") or ""
    over = node and status.get("phase") in _OVER
    kept: Obj = {"metadata": identity(pod), "counted": None if over else (sys.intern(node), pod_amounts(spec))}
    if not node:
        unschedulable = _unschedulable(pod, status)
        if unschedulable is not None:
            kept["unschedulable"] = unschedulable
    return kept


def _unschedulable(pod: Obj, status: Obj) -> Unschedulable | None:
    condition = get_condition(status.get("conditions"), "PodScheduled")
    if condition is None or condition.get("status") != "False" or condition.get("reason") != "Unschedulable":
        return None
    since, owner = condition.get("lastTransitionTime"), controller_of(pod)
    labels = {sys.intern(key): sys.intern(value) for key, value in (pod["metadata"].get("labels") or {}).items()}
    return Unschedulable(parse_time(since) if since else 0.0, owner["uid"] if owner else "", labels)


def slim_node(node: Obj) -> Obj:
    """`taints` are those that keep new pods out; a cordoned node has one more."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    taints = [taint for taint in spec.get("taints") or () if taint.get("effect") in _KEEPING_OUT]
    if spec.get("unschedulable"):
        taints.append(_CORDONED)
    labels = node["metadata"].get("labels") or {}
    return {
        "metadata": identity(node),
        "allocatable": node_amounts(status.get("allocatable") or {}),
        "ready": has_condition(status.get("conditions"), "Ready"),
        "labels": {sys.intern(key): value for key, value in labels.items()},
        "taints": tuple(taints),
    }


def identity(obj: Obj) -> Obj:
    """Return the part of its metadata by which informers know an object."""
    meta = obj["metadata"]
    kept = {"name": meta["name"], "uid": meta.get("uid"), "resourceVersion": meta.get("resourceVersion")}
    if "namespace" in meta:
        kept["namespace"] = sys.intern(meta["namespace"])
    return kept
