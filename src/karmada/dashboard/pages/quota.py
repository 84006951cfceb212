"""Federated quotas: what each namespace may use over all clusters, what it uses, and the share of each cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from karmada.api.policy import FederatedResourceQuota
from karmada.dashboard import reads
from karmada.dashboard.formatting import percent
from karmada.dashboard.view import PageModule, Route, View
from karmada.kube.objects import meta
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Limit:
    resource: str
    hard: str
    used: str
    share: int
    """Percent of the bar; more is used than it shows where it is over its limit."""
    over: bool


@dataclass(frozen=True, slots=True)
class Quota:
    namespace: str
    name: str
    overall: Sequence[Limit]
    clusters: Sequence[tuple[str, Sequence[Limit]]]


def limits_of(hard: Obj | None, used: Obj | None) -> list[Limit]:
    return [_limit(name, str(value), str((used or {}).get(name, "0"))) for name, value in sorted((hard or {}).items())]


def _limit(resource: str, hard: str, used: str) -> Limit:
    whole, part = (Quantity.parse(one).nano for one in (hard, used))
    return Limit(resource, hard, used, percent(part, whole) if whole else 100 * bool(part), part > whole)


def quota_of(obj: Obj) -> Quota:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    clusters = [
        (str(one["clusterName"]), limits_of(one.get("hard"), one.get("used")))
        for one in status.get("aggregatedStatus") or ()
    ]
    overall = limits_of(status.get("overall") or spec.get("overall"), status.get("overallUsed"))
    return Quota(meta.namespace(obj), meta.name(obj), overall, clusters)


async def quota(view: View) -> web.StreamResponse:
    namespace = view.query.get("namespace", "")
    page = await reads.page(view.client, FederatedResourceQuota.gvr, namespace, limit=_MOST)
    data: dict[str, Any] = {
        "quotas": [quota_of(one) for one in page.items],
        "more": bool(page.token),
        "namespace": namespace,
        "url": str(view.request.rel_url),
        "topics": [reads.topic(FederatedResourceQuota.gvr, namespace, since=page.version)],
    }
    return view.shown("quota.html", title="Quota", **data)


PAGE: Final = PageModule(routes=(Route("GET", "/quota", quota),), nav=("/quota", "Quota"))
