"""Failover: clusters with problems, what leaves them and by when, and drills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from karmada.api.cluster import Cluster
from karmada.api.taints import taint_text
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.controllers.setting_metrics import read as settings_from
from karmada.dashboard import reads
from karmada.dashboard.drills import DrillFailed, Drills
from karmada.dashboard.eviction_search import EvictionSearch
from karmada.dashboard.pages.cluster_state import GOOD, state_of
from karmada.dashboard.pages.workloads import Row, rows_of
from karmada.dashboard.view import PageModule, Route, View
from karmada.kube.objects.errors import ApiError, BadRequest
from karmada.kube.objects.types import Obj
from karmada.prediction import evictions
from karmada.prediction.running import running

_MINUTES: Final = (5, 15, 30, 60)
_DRILLS: Final = Drills()


@dataclass(frozen=True, slots=True)
class Leaving:
    row: Row
    sentences: Sequence[str]


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a timeline: from when on for how long so much serves."""

    start: float
    length: float
    serving: int
    kind: str


def segments_of(timeline: Sequence[Obj], lasted: float) -> list[Segment]:
    """Return the pieces of a timeline: bad where nothing serves, warn where less serves than before."""
    full = timeline[0]["serving"] if timeline else 0
    ends = [*(one["seconds"] for one in timeline[1:]), lasted]
    return [
        Segment(one["seconds"], max(0.0, end - one["seconds"]), one["serving"], _kind(one["serving"], full))
        for one, end in zip(timeline, ends, strict=True)
    ]


def _kind(serving: int, full: int) -> str:
    if serving >= full:
        return "good"
    return "warn" if serving else "bad"


async def failover(view: View) -> web.StreamResponse:
    found = await view.clusters()
    clusters = [(one["metadata"]["name"], state_of(one), _taints(one)) for one in found.items]
    troubled = [one for one in clusters if one[1].kind != GOOD or one[2]]
    topics = [reads.topic(Cluster.gvr, since=found.resource_version)]
    data: dict[str, Any] = {"troubled": troubled, "total": len(clusters), "topics": topics}
    if view.request.headers.get("HX-Request"):
        return view.part("partials/failover_clusters.html", **data)
    names = [name for name, _, _ in clusters]
    evicting = [*topics, *(reads.topic(kind.gvr) for kind in (ResourceBinding, ClusterResourceBinding))]
    return view.page("failover.html", title="Failover", names=names, minutes=_MINUTES, evicting=evicting, **data)


def _taints(cluster: Obj) -> list[str]:
    return [taint_text(one) for one in cluster["spec"].get("taints") or ()]


# evictions in progress


async def evicting(view: View) -> web.StreamResponse:
    search = view.viewer.seen("evictions", EvictionSearch)
    found = await reads.allowed(view.viewer.paced("evictions", lambda: search.look(view.client)))
    if found is None:
        return view.part("partials/evictions.html", leaving=None)
    clusters = {one["metadata"]["name"]: one for one in (await view.clusters()).items}
    settings = settings_from((await running(view.client)).settings)
    rows = await rows_of(view.client.mapper, found.bindings)
    leaving = [
        Leaving(row, evictions.in_words(one, clusters, settings, view.clock.now()))
        for row, one in zip(rows, found.bindings, strict=True)
    ]
    return view.part("partials/evictions.html", leaving=leaving, found=found)


# drills


async def drill(view: View) -> web.StreamResponse:
    """Run a drill, which changes nothing in the fleet: a read-only dashboard has it, too."""
    form = await view.request.post()
    failing = [str(one) for one in form.getall("fail", [])]
    known = {one["metadata"]["name"] for one in (await view.clusters()).items}
    minutes = str(form.get("minutes", "30"))
    if set(failing) - known or not minutes.isdigit() or int(minutes) not in _MINUTES:
        raise BadRequest("choose clusters of the list, and one of the durations offered")
    try:
        report = await _DRILLS.run(
            view.viewer, failing, minutes=int(minutes), with_failover=bool(form.get("with_failover"))
        )
    except (DrillFailed, ApiError) as error:
        return view.part("partials/drill.html", report=None, problem=str(error), rows=())
    rows = sorted(report["resources"], key=lambda one: (-one["downtimeSeconds"], -one["degradedSeconds"], one["name"]))
    touched = [one for one in rows if one["degradedSeconds"] or one["before"] != one["after"]]
    shown = [(one, segments_of(one["timeline"], report["followedSeconds"])) for one in touched]
    return view.part("partials/drill.html", report=report, problem="", rows=shown)


PAGE: Final = PageModule(
    routes=(
        Route("GET", "/failover", failover),
        Route("GET", "/failover/evictions", evicting),
        Route("POST", "/failover/drill", drill),
    ),
    nav=("/failover", "Failover"),
)
