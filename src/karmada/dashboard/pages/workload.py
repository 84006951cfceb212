"""A workload: the graph of everything that belongs to it, live; each node with status, events, YAML and difference.

And why it is where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
from karmada.api.well_known import execution_namespace
from karmada.api.work import Work
from karmada.dashboard import reads
from karmada.dashboard.differences import Line, difference
from karmada.dashboard.graph import graph_of, pod_state
from karmada.dashboard.object_events import events_of
from karmada.dashboard.view import PageModule, Route, View
from karmada.dashboard.workload import CORE, Ref, Workload, binding_kind, binding_name, read, ref_of, work_name
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError
from karmada.prediction.explanation import Aim, Found, explain
from karmada.prediction.world import World

_PATH: Final = "/workloads/{group}/{version}/{resource}/{namespace}/{name}"
_MOST_WITH_PODS: Final = 20
"""Clusters whose pods are read for the graph; of others they are shown when the cluster is opened."""
_MOST_PODS: Final = 100
_MOST_EVENTS: Final = 40


async def _ref(view: View) -> Ref:
    path = view.path
    group = "" if path["group"] == CORE else path["group"]
    try:
        mapping = await view.client.mapper.kind_of(GVR(group, path["version"], path["resource"]))
    except NoMatch:
        raise NotFound(f'the server has no resource "{path["resource"]}" in {group or "v1"}') from None
    return ref_of(mapping, path["namespace"], path["name"])


def _topics(workload: Workload) -> list[str]:
    """Return the topics of template and binding, which has what the clusters report."""
    ref = workload.ref
    return [
        reads.topic(ref.gvr, ref.namespace, name=ref.name),
        reads.topic(binding_kind(ref), ref.namespace, name=binding_name(ref)),
    ]


async def show(view: View) -> web.StreamResponse:
    workload = await read(view.client, await _ref(view))
    return view.page(
        "workload.html", title=f"{workload.ref.kind} {workload.ref.name}", work=workload, topics=_topics(workload)
    )


async def summary(view: View) -> web.StreamResponse:
    """Return the part of the page that follows changes."""
    workload = await read(view.client, await _ref(view))
    return view.part("partials/workload_summary.html", work=workload)


async def graph(view: View) -> web.StreamResponse:
    workload = await read(view.client, await _ref(view))
    pods, note = await _pods_of(view, workload) if view.query.get("pods") else ({}, "")
    return web.json_response(graph_of(workload, pods, note), headers={"Cache-Control": "no-store"})


# pods


def pod_selector(ref: Ref, template: Obj | None) -> str:
    """Return the selector of the pods that a workload has in a member; "" for kinds without pods."""
    if ref.gvr.group == "batch" and ref.kind == "Job":
        return f"batch.kubernetes.io/job-name={ref.name}"
    spec = (template or {}).get("spec") or {}
    labels = (spec.get("selector") or {}).get("matchLabels") if isinstance(spec.get("selector"), dict) else None
    if not labels or "template" not in spec:
        return ""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


async def _pods_of(view: View, workload: Workload) -> tuple[dict[str, Sequence[Obj]], str]:
    """Return the pods by cluster, and a note on those that do not respond, or where the viewer may not read them."""
    selector = pod_selector(workload.ref, workload.template)
    names = [target.cluster for target in workload.targets][:_MOST_WITH_PODS]
    if not selector:
        return {}, ""
    reading = (_member_pods(view, workload.ref, name, selector) for name in names)
    results = dict(zip(names, await asyncio.gather(*map(_tried, reading)), strict=True))
    failed = {name: found for name, found in results.items() if isinstance(found, str)}
    note = f"Pods of {', '.join(failed)} are not shown: {next(iter(failed.values()))}" if failed else ""
    return {name: found for name, found in results.items() if found and not isinstance(found, str)}, note


async def _member_pods(view: View, ref: Ref, cluster: str, selector: str) -> list[Obj]:
    found = await reads.page(
        view.viewer.member(cluster), PODS, ref.namespace, limit=_MOST_PODS, label_selector=selector
    )
    return found.items


async def _tried(reading: Awaitable[list[Obj]]) -> list[Obj] | str:
    """Return what was read, or why it cannot be."""
    try:
        return await reading
    except (ApiError, ConnectionFailed) as error:
        return str(error)


# one node of the graph


@dataclass(frozen=True, slots=True)
class Node:
    """The details of a node of the graph."""

    title: str
    subtitle: str
    obj: Obj | None = None
    problem: str = ""
    """Why there is no object."""
    events: Sequence[Obj] = ()
    lines: Sequence[Line] | None = None
    """The difference from the template; None for what is not compared."""
    pods: Sequence[tuple[Obj, str, str]] = ()
    cluster: str = ""
    page: str = ""
    """The page that has more of it."""

    @property
    def conditions(self) -> Sequence[Obj]:
        return ((self.obj or {}).get("status") or {}).get("conditions") or ()


async def node(view: View) -> web.StreamResponse:
    ref = await _ref(view)
    sort, _, rest = view.path["node"].partition("/")
    reader = _NODES.get(sort)
    if reader is None or len([part for part in rest.split("/") if part]) != _PARTS.get(sort, 0):
        raise NotFound(f'there is no node "{view.path["node"]}" in the graph')
    try:
        found = await reader(view, ref, rest)
    except (ApiError, ConnectionFailed) as error:
        found = Node(sort.capitalize(), rest, problem=str(error))
    return view.part("partials/node.html", node=found)


async def _template(view: View, ref: Ref, _: str) -> Node:
    obj = await view.client.get(ref.gvr, ref.name, ref.namespace)
    obj = {"apiVersion": ref.api_version, "kind": ref.kind, **obj}
    return Node(f"{ref.kind} {ref.name}", "template in the control plane", obj, events=await _events(view, obj))


async def _binding(view: View, ref: Ref, _: str) -> Node:
    obj = await view.client.get(binding_kind(ref), binding_name(ref), ref.namespace)
    return Node(binding_name(ref), "what goes where", obj, events=await _events(view, obj))


async def _policy(view: View, ref: Ref, _: str) -> Node:
    workload = await read(view.client, ref)
    policy = workload.policy
    if policy is None:
        return Node("Policy", "", problem="no policy has claimed this resource")
    kind = PropagationPolicy if policy.namespace else ClusterPropagationPolicy
    obj = await view.client.get(kind.gvr, policy.name, policy.namespace)
    return Node(f"{policy.kind} {policy.title}", "decides where it goes", obj, events=await _events(view, obj))


async def _work(view: View, ref: Ref, cluster: str) -> Node:
    obj = await view.client.get(Work.gvr, work_name(ref), execution_namespace(cluster))
    return Node(f"Work {work_name(ref)}", f"what {cluster} gets", obj, events=await _events(view, obj), cluster=cluster)


async def _object(view: View, ref: Ref, cluster: str) -> Node:
    member = view.viewer.member(cluster)
    template, obj = await asyncio.gather(
        reads.existing(view.client.get(ref.gvr, ref.name, ref.namespace)), member.get(ref.gvr, ref.name, ref.namespace)
    )
    obj = {"apiVersion": ref.api_version, "kind": ref.kind, **obj}
    lines = None
    if template is not None:
        template = {"apiVersion": ref.api_version, "kind": ref.kind, **template}
        lines = await asyncio.to_thread(difference, template, obj)
    selector = pod_selector(ref, template)
    pods = await reads.allowed(_member_pods(view, ref, cluster, selector)) if selector else []
    return Node(
        f"{ref.kind} {ref.name}",
        f"in {cluster}",
        obj,
        events=await _events(view, obj, cluster),
        lines=lines,
        pods=[(pod, *pod_state(pod)) for pod in pods or ()],
        cluster=cluster,
    )


async def _pod(view: View, ref: Ref, rest: str) -> Node:
    cluster, _, name = rest.partition("/")
    obj = await view.viewer.member(cluster).get(PODS, name, ref.namespace)
    page = f"/pods/{quote(cluster)}/{quote(ref.namespace)}/{quote(name)}"
    events = await _events(view, obj, cluster)
    return Node(f"Pod {name}", f"in {cluster}", obj, events=events, cluster=cluster, page=page)


async def _events(view: View, obj: Obj, cluster: str = "") -> Sequence[Obj]:
    """Return the latest first; none for those who may not read them."""
    client = view.viewer.member(cluster) if cluster else view.client
    return (await events_of(client, obj) or [])[:_MOST_EVENTS]


_NODES: Final[dict[str, Callable[[View, Ref, str], Awaitable[Node]]]] = {
    "template": _template,
    "binding": _binding,
    "policy": _policy,
    "work": _work,
    "object": _object,
    "pods": _object,
    "pod": _pod,
}
_PARTS: Final = {"work": 1, "object": 1, "pods": 1, "pod": 2}
"""Names that follow: the cluster, and the pod."""


# why


async def why(view: View) -> web.StreamResponse:
    """Explain by the scheduler's own algorithm, on what the viewer may read; `cluster`: what would make it go there."""
    ref = await _ref(view)
    cluster = view.query.get("cluster", "")
    word = f"{ref.gvr.resource}.{ref.gvr.version}.{ref.gvr.group}" if ref.gvr.group else ref.gvr.resource
    data: dict[str, Any] = {"work": ref, "cluster": cluster, "found": None, "attempts": (), "problem": ""}
    try:
        aim = Aim(word, ref.name, ref.namespace, cluster)
        found = await view.predicted(lambda: _explained(view, aim))
    except (PredictionError, ApiError) as error:
        data["problem"] = str(error)
    else:
        data |= {"found": found, "attempts": _attempts(found.decision)}
    return view.part("partials/why.html", **data)


async def _explained(view: View, aim: Aim) -> Found:
    return await explain(await World().over(view.client), aim)


def _attempts(decision: Any) -> Sequence[Any]:
    from karmada.scheduler.explain import explain as explained

    return explained(decision) if decision is not None else ()


PAGE: Final = PageModule(
    routes=(
        Route("GET", _PATH, show),
        Route("GET", _PATH + "/summary", summary),
        Route("GET", _PATH + "/graph", graph),
        Route("GET", _PATH + "/why", why),
        Route("GET", _PATH + "/nodes/{node:.+}", node),
    )
)
