"""Waiting for workloads, and what is said of those that do not become ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.install.diagnosis import advice, is_ready, summary
from karmada.install.options import InstallError
from karmada.install.waiting import until
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.types import Obj
from tests.install.installing import NAMESPACE, Host, host_cluster
from tests.support.cases import cases


class Looks:
    """What is awaited, look by look; an error is raised."""

    def __init__(self, *awaited: str | Exception) -> None:
        self._awaited = list(awaited)
        self.shown: list[str] = []

    async def __call__(self) -> str:
        found = self._awaited.pop(0) if len(self._awaited) > 1 else self._awaited[0]
        if isinstance(found, Exception):
            raise found
        return found


async def waited(looks: Looks, seconds: float, passing: float) -> asyncio.Task[str]:
    clock = FakeClock()
    task = asyncio.create_task(until(looks, seconds, clock, looks.shown.append))
    await clock.advance(passing)
    return task


async def test_it_waits_until_nothing_is_awaited_also_over_a_connection_that_breaks() -> None:
    looks = Looks("one", ConnectionFailed("gone"), "two", "")
    assert await (await waited(looks, 10, 2)) == ""
    assert looks.shown == ["one", "gone", "two"]


async def test_what_is_awaited_when_time_is_up_is_returned() -> None:
    assert await (await waited(Looks("more"), 5, 6)) == "more"


async def test_zero_waits_without_limit() -> None:
    task = await waited(Looks("more"), 0, 60)
    assert not task.done()
    task.cancel()


@cases(
    (["ImagePullBackOff"], "name a registry"),
    (["Nothing", "FailedScheduling"], "add a node"),
    (["CrashLoopBackOff", "ErrImagePull"], "its last log lines"),
    (["StartError"], "its image has not the program"),
    ([], "see its events and logs"),
)
def test_the_first_reason_that_is_known_says_what_to_do(reasons: list[str], text: str) -> None:
    assert advice(reasons).startswith(text)


def stateful_set(**status: int) -> Obj:
    return {"kind": "StatefulSet", "metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status}


@cases(
    ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}, True),
    ({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}, False),
    ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 3}, False),
    ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 2}, False),
    ({}, False),
)
def test_a_stateful_set_is_ready_when_all_its_pods_are_new_and_ready(status: dict[str, int], ready: bool) -> None:
    assert is_ready(stateful_set(**status)) is ready


def pod(name: str, *, ready: bool, **status: Any) -> Obj:
    condition = {"type": "Ready", "status": str(ready)}
    return {"metadata": {"name": name}, "status": {"phase": "Pending", "conditions": [condition], **status}}


def test_the_summary_names_the_first_pod_that_is_not_ready() -> None:
    waiting = {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
    pods = [pod("a", ready=True), pod("b", ready=False, containerStatuses=[waiting]), pod("c", ready=False)]
    assert summary(stateful_set(), pods) == "1 of 3 pods ready; b: ErrImagePull: no such image"
    assert summary(stateful_set(), pods[:1]) == "1 of 3 pods ready"


# in a namespace that enforces the restricted profile


@pytest.fixture
async def restricted_host(tmp_path: Path) -> AsyncIterator[Host]:
    async with host_cluster(tmp_path) as host:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
        await host.client.create(NAMESPACES, namespace)
        yield host


async def test_a_namespace_that_enforces_the_restricted_profile_takes_the_pods(restricted_host: Host) -> None:
    await restricted_host.install()
    labels = (await restricted_host.client.get(NAMESPACES, NAMESPACE))["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


async def test_pods_that_a_namespace_refuses_are_reported_with_the_reason(restricted_host: Host) -> None:
    given = {"store-volume": "hostPath", "wait-component-ready-timeout": 1}
    with pytest.raises(InstallError) as error:
        await restricted_host.install(given)
    text = str(error.value)
    assert "it has no pods\n" in text
    assert 'event: Warning FailedCreate: Error creating: pods "karmada-apiserver-' in text
    assert "What to do: the namespace refuses its pods: see its quotas and its Pod Security level." in text
