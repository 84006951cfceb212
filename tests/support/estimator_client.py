"""A plain gRPC client of the estimator service, with nothing but the table of messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from karmada.estimator.messages import Method
from karmada.kube.client.grpc_library import grpc
from tests.support.certificates import Authority, Pair

SECONDS = 20.0


class EstimatorClient:
    def __init__(self, channel: Any) -> None:
        self._channel = channel

    async def call(self, method: Method, request: Any) -> int:
        """The number in the response; grpc.RpcError with the status."""
        unary = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        return int(getattr(await unary(request, timeout=SECONDS), method.field))


@asynccontextmanager
async def estimator_client(
    port: int, authority: Authority | None = None, pair: Pair | None = None
) -> AsyncIterator[EstimatorClient]:
    """Without an authority the connection is not encrypted."""
    address = f"127.0.0.1:{port}"
    if authority is None:
        channel = grpc.aio.insecure_channel(address)
    else:
        own = (pair.key, pair.certificate) if pair is not None else (None, None)
        channel = grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(authority.pem, *own))
    async with channel:
        yield EstimatorClient(channel)
