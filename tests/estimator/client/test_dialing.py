"""Connections over loopback to a server that answers with the object of the metadata, encoded as its length."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]
import pytest

from karmada.estimator.client.dialing import Refused, Unanswered, connect
from karmada.estimator.client.options import Tls
from karmada.estimator.contract import MAX_AVAILABLE_REPLICAS, SERVICE
from karmada.estimator.terms import EstimateError
from tests.support.certificates import Authority

METHOD = MAX_AVAILABLE_REPLICAS
ABOUT = "kind=Deployment, name=default/web"
REQUEST = METHOD.request(cluster="m1").SerializeToString()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> dict[str, Any]:
    own = authority.issue("karmada-scheduler")
    contents = {"authority": authority.pem, "certificate": own.certificate, "key": own.key}
    paths = {name: tmp_path / name for name in contents}
    for name, path in paths.items():
        path.write_bytes(contents[name])
    return paths


@asynccontextmanager
async def serving(credentials: Any = None) -> AsyncIterator[str]:
    async def answer(request: Any, context: Any) -> Any:
        if request.cluster != "m1":
            await context.abort(grpc.StatusCode.UNKNOWN, "cluster name does not match, got: x, desire: m1")
        about = dict(context.invocation_metadata()).get("object", "")
        return METHOD.response(maxReplicas=len(about))

    handler = grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=METHOD.request.FromString,
        response_serializer=METHOD.response.SerializeToString,
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD.name: handler}),))
    port = (
        server.add_insecure_port("127.0.0.1:0")
        if credentials is None
        else server.add_secure_port("127.0.0.1:0", credentials)
    )
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


def credentials(authority: Authority, *names: str, mutual: bool = True) -> Any:
    own = authority.issue("estimator", list(names))
    return grpc.ssl_server_credentials([(own.key, own.certificate)], authority.pem if mutual else None, mutual)


async def called(address: str, tls: Tls, request: bytes = REQUEST) -> int:
    connection = await connect(address, tls)
    try:
        if not await connection.ready():
            raise ConnectionError
        return await connection.call(METHOD, request, timeout=20, about=ABOUT)
    finally:
        await connection.close(0)


async def test_without_an_authority_calls_are_in_plain_text() -> None:
    async with serving() as address:
        assert await called(address, Tls()) == len(ABOUT)


async def test_with_an_authority_both_sides_are_verified(authority: Authority, files: dict[str, Any]) -> None:
    async with serving(credentials(authority, "127.0.0.1")) as address:
        assert await called(address, Tls(**files)) == len(ABOUT)
        with pytest.raises((ConnectionError, EstimateError)):
            await called(address, Tls(authority=files["authority"]))
        with pytest.raises((ConnectionError, EstimateError)):
            await called(address, Tls())


async def test_a_server_of_another_name_or_authority_is_refused(authority: Authority, files: dict[str, Any]) -> None:
    async with serving(credentials(authority, "estimator.example")) as address:
        with pytest.raises(ConnectionError):
            await called(address, Tls(**files))
    async with serving(credentials(Authority(), "127.0.0.1", mutual=False)) as address:
        with pytest.raises(ConnectionError):
            await called(address, Tls(**files))


@pytest.mark.parametrize("names", [(), ("estimator.example",), ("*.estimators.example",), ("10.0.0.1",)])
async def test_verification_may_be_skipped(authority: Authority, files: dict[str, Any], names: tuple[str, ...]) -> None:
    async with serving(credentials(authority, *names)) as address:
        own = Tls(certificate=files["certificate"], key=files["key"], insecure=True)
        assert await called(address, own) == len(ABOUT)


async def test_an_error_of_the_estimator_is_distinguished_from_no_answer() -> None:
    async with serving() as address:
        connection = await connect(address, Tls())
        with pytest.raises(Refused) as refused:
            await connection.call(METHOD, b"", timeout=20)
        assert str(refused.value) == (
            "rpc error: code = Unknown desc = cluster name does not match, got: x, desire: m1"
        )
    with pytest.raises(Unanswered, match="rpc error: code = Unavailable desc = "):
        await connection.call(METHOD, REQUEST, timeout=20)
    await connection.close(0)
    with pytest.raises(Unanswered):
        await connection.call(METHOD, REQUEST, timeout=20)


async def test_a_name_of_a_service_is_looked_up_where_the_cluster_has_no_dns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: Authority, files: dict[str, Any]
) -> None:
    name = "karmada-scheduler-estimator-m1.karmada-system.svc.cluster.local"
    async with serving(credentials(authority, name)) as address:
        port = address.rpartition(":")[2]
        names = tmp_path / "names.json"
        service = f'{{"addresses": ["127.0.0.1"], "ports": {{"10352": {port}}}}}'
        names.write_text(f'{{"karmada-scheduler-estimator-m1.karmada-system": {service}}}')
        monkeypatch.setenv("SIM_CLUSTER_NAMES", str(names))
        assert await called(f"{name}:10352", Tls(**files)) == len(ABOUT)
