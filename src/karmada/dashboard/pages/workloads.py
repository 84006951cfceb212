"""All propagated resources: a page of bindings at a time, of one namespace or of all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.dashboard import reads
from karmada.dashboard.view import PageModule, Route, View
from karmada.dashboard.workload import PolicyRef, policy_of, targets_of, url_of
from karmada.kube.client.discovery import NoMatch, RESTMapper
from karmada.kube.objects import meta
from karmada.kube.objects.errors import Expired, Forbidden, Gone
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj

NAMES_SECONDS: Final = 10.0
"""For how long the names that a filter looks through are kept."""
NAMED: Final = 4
"""As many clusters are named in a row."""


@dataclass(frozen=True, slots=True)
class Row:
    kind: str
    namespace: str
    name: str
    url: str
    """Empty if the kind is not served any more."""
    policy: PolicyRef | None
    replicas: int | None
    clusters: Sequence[str]
    state: str
    text: str
    created: str | None


async def rows_of(mapper: RESTMapper, bindings: Sequence[Obj]) -> list[Row]:
    return [await _row(mapper, one) for one in bindings if (one.get("spec") or {}).get("resource")]


async def _row(mapper: RESTMapper, binding: Obj) -> Row:
    spec = binding["spec"]
    resource = spec["resource"]
    namespace, name = str(resource.get("namespace") or ""), str(resource["name"])
    try:
        gvr = (await mapper.mapping(GVK.parse(resource["apiVersion"], resource["kind"]))).gvr
    except NoMatch:
        url = ""
    else:
        url = url_of(gvr, namespace, name)
    state, text = state_of(binding)
    clusters = sorted(one["name"] for one in spec.get("clusters") or ())
    return Row(
        str(resource["kind"]), namespace, name, url, policy_of(binding), spec.get("replicas"), clusters, state, text,
        binding["metadata"].get("creationTimestamp"),
    )  # fmt: skip


def state_of(binding: Obj) -> tuple[str, str]:
    """Return the worst that is known of it."""
    scheduled = meta.get_condition((binding.get("status") or {}).get("conditions"), "Scheduled")
    if scheduled is None:
        return "warn", "Not scheduled yet"
    if scheduled.get("status") != "True":
        return "bad", str(scheduled.get("reason") or "Not scheduled")
    targets = targets_of(binding, {})
    if not targets:
        return "idle", "In no cluster"
    for state in ("bad", "warn", "idle"):
        those = [target for target in targets if target.state == state]
        if those:
            where = those[0].cluster if len(those) == 1 else f"{len(those)} clusters"
            return state, f"{those[0].text} ({where})"
    return "good", "Healthy"


@dataclass(frozen=True, slots=True)
class Shown:
    rows: Sequence[Row]
    token: str = ""
    more: int | None = None
    version: str = ""
    restarted: bool = False
    """True if the list had changed too much to go on, and begins again."""


async def _listed(view: View, gvr: GVR, namespace: str) -> Shown:
    text = view.query.get("q", "").strip().lower()
    if text:
        return await _found(view, gvr, namespace, text.split())
    try:
        page, restarted = await reads.page(view.client, gvr, namespace, token=view.query.get("continue", "")), False
    except (Expired, Gone):
        page, restarted = await reads.page(view.client, gvr, namespace), True
    rows = await rows_of(view.client.mapper, page.items)
    return Shown(rows, page.token, page.more, page.version, restarted)


async def _found(view: View, gvr: GVR, namespace: str, words: Sequence[str]) -> Shown:
    """Find workloads by their names among all there are, which are read once for a while."""

    async def names() -> list[tuple[str, str]]:
        found = await view.client.list_all(gvr, namespace, shape=METADATA)
        return sorted(meta.key(one) for one in found.items)

    known = await view.viewer.kept(("names", gvr, namespace), NAMES_SECONDS, names)
    matching = [key for key in known if all(word in f"{key[0]}/{key[1]}" for word in words)]
    gets = (reads.existing(view.client.get(gvr, name, space)) for space, name in matching[: reads.PAGE])
    bindings = [one for one in await asyncio.gather(*gets) if one is not None]
    return Shown(await rows_of(view.client.mapper, bindings), more=max(0, len(matching) - reads.PAGE))


async def workloads(view: View) -> web.StreamResponse:
    wide = view.query.get("scope") == "cluster"
    gvr = ClusterResourceBinding.gvr if wide else ResourceBinding.gvr
    namespace = "" if wide else view.query.get("namespace", "")
    try:
        shown = await _listed(view, gvr, namespace)
    except Forbidden as error:
        data: dict[str, Any] = {"shown": Shown(()), "problem": str(error), "topics": []}
    else:
        first = not view.query.get("continue") and not view.query.get("q")
        topics = [reads.topic(gvr, namespace, since=shown.version)] if first else []
        data = {"shown": shown, "problem": "", "topics": topics}
    data |= {"wide": wide, "namespace": namespace, "q": view.query.get("q", ""), "named": NAMED}
    data["url"] = str(view.request.rel_url)
    return view.shown("workloads.html", title="Workloads", **data)


PAGE: Final = PageModule(routes=(Route("GET", "/workloads", workloads),), nav=("/workloads", "Workloads"))
