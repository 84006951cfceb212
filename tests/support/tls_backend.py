"""For tests of what calls other servers: a real TLS server on loopback, and current state in a dict."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

from aiohttp import web

from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.auth.pki import SERVER_USAGES, CertificateAuthority, KeyPair
from karmada.kube.server.registry import Registry
from tests.support.objects import kube_object
from tests.support.reader import FakeReader

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@cache
def authority(name: str = "backends") -> CertificateAuthority:
    return CertificateAuthority.create(name)


@cache
def serving(*names: str) -> KeyPair:
    return authority().issue(
        "backend", sans=names or ("127.0.0.1", "localhost", "hook.tools.svc"), usages=SERVER_USAGES
    )


def load(context: ssl.SSLContext, pair: KeyPair) -> None:
    """ssl wants files."""
    with tempfile.TemporaryDirectory() as directory:
        context.load_cert_chain(*write(pair, Path(directory)))


def write(pair: KeyPair, directory: Path, name: str = "leaf") -> tuple[Path, Path]:
    cert, key = directory / f"{name}.crt", directory / f"{name}.key"
    cert.write_bytes(pair.cert_pem)
    key.write_bytes(pair.key_pem)
    return cert, key


class TlsBackend:
    """Responds with `handler`, which a test sets; with `client_ca` it requests client certificates."""

    def __init__(self, pair: KeyPair | None = None, client_ca: bytes = b"") -> None:
        self._pair = pair or serving()
        self._client_ca = client_ca
        self.handler: Handler | None = None
        self.port = 0
        self.connections: set[Any] = set()

    async def __aenter__(self) -> TlsBackend:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load(context, self._pair)
        if self._client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self._client_ca.decode())
        self._runner = web.ServerRunner(web.Server(self._serve, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, raw: web.BaseRequest) -> web.StreamResponse:
        self.connections.add(raw.transport)
        assert self.handler is not None
        return await self.handler(raw)


@cache
def builtin_registry() -> Registry:
    registry = Registry()
    registry.add(builtin_resources(Definitions.load("1.36")))
    return registry


class State(FakeReader):
    def put(self, obj: Obj) -> Obj:
        resource = resource_of(obj)
        stored = copy_json(obj)
        resource.strategy.default(stored)
        return self.store(resource.storage_resource, stored)

    def remove(self, resource: GroupResource, namespace: str, name: str) -> None:
        del self.objects[resource, namespace, name]


def resource_of(obj: Obj) -> Resource:
    resource = builtin_registry().by_kind(GVK.parse(obj["apiVersion"], obj["kind"]))
    assert resource is not None, obj
    return resource


def service(name: str, namespace: str, **spec: Any) -> Obj:
    return kube_object("v1", "Service", name, namespace, spec=spec)


def endpoint_slice(service_name: str, namespace: str, port: int, *, ready: bool = True, port_name: str = "") -> Obj:
    labels = {"kubernetes.io/service-name": service_name}
    return kube_object("discovery.k8s.io/v1", "EndpointSlice", f"{service_name}-abc", namespace, labels=labels) | {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}],
        "ports": [{"name": port_name, "port": port, "protocol": "TCP"}],
    }
