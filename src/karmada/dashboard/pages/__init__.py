"""The pages, in the order of the navigation. A module exports PAGE; its line here makes it part of the dashboard."""

from __future__ import annotations

from karmada.dashboard.pages import (
    clusters,
    events,
    failover,
    fleet,
    pods,
    policies,
    quota,
    scaling,
    search,
    workload,
    workloads,
)
from karmada.dashboard.view import PageModule

PAGES: tuple[PageModule, ...] = (
    fleet.PAGE,
    clusters.PAGE,
    workloads.PAGE,
    workload.PAGE,
    policies.PAGE,
    pods.PAGE,
    failover.PAGE,
    scaling.PAGE,
    quota.PAGE,
    search.PAGE,
    events.PAGE,
)
