"""When a Deployment is rolled out, and what is reported when it is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from karmada.joining.join import JoinError
from karmada.joining.pull.objects import Agent, Placed, agent_deployment
from karmada.joining.pull.rollout import is_rolled_out, wait_for_rollout
from karmada.kube.client.client import Listing
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

DEPLOYMENT = agent_deployment(Agent(cluster="m1", api_endpoint="", image="i", replicas=2))
DONE = {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


def deployment(**status: int) -> Obj:
    return {**DEPLOYMENT, "metadata": {**DEPLOYMENT["metadata"], "generation": 3}, "status": status}


@cases(
    (DONE, True),
    ({}, False),
    ({**DONE, "observedGeneration": 2}, False),
    ({**DONE, "replicas": 3}, False),
    ({**DONE, "updatedReplicas": 1}, False),
    ({**DONE, "availableReplicas": 1}, False),
)
def test_every_replica_is_new_and_available(status: dict[str, int], done: bool) -> None:
    assert is_rolled_out(deployment(**status)) is done


class Member:
    """A cluster in which the Deployment stays as it is, with the given pods."""

    def __init__(self, *pods: Obj) -> None:
        self.pods = list(pods)

    async def list_all(self, kind: Any, *_: object, **__: object) -> Listing:
        return Listing([deployment()] if kind == DEPLOYMENTS else self.pods, "1")

    async def watch(self, *_: object, **__: object) -> Any:
        async def never() -> Any:
            await asyncio.Event().wait()
            yield

        return never()


def pod(**status: Any) -> Obj:
    return {"metadata": {"name": "p"}, "status": status}


def container(**state: Any) -> Obj:
    return {"containerStatuses": [state]}


@cases(
    ([], "it has no pods"),
    ([pod(**container(state={"waiting": {"reason": "ErrImagePull", "message": "no such image"}}))],
     "pod p: ErrImagePull: no such image"),
    ([pod(**container(state={"running": {}}, lastState={"terminated": {"reason": "Error", "message": "no\n"}}))],
     "pod p: Error: no"),
    ([pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}])],
     "pod p: 0/1 nodes are available"),
    ([pod(phase="Running")], "pod p: Running"),
)  # fmt: skip
async def test_the_reason_of_the_pods_is_reported(pods: list[Obj], reason: str) -> None:
    clock = FakeClock()
    placed = Placed(DEPLOYMENTS, DEPLOYMENT)
    member: Any = Member(*pods)
    task = asyncio.create_task(wait_for_rollout(member, placed, seconds=300, clock=clock))
    await clock.advance(301)
    with pytest.raises(JoinError) as failed:
        await task
    assert str(failed.value) == f"Deployment karmada-system/karmada-agent is not ready after 5m0s: {reason}"
