"""Very many groups of clusters are tried in slices, at a cost that grows with their number and no faster."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.runtime import time_slice
from karmada.scheduler.algorithm import schedule, schedule_remotely
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request
from tests.support.counting import counted_calls, counted_turns
from tests.support.scheduling_cases import cluster, deployment

CLUSTERS = [cluster("a"), cluster("b")]


def request(terms: int) -> Request:
    """Groups that select nothing, and at last one that selects a cluster."""
    nothing = [
        {"affinityName": f"t{n}", "labelSelector": {"matchLabels": {"number": f"{terms}-{n}"}}} for n in range(terms)
    ]
    return Request(deployment(1, {"clusterAffinities": [*nothing, {"affinityName": "last", "clusterNames": ["b"]}]}))


async def decided(terms: int) -> Any:
    return await schedule_remotely(request(terms), Fleet.of(CLUSTERS), (), ())


async def test_others_run_between_two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(10**9))
    monkeypatch.setattr(time_slice, "perf_counter", lambda: next(now) * time_slice.SLICE_SECONDS / 10)
    with counted_turns() as turns:
        decision = await decided(300)
    assert turns.count >= 20
    assert decision.targets == schedule(request(300), Fleet.of(CLUSTERS), ()).targets == [{"name": "b", "replicas": 1}]


async def test_twice_the_groups_cost_twice_as_much() -> None:
    async def calls_for(terms: int) -> int:
        with counted_calls() as calls:
            decision = await decided(terms)
        assert [target["name"] for target in decision.targets] == ["b"]
        return calls.count

    await calls_for(10)
    assert await calls_for(1000) < 2.2 * await calls_for(500)
