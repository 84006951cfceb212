"""What FederatedHPAs remember does not grow with time."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tests.controllers.federated_hpa.scaling_plane import RPS, ScalingPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
_OURS = ("karmada.controllers.federated_hpa", "karmada.kube.autoscaling")
_SWING = (50, 90, 20)


def alive(two: ScalingPlane) -> tuple[int, int, int]:
    """Objects of autoscaling's own types, tasks, and keys that wait for their next turn."""
    gc.collect()
    own = sum(1 for obj in gc.get_objects() if type(obj).__module__.startswith(_OURS))
    queue = two.plane.manager.controllers[two.controller.name].queue
    return own, len(asyncio.all_tasks()), queue.delayed


async def pass_minutes(two: ScalingPlane, minutes: int) -> None:
    """Load that never rests, so that each round recommends something else and many scale."""
    for number in range(4 * minutes):
        two.metrics.cpu = {"m1": _SWING[number % 3], "m2": _SWING[(number + 1) % 3]}
        await two.round()


async def test_memory_is_flat_over_an_hour(two: ScalingPlane) -> None:
    free = {"stabilizationWindowSeconds": 0}
    await two.workload("calm", m1=2)
    await two.workload("busy", m1=2, m2=2)
    two.metrics.cpu, two.metrics.rps = {"m1": 50, "m2": 50}, 10_000
    await two.autoscaler("calm", metrics=[RPS])
    await two.autoscaler("busy", behavior={"scaleUp": free, "scaleDown": free})
    await two.until_reason("ScalingActive", "ValidMetricFound", "calm")
    await two.until_reason("ScalingActive", "ValidMetricFound", "busy")
    await pass_minutes(two, 10)
    before = alive(two)
    await pass_minutes(two, 60)
    assert alive(two) == before
    histories = two.controller.histories.values()
    assert max(len(history.recommendations) for history in histories) <= 300 / 15 + 1
    assert sum(len(history.added) + len(history.removed) for history in histories) <= 4
    assert len(two.controller.shared) <= 2
    assert len(two.controller.selectors) == 2
