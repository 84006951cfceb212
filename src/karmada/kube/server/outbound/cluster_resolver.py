"""Names of a simulated cluster's Services for aiohttp, in programs that run as its processes (see cluster_names)."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from karmada.kube.client import cluster_names


def cluster_resolver() -> AbstractResolver | None:
    """None, which is aiohttp's own, in every other program."""
    return _ClusterResolver() if cluster_names.enabled() else None


class _ClusterResolver(AbstractResolver):
    def __init__(self) -> None:
        self._other = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = cluster_names.lookup(host, port)
        if not found:
            return await self._other.resolve(host, port, family)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=number,
                family=socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address, number in found
        ]

    async def close(self) -> None:
        await self._other.close()
