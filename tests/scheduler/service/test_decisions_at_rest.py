"""After any history of clusters and bindings, what is written is what would be decided now."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.work import ResourceBinding
from karmada.kube.objects.types import Obj
from karmada.scheduler.service.schedule_type import ScheduleType, schedule_type_of
from tests.support.scheduling_cases import DUPLICATED, DYNAMIC, KINDS, deployment, placement
from tests.support.scheduling_plane import Scheduling, scheduling, targets

NAMES = ("m1", "m2", "m3")
BOOKS = {"groupVersion": "example.com/v1", "resources": [{"name": "books", "kind": "Book"}]}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": "default"}
PROD = {"labelSelector": {"matchLabels": {"env": "prod"}}}
PLACEMENTS = (
    placement(DUPLICATED),
    placement(None),
    placement(DUPLICATED, clusterAffinity=PROD),
    placement(DUPLICATED, clusterTolerations=[{"key": "full", "operator": "Exists"}]),
    placement(DYNAMIC),
    placement(DUPLICATED, spreadConstraints=[{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}]),
)
STEPS = 25


class History:
    """One random thing after another; the seed repeats it."""

    def __init__(self, plane: Scheduling, seed: int) -> None:
        self._plane = plane
        self._random = random.Random(seed)
        self.bindings: list[str] = []

    async def step(self) -> str:
        steps: list[Callable[[], object]] = [self._bind, self._label, self._taint, self._serve, self._serve]
        chosen = self._random.choice(steps)
        await chosen()  # type: ignore[misc]
        return chosen.__name__

    async def _bind(self) -> None:
        name = f"b{len(self.bindings)}"
        book = {"apiVersion": "example.com/v1", "kind": "Book", "name": name, "namespace": "default"}
        resource = self._random.choice((SETTINGS, book))
        spec = {**deployment(2, self._random.choice(PLACEMENTS)), "resource": {**resource, "name": name}}
        if self._random.random() < 0.5:
            spec.pop("replicas", None)
            spec.pop("replicaRequirements", None)
        self.bindings.append(name)
        await self._plane.bind(name, spec)

    async def _label(self) -> None:
        await self._plane.label(self._random.choice(NAMES), env=self._random.choice(("prod", "test")))

    async def _taint(self) -> None:
        taints = [{"key": "full", "effect": "NoSchedule"}] if self._random.random() < 0.5 else []
        await self._plane.change_cluster(self._random.choice(NAMES), {"spec": {"taints": taints}})

    async def _serve(self) -> None:
        """A member that answers only some requests, or has got or lost a kind for good."""
        kinds = [kind for kind in (*KINDS, BOOKS) if self._random.random() < 0.7]
        complete = {"type": "CompleteAPIEnablements", "status": self._random.choice(("True", "False"))}
        status = {"apiEnablements": kinds, "conditions": [complete]}
        name = self._random.choice(NAMES)
        await self._plane.client.patch(Cluster.gvr, name, "", {"status": status}, subresource="status")
        await self._plane.rest()


async def undecided(plane: Scheduling, name: str) -> tuple[dict[str, int], dict[str, int]] | None:
    """(written, wanted) where they differ."""
    binding: Obj = await plane.client.get(ResourceBinding.gvr, name, "default")
    core = plane.scheduler._core
    request = core.request(binding)
    if schedule_type_of(binding, request, core.fleet.leaving) is ScheduleType.NONE:
        return None
    decision = await core.decide(binding, request)
    wanted = {target["name"]: target.get("replicas", 0) for target in decision.targets}
    written = targets(binding)
    return None if wanted == written else (written, wanted)


@pytest.mark.parametrize("seed", range(12))
async def test_what_is_written_is_what_would_be_decided(tmp_path: Path, seed: int) -> None:
    async with scheduling(tmp_path) as plane:
        await plane.clusters(*NAMES, pods=50)
        history = History(plane, seed)
        done: list[str] = []
        for _ in range(STEPS):
            done.append(await history.step())
            await plane.wait(60)
            wrong = {name: found for name in history.bindings if (found := await undecided(plane, name))}
            assert not wrong, f"after {done}"
