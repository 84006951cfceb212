"""Faults cut the connections of process pods: those to the outside, and those that come through Services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.objects.gvrs import PODS, SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.sim.faults.kinds import Isolated
from karmada.kube.sim.processes.egress import parse_head
from tests.kube.sim.processes.process_cluster import fetch, fetched, log_of, pod, process_cluster, service
from tests.kube.sim.whole_cluster import Whole, whole_cluster
from tests.support.cases import cases
from tests.support.eventually import LIMIT, eventually

CALLS = """
import asyncio, sys
from dataclasses import replace
from karmada.kube.client.incluster import in_cluster_config
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.proxies import proxy_for
from karmada.kube.client.transport import Call, ConnectionFailed

async def main():
    inside = in_cluster_config()
    port = inside.server.rpartition(":")[2]
    outside = HttpTransport(replace(inside, server=f"https://localhost:{port}", timeout=float(sys.argv[1])))
    print("proxies", proxy_for(inside) or "none", proxy_for(outside.config)[:7], flush=True)
    while True:
        try:
            print("status", (await outside.answer(Call("GET", "/version"))).status, flush=True)
        except ConnectionFailed as error:
            print("failed", error, flush=True)
        await asyncio.sleep(0.05)

asyncio.run(main())
"""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Whole]:
    async with process_cluster(tmp_path) as whole:
        yield whole


def calls(patience: float) -> Obj:
    """A pod that calls the API server from outside again and again, and gives an answer so many seconds."""
    return pod("p", container={"command": ["python", "-c", CALLS, str(patience)]})


async def last_line(cluster: Whole, name: str) -> str:
    return (await log_of(cluster, name, tailLines="1")).strip()


@cases("hang", "refuse")
async def test_an_isolated_pod_cannot_reach_the_outside_until_the_fault_is_healed(how: str, cluster: Whole) -> None:
    await cluster.admin.create(PODS, calls(1.0))

    async def says(text: str) -> bool:
        return (await last_line(cluster, "p")).startswith(text)

    await eventually(lambda: says("status 200"))
    assert (await log_of(cluster, "p")).startswith("proxies none http://\n"), "the own API server is direct"
    fault = Isolated(namespace="default", labels={"app": "p"}, how="refuse" if how == "refuse" else "hang")
    await cluster.sim.faults.inject(fault, name="cut")
    await eventually(lambda: says("failed"))
    await cluster.sim.faults.heal("cut")
    await eventually(lambda: says("status 200"))


async def test_other_pods_and_other_addresses_are_not_cut(cluster: Whole) -> None:
    await cluster.admin.create(PODS, calls(LIMIT))
    await cluster.sim.faults.inject(Isolated(labels={"app": "other"}))
    await cluster.sim.faults.inject(Isolated(to="example"))

    async def says() -> bool:
        return (await last_line(cluster, "p")).startswith("status 200")

    await eventually(says)
    assert "failed" not in await log_of(cluster, "p")


async def test_a_service_does_not_reach_an_isolated_pod(cluster: Whole) -> None:
    await cluster.admin.create(SERVICES, service("web"))
    await cluster.deploy(1, containers=[{"name": "main", "image": "known/server:1"}])
    address = (await cluster.admin.get(SERVICES, "web", "default"))["spec"]["clusterIP"]
    await fetched(address, 80)
    await cluster.sim.faults.inject(Isolated(labels={"app": "web"}, how="refuse"), name="cut")
    with pytest.raises(OSError):
        await fetch(address, 80)
    await cluster.sim.faults.inject(Isolated(labels={"app": "web"}), name="cut")
    hanging = asyncio.create_task(fetch(address, 80))
    done, _ = await asyncio.wait({hanging}, timeout=0.2)
    assert not done
    await cluster.sim.faults.heal()
    assert (await hanging).startswith("hello from web-")


async def test_a_cluster_without_processes_has_nothing_to_isolate(tmp_path: Path) -> None:
    async with whole_cluster(tmp_path) as whole:
        with pytest.raises(ValueError, match="cluster small runs no processes"):
            await whole.sim.faults.inject(Isolated())
        assert not whole.sim.faults.active


POD: Obj = {"metadata": {"name": "p", "namespace": "shop", "labels": {"app": "web", "tier": "front"}}}


@cases(
    (Isolated(), "10.0.0.1:443", True),
    (Isolated(), "", True),
    (Isolated(namespace="shop"), "", True),
    (Isolated(namespace="other"), "", False),
    (Isolated(labels={"app": "web"}), "", True),
    (Isolated(labels={"app": "web", "tier": "back"}), "", False),
    (Isolated(to=":443$"), "10.0.0.1:443", True),
    (Isolated(to=":443$"), "10.0.0.1:4430", False),
    (Isolated(to=":443$"), "", False),
)
def test_a_fault_cuts_the_connections_that_it_names(fault: Isolated, peer: str, cut: bool) -> None:
    assert fault.matches(POD, peer) is cut
    assert not fault.matches(None, peer)


@cases(
    (b"CONNECT host:443 HTTP/1.1\r\nProxy-Authorization: Basic c2hvcC5wOnBvZA==\r\n\r\n", ("host:443", "shop.p")),
    (b"CONNECT host:443 HTTP/1.1\r\n\r\n", ("host:443", "")),
    (b"CONNECT host:443 HTTP/1.1\r\nproxy-authorization: basic !\r\n\r\n", ("host:443", "")),
    (b"GET http://host/ HTTP/1.1\r\n\r\n", ("", "")),
    (b"\r\n\r\n", ("", "")),
)
def test_the_proxy_reads_the_target_and_the_pod(head: bytes, expected: tuple[str, str]) -> None:
    assert parse_head(head) == expected
