"""The estimator service over gRPC, as a scheduler uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from karmada.estimator.contract import (
    GET_UNSCHEDULABLE_REPLICAS,
    MAX_AVAILABLE_COMPONENT_SETS,
    MAX_AVAILABLE_REPLICAS,
    ReplicasQuery,
    SetsQuery,
    UnschedulableQuery,
    replicas_request,
    sets_request,
    unschedulable_request,
)
from karmada.estimator.server import EstimatorServer, ServingFiles
from karmada.estimator.terms import Assumption, EstimateError
from karmada.kube.client.grpc_library import grpc
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.certificates import Authority, Pair
from tests.support.estimator_client import estimator_client

AUTHORITY = Authority()
SERVER = AUTHORITY.issue("estimator", ["127.0.0.1"])
CLIENT = AUTHORITY.issue("system:scheduler")
REQUIREMENTS: Obj = {"nodeClaim": {"nodeSelector": {"a": "b"}}, "resourceRequest": {"cpu": "1"}, "namespace": "shop"}
COMPONENTS: list[Obj] = [{"name": "c", "replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "1"}}}]
ASSUMED = [Assumption("shop", COMPONENTS)]
RESOURCE: Obj = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}


class Recorder:
    """An estimator that records what it is called with."""

    cluster = "member1"

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.error: Exception | None = None

    def _record(self, answer: int, *call: Any) -> int:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        return answer

    def max_available_replicas(self, requirements: Obj | None, assumed: Sequence[Assumption] = ()) -> int:
        return self._record(7, requirements, assumed)

    def max_available_component_sets(
        self, components: Sequence[Obj], namespace: str = "", assumed: Sequence[Assumption] = ()
    ) -> int:
        return self._record(5, components, namespace, assumed)

    def unschedulable_replicas(self, resource: Obj | None, threshold_seconds: float) -> int:
        return self._record(3, resource, threshold_seconds)


def write(folder: Path, pair: Pair = SERVER) -> ServingFiles:
    for name, content in {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": AUTHORITY.pem}.items():
        (folder / name).write_bytes(content)
    return ServingFiles(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")


@asynccontextmanager
async def serving(recorder: Recorder, files: ServingFiles | None = None) -> AsyncIterator[EstimatorServer]:
    server = EstimatorServer(recorder, host="127.0.0.1", files=files)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def test_every_method_is_served_over_mutual_tls(tmp_path: Path) -> None:
    recorder = Recorder()
    async with serving(recorder, write(tmp_path)) as server, estimator_client(server.port, AUTHORITY, CLIENT) as client:
        query = ReplicasQuery("member1", REQUIREMENTS, ASSUMED)
        assert await client.call(MAX_AVAILABLE_REPLICAS, replicas_request(query)) == 7
        assert await client.call(MAX_AVAILABLE_REPLICAS, replicas_request(ReplicasQuery("member1", None))) == 7
        sets = SetsQuery("member1", COMPONENTS, "shop", ASSUMED)
        assert await client.call(MAX_AVAILABLE_COMPONENT_SETS, sets_request(sets)) == 5
        waiting = UnschedulableQuery("member1", RESOURCE, 300.0)
        assert await client.call(GET_UNSCHEDULABLE_REPLICAS, unschedulable_request(waiting)) == 3
    assert recorder.calls == [(REQUIREMENTS, ASSUMED), (None, []), (COMPONENTS, "shop", ASSUMED), (RESOURCE, 300.0)]


@cases(
    (MAX_AVAILABLE_REPLICAS, replicas_request(ReplicasQuery("other", None))),
    (MAX_AVAILABLE_COMPONENT_SETS, sets_request(SetsQuery("other", []))),
    (GET_UNSCHEDULABLE_REPLICAS, unschedulable_request(UnschedulableQuery("other", RESOURCE, 0))),
)
async def test_a_request_for_another_cluster_is_refused(method: Any, request_: Any) -> None:
    async with serving(Recorder()) as server, estimator_client(server.port) as client:
        with pytest.raises(grpc.RpcError) as refused:
            await client.call(method, request_)
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == "cluster name does not match, got: other, desire: member1"


async def test_an_estimate_that_fails_has_the_status_unknown_and_its_text() -> None:
    recorder = Recorder()
    recorder.error = EstimateError("failed to estimate replicas: broken")
    async with serving(recorder) as server, estimator_client(server.port) as client:
        with pytest.raises(grpc.RpcError) as failed:
            await client.call(MAX_AVAILABLE_REPLICAS, replicas_request(ReplicasQuery("member1", None)))
    assert failed.value.code() is grpc.StatusCode.UNKNOWN
    assert failed.value.details() == "failed to estimate replicas: broken"


REQUEST = replicas_request(ReplicasQuery("member1", None))


@pytest.mark.parametrize("pair", [None, Authority().issue("system:scheduler")], ids=["none", "of another authority"])
async def test_a_client_without_a_certificate_of_the_authority_is_refused(tmp_path: Path, pair: Pair | None) -> None:
    recorder = Recorder()
    async with serving(recorder, write(tmp_path)) as server, estimator_client(server.port, AUTHORITY, pair) as client:
        with pytest.raises(grpc.RpcError) as refused:
            await client.call(MAX_AVAILABLE_REPLICAS, REQUEST)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert recorder.calls == []


@cases({"client_authority": None}, {"admit_all": True})
async def test_clients_need_no_certificate_where_none_is_verified(change: Any, tmp_path: Path) -> None:
    files = write(tmp_path)._replace(**change)
    async with serving(Recorder(), files) as server, estimator_client(server.port, AUTHORITY) as client:
        assert await client.call(MAX_AVAILABLE_REPLICAS, REQUEST) == 7


async def test_a_renewed_certificate_is_used_for_the_next_connection(tmp_path: Path) -> None:
    stale = Authority().issue("estimator", ["127.0.0.1"])
    async with serving(Recorder(), write(tmp_path, stale)) as server:
        async with estimator_client(server.port, AUTHORITY, CLIENT) as client:
            with pytest.raises(grpc.RpcError):
                await client.call(MAX_AVAILABLE_REPLICAS, REQUEST)
        write(tmp_path)
        async with estimator_client(server.port, AUTHORITY, CLIENT) as client:
            assert await client.call(MAX_AVAILABLE_REPLICAS, REQUEST) == 7


async def test_an_address_that_is_taken_is_an_error() -> None:
    async with serving(Recorder()) as server:
        second = EstimatorServer(Recorder(), host="127.0.0.1", port=server.port)
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{server.port}"):
            await second.start()
