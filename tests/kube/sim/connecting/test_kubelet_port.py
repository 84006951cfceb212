"""The kubelet's own port."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from karmada.kube.objects.gvrs import NODES
from karmada.kube.sim.kubelet.channels import MAX_MESSAGE
from karmada.kube.sim.kubelet.endpoint import KubeletServer
from tests.kube.sim.connecting.pods_reached import ACCOUNT, Cluster, tls_of
from tests.support.eventually import eventually


@asynccontextmanager
async def kubelets(sim: Cluster) -> AsyncIterator[KubeletServer]:
    server = KubeletServer(sim.context, sim.load, host="127.0.0.1", advertise="127.0.0.1")
    await server.start()
    try:
        await eventually(lambda: server.ports.get("n1"))
        yield server
    finally:
        await server.stop()


def kubelet_tls(sim: Cluster, *, certificate: bool) -> ssl.SSLContext:
    context = tls_of(sim.server) if certificate else ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def test_a_node_says_where_its_kubelet_listens(sim: Cluster) -> None:
    async with kubelets(sim) as server:

        def announced() -> bool:
            status = (sim.load.nodes.list()[0].get("status")) or {}
            return bool(status.get("daemonEndpoints") == {"kubeletEndpoint": {"Port": server.ports["n1"]}})

        await eventually(announced)
        assert sim.load.nodes.list()[0]["status"]["addresses"] == [{"type": "InternalIP", "address": "127.0.0.1"}]
        await sim.client.delete(NODES, "n1")
        await eventually(lambda: not server.ports)


async def test_the_kubelet_serves_who_may_and_nobody_else(sim: Cluster) -> None:
    await sim.put("p")
    async with kubelets(sim) as server:
        base = f"https://127.0.0.1:{server.ports['n1']}"
        connector = aiohttp.TCPConnector(ssl=kubelet_tls(sim, certificate=True))
        async with aiohttp.ClientSession(connector=connector) as session:
            async with session.get(f"{base}/containerLogs/default/p/c?tailLines=1") as response:
                assert (await response.text()).endswith("line 12\n")
            async with session.get(f"{base}/containerLogs/default/other/c") as response:
                assert response.status == 404
            query = "command=echo&command=hi&output=1&error=1"
            url = f"{base}/exec/default/p/c?{query}"
            async with session.ws_connect(url, protocols=("v4.channel.k8s.io",)) as socket:
                messages = [message.data async for message in socket]
            assert b"\1hi\n" in messages
            too_long = b"\0" + bytes(MAX_MESSAGE)
            url = f"{base}/exec/default/p/c?command=cat&input=1&output=1"
            async with session.ws_connect(url, protocols=("v4.channel.k8s.io",)) as socket:
                await socket.send_bytes(too_long)
                assert [message async for message in socket] == [], "it is closed, and nothing was echoed"
        anonymous = aiohttp.TCPConnector(ssl=kubelet_tls(sim, certificate=False))
        async with aiohttp.ClientSession(connector=anonymous) as session:
            async with session.get(f"{base}/pods") as response:
                assert response.status == 401
            _, token, _ = await sim.run("p", "cat", f"{ACCOUNT}/token")
            headers = {"Authorization": f"Bearer {token.decode()}"}
            async with session.get(f"{base}/metrics/resource", headers=headers) as response:
                text = "Forbidden (user=system:serviceaccount:default:default, verb=get, resource=nodes, "
                assert (response.status, await response.text()) == (403, f"{text}subresource(s)=[metrics])")
