"""GET /debug/estimates: what the estimators of the running scheduler return for a workload."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from karmada.components.estimates_page import estimates_page
from karmada.estimator.terms import EstimateError
from karmada.kube.client.transport import Call
from karmada.kube.objects.errors import BadRequest, Forbidden
from karmada.kube.server.auth.user import User
from karmada.scheduler.estimators.protocol import EstimateRequest
from karmada.scheduler.service.estimates import PATH
from tests.support.scheduling_plane import Scheduling, scheduling


class Nodes:
    """4 cpu in every cluster but `down`, which cannot be reached, and `unknown`."""

    name = "scheduler-estimator"

    async def estimate(self, request: EstimateRequest) -> dict[str, int]:
        [cluster] = request.names()
        if cluster == "down":
            raise EstimateError("no connection")
        if request.sets:
            return {cluster: 4 // sum(one["replicas"] for one in request.components)}
        cpu = ((request.requirements or {}).get("resourceRequest") or {}).get("cpu")
        return {cluster: 4 // int(cpu) if cpu else 100} if cluster != "unknown" else {}


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Scheduling]:
    gates = "MultiplePodTemplatesScheduling=true"
    async with scheduling(tmp_path, gates=gates, estimators=[Nodes()]) as found:
        found.plane.server.pipeline.paths[PATH] = estimates_page(found.scheduler.core)
        await found.clusters("down", "m1", "unknown")
        yield found


async def report(plane: Scheduling, user: User | None = None, **query: Any) -> Any:
    client = plane.plane.server.client(user)
    answer = await client.transport.call(Call("GET", PATH, {name: json.dumps(value) for name, value in query.items()}))
    return answer if isinstance(answer, dict) else orjson.loads(answer)


async def test_every_cluster_is_estimated_on_its_own(plane: Scheduling) -> None:
    [found] = (await report(plane, requirements={"resourceRequest": {"cpu": "2"}}))["estimators"]
    assert found == {
        "name": "scheduler-estimator",
        "replicas": {"m1": 2},
        "failures": {"down": "no connection"},
        "quotas": {},
    }


async def test_without_requirements_they_are_pods_and_with_components_complete_sets(plane: Scheduling) -> None:
    assert (await report(plane))["estimators"][0]["replicas"] == {"m1": 100}
    components = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}]
    assert (await report(plane, components=components))["estimators"][0]["replicas"]["m1"] == 2


@pytest.mark.parametrize("query", [{"requirements": [1]}, {"components": {}}])
async def test_what_is_not_of_the_form_is_refused(plane: Scheduling, query: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="must be a JSON"):
        await report(plane, **query)


async def test_nobody_reads_it_without_a_role(plane: Scheduling) -> None:
    with pytest.raises(Forbidden):
        await report(plane, User("alice", groups=("system:authenticated",)))
