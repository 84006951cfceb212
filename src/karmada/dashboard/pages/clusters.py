"""One cluster: conditions, taints, capacity, what it serves, how many Works it has, its nodes and its events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from aiohttp import web

from karmada.api.cluster import Cluster
from karmada.api.taints import taint_text
from karmada.api.well_known import execution_namespace
from karmada.api.work import Work
from karmada.dashboard import reads
from karmada.dashboard.object_events import time_of
from karmada.dashboard.pages.cluster_state import BAD, GOOD, ORDER, WARN, State, Usage, state_of, usage_of, zones_of
from karmada.dashboard.view import PageModule, Route, View
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, Forbidden
from karmada.kube.objects.gvrs import EVENTS, NODES
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

_MOST_NODES: Final = 100
_MOST_EVENTS: Final = 30
_FIRST: Final = ("cpu", "memory", "pods", "ephemeral-storage")
_UNIT: Final = {"cpu": "cores", "memory": "size", "ephemeral-storage": "size", "storage": "size"}


@dataclass(frozen=True, slots=True)
class Resource:
    name: str
    unit: str
    """cores, size or number: the filter that shows it."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    kind: str
    reason: str
    message: str
    since: str | None


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    state: State
    version: str
    cpu: float
    memory: float
    pods: float
    since: str | None


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a cluster, as far as the viewer may see them: `problem` says why there are none."""

    items: Sequence[Node] = ()
    more: int = 0
    problem: str = ""


def resources_of(cluster: Obj) -> list[Resource]:
    """Return what the nodes offer and how much is allocated, the common ones first; not what they only could offer."""
    summary = (cluster.get("status") or {}).get("resourceSummary") or {}
    offered = summary.get("allocatable") or {}
    names = [name for name in _FIRST if name in offered] + sorted(name for name in offered if name not in _FIRST)
    found = [Resource(name, _UNIT.get(name, "number"), usage_of(cluster, name)) for name in names]
    return [resource for resource in found if resource.usage.total]


def conditions_of(cluster: Obj) -> list[Condition]:
    """Return the conditions, those that are not as they should be first."""
    found = [_condition(one) for one in (cluster.get("status") or {}).get("conditions") or ()]
    return sorted(found, key=lambda one: (ORDER.index(one.kind), one.type))


def _condition(one: Obj) -> Condition:
    status = one.get("status") or "Unknown"
    kind = GOOD if status == "True" else BAD if one.get("type") == "Ready" else WARN
    return Condition(
        one.get("type") or "",
        status,
        kind,
        one.get("reason") or "",
        one.get("message") or "",
        one.get("lastTransitionTime"),
    )


def node_of(node: Obj) -> Node:
    status = node.get("status") or {}
    ready: Obj = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), {})
    if ready.get("status") != "True":
        state = State(BAD, "Not ready", ready.get("message") or "")
    elif (node.get("spec") or {}).get("unschedulable"):
        state = State(WARN, "Cordoned")
    else:
        state = State(GOOD, "Ready")
    offered = status.get("allocatable") or {}
    cpu, memory, pods = (Quantity.parse(offered.get(name) or 0).nano / 1e9 for name in ("cpu", "memory", "pods"))
    version = (status.get("nodeInfo") or {}).get("kubeletVersion") or ""
    return Node(node["metadata"]["name"], state, version, cpu, memory, pods, node["metadata"].get("creationTimestamp"))


async def nodes_of(view: View, name: str) -> Nodes:
    """Read the nodes through the proxy, with the viewer's own rights in the member."""
    try:
        found = await reads.page(view.viewer.member(name), NODES, limit=_MOST_NODES)
    except Forbidden as error:
        return Nodes(problem=f"You may not see the nodes of this cluster: {error.message}")
    except (ApiError, ConnectionFailed) as error:
        return Nodes(problem=f"The cluster does not respond: {error}")
    return Nodes([node_of(node) for node in found.items], found.more or 0)


async def events_of(view: View, name: str) -> reads.Page | None:
    """Return the events of the Cluster itself, the latest first; None if the viewer may not read events."""
    found = await reads.allowed(reads.page(view.client, EVENTS, limit=500, field_selector=_about(name)))
    if found is None:
        return None
    return replace(found, items=sorted(found.items, key=time_of, reverse=True)[:_MOST_EVENTS])


def _about(name: str) -> str:
    """Return the field selector of a Cluster's events."""
    return f"involvedObject.kind=Cluster,involvedObject.name={name}"


async def _data(view: View) -> dict[str, Any]:
    name = view.path["name"]
    cluster = await view.client.get(Cluster.gvr, name)
    works, events = await asyncio.gather(
        reads.allowed(reads.count(view.client, Work.gvr, execution_namespace(name))), events_of(view, name)
    )
    enabled = (cluster.get("status") or {}).get("apiEnablements") or []
    version = cluster["metadata"].get("resourceVersion") or ""
    return {
        "cluster": cluster,
        "name": name,
        "state": state_of(cluster),
        "conditions": conditions_of(cluster),
        "taints": [(taint_text(taint), taint.get("timeAdded")) for taint in cluster["spec"].get("taints") or ()],
        "resources": resources_of(cluster),
        "zones": zones_of(cluster),
        "works": works,
        "works_namespace": execution_namespace(name),
        "enabled": sorted(enabled, key=lambda one: str(one.get("groupVersion"))),
        "events": [(event, time_of(event)) for event in events.items] if events is not None else None,
        "topics": [
            reads.topic(Cluster.gvr, name=name, since=version),
            *([reads.topic(EVENTS, field_selector=_about(name), since=events.version)] if events is not None else []),
        ],
    }


async def show(view: View) -> web.Response:
    return view.page("cluster.html", title=view.path["name"], **await _data(view))


async def part(view: View) -> web.Response:
    return view.part("partials/cluster.html", **await _data(view))


async def nodes(view: View) -> web.Response:
    """Show the nodes, once the page is shown: a member may be slow, and must not keep the rest waiting."""
    return view.part("partials/nodes.html", nodes=await nodes_of(view, view.path["name"]))


PAGE = PageModule(
    routes=(
        Route("GET", "/clusters/{name}", show),
        Route("GET", "/clusters/{name}/part", part),
        Route("GET", "/clusters/{name}/nodes", nodes),
    )
)
