"""Logs of pods, over HTTPS."""

from __future__ import annotations

import aiohttp
import pytest

from karmada.kube.objects.errors import ApiError, BadRequest, Invalid
from karmada.kube.objects.times import rfc3339
from karmada.kube.sim.kubelet.answers import Log
from tests.kube.sim.connecting.pods_reached import BASE, Cluster, tls_of
from tests.support.cases import cases
from tests.support.eventually import eventually


async def test_logs_are_read_by_container_and_run(sim: Cluster) -> None:
    before = {"exitCode": 1, "startedAt": rfc3339(sim.clock.now() - 100), "finishedAt": rfc3339(sim.clock.now() - 98)}
    await sim.put("p", ended=before)
    assert (await sim.log("p", tailLines="1")).endswith("p/c line 12\n")
    assert (await sim.log("p", previous="true")).endswith("p/c line 1\n")
    sim.answers.set("said", Log(namespace="default", text="ready\nsteady"))
    assert await sim.log("p") == "ready\nsteady\n"


@cases(
    ({"container": "x"}, BadRequest, "container x is not valid for pod p"),
    ({"previous": "true"}, BadRequest, 'previous terminated container "c" in pod "p" not found'),
    ({"tailLines": "-1"}, Invalid, "must be greater than or equal to 0"),
)
async def test_bad_questions_about_logs_are_refused(
    query: dict[str, str], error: type[ApiError], text: str, sim: Cluster
) -> None:
    await sim.put("p")
    with pytest.raises(error) as refused:
        await sim.log("p", **query)
    assert text in refused.value.message


async def test_a_pod_on_no_node_has_no_log_and_one_that_waits_says_so(sim: Cluster) -> None:
    await sim.put("nowhere", running=False, node="")
    assert await sim.log("nowhere") == ""
    waits = await sim.put("waits", running=False)
    await sim.set_state(waits, {"waiting": {"reason": "ContainerCreating"}}, phase="Pending")
    with pytest.raises(BadRequest, match='container "c" in pod "waits" is waiting to start: ContainerCreating'):
        await sim.log("waits")


async def test_following_a_log_ends_with_the_container(sim: Cluster) -> None:
    pod = await sim.put("p")
    asleep = sim.asleep()
    url = f"{sim.server.url}{BASE}/pods/p/log?follow=true&tailLines=1"
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_of(sim.server))) as session,
        session.get(url) as response,
    ):
        assert response.headers["Content-Type"] == "text/plain"
        assert (await response.content.readline()).endswith(b"p/c line 12\n")
        await eventually(lambda: sim.asleep() > asleep)
        await sim.clock.advance(5)
        assert (await response.content.readline()).endswith(b"p/c line 13\n")
        await sim.set_state(pod, {"terminated": {"exitCode": 0, "finishedAt": rfc3339(sim.clock.now())}})
        assert await response.content.read() == b""
