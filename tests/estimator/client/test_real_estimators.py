"""Connections and calls over loopback, to a server that hangs, goes away and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from karmada.api.cluster import Cluster
from karmada.estimator.client.calls import Calls
from karmada.estimator.client.connections import Connections
from karmada.estimator.client.options import ClientOptions
from karmada.estimator.contract import MAX_AVAILABLE_REPLICAS, SERVICE
from karmada.estimator.terms import EstimateError
from karmada.kube.client.client import Client
from karmada.kube.client.grpc_library import grpc
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import SERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.manager import Manager
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi, FakeTransport

METHOD = MAX_AVAILABLE_REPLICAS


class Server:
    """Answers with 7 unless it hangs."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.answers.set()
        self.port = 0

    async def _answer(self, _request: Any, _context: Any) -> Any:
        await self.answers.wait()
        return METHOD.response(maxReplicas=7)

    def service(self) -> Obj:
        ports = [{"port": 10352, "targetPort": self.port}]
        return {"type": "ExternalName", "externalName": "127.0.0.1", "ports": ports}

    async def start(self) -> Any:
        handler = grpc.unary_unary_rpc_method_handler(
            self._answer,
            request_deserializer=METHOD.request.FromString,
            response_serializer=METHOD.response.SerializeToString,
        )
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD.name: handler}),))
        self.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server


@asynccontextmanager
async def connections(server: Server, timeout: float) -> AsyncIterator[tuple[Connections, Client]]:
    kinds = {Cluster.gvr: ("Cluster", False, ()), SERVICES: ("Service", True, ("svc",))}
    client, clock = Client(FakeTransport(FakeApi(kinds))), RealClock()
    metadata = {"name": "karmada-scheduler-estimator-m1", "namespace": "karmada-system"}
    await client.create(SERVICES, {"metadata": metadata, "spec": server.service()})
    await client.create(Cluster.gvr, {"metadata": {"name": "m1"}, "spec": {"syncMode": "Push"}})
    manager = Manager(client, clock=clock)
    found = Connections(manager.informers, client, clock, ClientOptions(timeout=timeout))
    manager.add(found)
    async with manager:
        await eventually(lambda: found.get("m1"))
        yield found, client


async def called(calls: Calls) -> int | str:
    request = METHOD.request(cluster="m1").SerializeToString()
    try:
        return (await calls.all(METHOD, {"m1": request}, ""))["m1"]
    except EstimateError as error:
        return str(error)


async def test_a_server_that_hangs_is_not_called_again_until_it_answers() -> None:
    server = Server()
    running = await server.start()
    async with connections(server, timeout=0.2) as (found, _):
        calls = Calls(found, RealClock())
        server.answers.clear()
        assert "code = DeadlineExceeded" in str(await called(calls))
        assert await called(calls) == "cluster m1 does not exist in estimator cache"
        server.answers.set()
        await eventually(lambda: found.get("m1"))
        calls.timeout = 20
        assert await called(calls) == 7
    await running.stop(0)


async def test_a_server_that_is_away_fails_at_once_and_is_dialled_where_it_comes_back() -> None:
    server = Server()
    running = await server.start()
    async with connections(server, timeout=20) as (found, client):
        calls = Calls(found, RealClock())
        assert await called(calls) == 7
        await running.stop(0)
        assert "code = Unavailable" in str(await called(calls))
        assert await called(calls) == "cluster m1 does not exist in estimator cache"
        running = await server.start()
        patch = {"spec": server.service()}
        await client.patch(SERVICES, "karmada-scheduler-estimator-m1", "karmada-system", patch)
        await eventually(lambda: found.get("m1"))
        assert await called(calls) == 7
    await running.stop(0)
