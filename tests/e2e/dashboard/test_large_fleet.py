"""The fleet page with few and with many clusters, on objects that only have the status of clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from playwright.sync_api import Browser, expect

from karmada.api.cluster import Cluster
from karmada.kube.objects.types import Obj
from tests.support.background import Background
from tests.support.browser import NARROW, WIDE, tab
from tests.support.dashboard_client import DashboardPlane, dashboard_plane
from tests.support.objects import kube_object

FEW, MANY = 14, 240
_REGIONS = (("aws", "eu-central-1"), ("aws", "us-east-1"), ("gcp", "europe-west4"), ("onprem", "frankfurt"))
_NOT_READY = {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}
_PLANNED = {"key": "maintenance", "value": "planned", "effect": "NoSchedule"}


def _cluster(number: int, random: Random) -> Obj:
    """One in twelve has failed, one in nine is tainted."""
    provider, region = _REGIONS[number % len(_REGIONS)]
    failed, tainted = number % 12 == 5, number % 9 == 3
    taints = ([_NOT_READY] if failed else []) + ([_PLANNED] if tainted else [])
    nodes, used = random.randint(3, 40), random.random()
    ready = {
        "type": "Ready",
        "status": "False" if failed else "True",
        "reason": "ClusterNotReachable" if failed else "ClusterReady",
        "message": "cluster is not reachable" if failed else "cluster is healthy and ready to accept workloads",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    offered = {"cpu": f"{nodes * 16}", "memory": f"{nodes * 64}Gi", "pods": f"{nodes * 110}"}
    taken = {
        "cpu": f"{nodes * 16 * used:.0f}",
        "memory": f"{nodes * 60 * used:.0f}Gi",
        "pods": f"{nodes * 70 * used:.0f}",
    }
    return kube_object(Cluster.gvk.api_version, "Cluster", f"{region}-{number:03d}") | {
        "spec": {
            "syncMode": "Pull" if provider == "onprem" else "Push",
            "apiEndpoint": f"https://10.0.{number}.1:6443",
            "provider": provider,
            "region": region,
            "zones": [f"{region}-{'abc'[number // 4 % 3]}"],
            "taints": taints,
        },
        "status": {
            "kubernetesVersion": ("v1.36.0", "v1.35.2")[number % 2],
            "conditions": [ready],
            "nodeSummary": {"totalNum": nodes, "readyNum": nodes - (number % 7 == 1)},
            "resourceSummary": {"allocatable": offered, "allocated": taken},
        },
    }


Fill = Callable[[int], None]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[tuple[DashboardPlane, Fill]]:
    """A dashboard, and a function that makes so many clusters there are."""
    random = Random(7)
    with Background() as background:
        plane = background.enter(dashboard_plane(tmp_path))
        made = iter(range(MANY))

        async def write(count: int) -> None:
            for _, number in zip(range(count), made, strict=False):
                wanted = _cluster(number, random)
                created = await plane.client.create(Cluster.gvr, wanted)
                await plane.client.update_status(Cluster.gvr, {**created, "status": wanted["status"]})

        yield plane, lambda count: background.run(write(count))


def test_few_clusters_are_cards_and_many_are_cells_and_both_are_readable_at_any_width(
    browser: Browser, fleet: tuple[DashboardPlane, Fill]
) -> None:
    plane, fill = fleet
    fill(FEW)
    url = plane.service.url
    with tab(browser, url, height=760) as wide, tab(browser, url, width=NARROW, scheme="dark") as narrow:
        for opened in (wide, narrow):
            opened.log_in("admin-token")
            expect(opened.page.locator(".cluster")).to_have_count(FEW)
            opened.see("maintenance=planned:NoSchedule")
            opened.is_readable()
        wide.is_live()
        wide.shot("fleet")
        fill(MANY - FEW)
        for opened in (wide, narrow):
            expect(opened.page.locator("section .cell")).to_have_count(MANY, timeout=30_000)
            opened.see("Needs attention")
            opened.is_readable()
        wide.shot("fleet-many")
        narrow.shot("fleet-many-narrow")
        wide.page.fill("#filter", "us-east-1 not ready")
        expect(wide.page.locator("section .cell:not(.filtered)")).to_have_count(_failed_in("us-east-1"))
        wide.reach("section .cell:not(.filtered)")
        assert wide.page.viewport_size == {"width": WIDE, "height": 760}


def _failed_in(region: str) -> int:
    random = Random(7)
    found = [_cluster(number, random) for number in range(MANY)]
    return sum(
        cluster["spec"]["region"] == region and cluster["status"]["conditions"][0]["status"] == "False"
        for cluster in found
    )
