"""The Lease of a cluster in mode Pull, and what the control plane makes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karmada.api.cluster import Cluster
from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.cluster.monitor import ClusterMonitor
from karmada.controllers.cluster_state import ready_condition
from karmada.controllers.cluster_status.heartbeat import Heartbeat
from karmada.controllers.context import Settings
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running


@asynccontextmanager
async def pulled(
    folder: Path, settings: Settings | None = None, **options: float
) -> AsyncIterator[tuple[ControlPlane, Heartbeat]]:
    """A cluster in mode Pull that is ready, and its heartbeat, which has not begun."""
    async with running(
        folder, lambda context: [Clusters(context), ClusterMonitor(context)], settings=settings
    ) as plane:
        await plane.add_cluster("m1", "Pull")
        await plane.set_ready("m1", "True")
        heartbeat = Heartbeat(plane.context, **options)
        yield plane, heartbeat
        await heartbeat.stop()


async def advance(plane: ControlPlane, seconds: float) -> None:
    assert isinstance(plane.clock, FakeClock)
    for _ in range(int(seconds)):
        await plane.clock.advance(1)


def ready(plane: ControlPlane) -> str:
    cluster: Obj | None = plane.context.informers.of(Cluster.gvr).get(Key("", "m1"))
    return str((ready_condition(cluster or {}) or {}).get("status"))


async def renewals(plane: ControlPlane) -> float:
    lease = await plane.get(LEASES, "m1", "karmada-cluster")
    assert lease is not None
    return parse_time(lease["spec"]["renewTime"])


async def test_a_renewed_lease_keeps_a_cluster_ready(tmp_path: Path) -> None:
    async with pulled(tmp_path) as (plane, heartbeat):
        heartbeat.begin("m1")
        heartbeat.begin("m1")
        for _ in range(6):
            await advance(plane, 60)
            assert ready(plane) == "True"
            assert plane.clock.now() - await renewals(plane) < 12


@cases(
    (Settings(), 30, 51),
    (Settings(cluster_monitor_grace_period=15), 5, 26),
    ids=["by default", "with a shorter grace period"],
)
async def test_a_cluster_without_heartbeat_becomes_unknown_in_the_time_of_the_flags(
    settings: Settings, least: float, most: float, tmp_path: Path
) -> None:
    async with pulled(tmp_path, settings) as (plane, heartbeat):
        heartbeat.begin("m1")
        await advance(plane, 120)
        heartbeat.end("m1")
        await advance(plane, least)
        assert ready(plane) == "True"
        await advance(plane, most - least)
        assert ready(plane) == "Unknown"
        cluster = await plane.get(Cluster.gvr, "m1")
        assert cluster is not None
        assert [taint["key"] for taint in cluster["spec"]["taints"]] == ["cluster.karmada.io/unreachable"]


async def test_a_lease_that_cannot_be_written_is_written_again_later(tmp_path: Path) -> None:
    async with pulled(tmp_path, lease_duration=20, renew_fraction=0.1) as (plane, heartbeat):
        heartbeat.begin("m1")
        await advance(plane, 5)
        transport = plane.context.client.transport
        original, connected = transport.call, False

        async def call(request: Call) -> Any:
            if not connected and "leases" in request.path:
                raise ConnectionFailed("cut off")
            return await original(request)

        transport.call = call  # type: ignore[method-assign,assignment]
        before = await renewals(plane)
        await advance(plane, 30)
        assert await renewals(plane) == before
        connected = True
        await advance(plane, 4)
        assert await renewals(plane) > before


async def test_the_lease_is_not_written_without_its_cluster(tmp_path: Path) -> None:
    async with pulled(tmp_path) as (plane, heartbeat):
        heartbeat.begin("other")
        await advance(plane, 60)
        assert await plane.get(LEASES, "other", "karmada-cluster") is None
