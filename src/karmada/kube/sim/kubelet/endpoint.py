"""Kubelets for an API server that is not simulated: an HTTPS port of this process for every simulated node.

The API server connects here for logs, exec and port-forward, a metrics server for the usage of pods. Each node has its
own port, which its status names. Callers are authenticated by client certificate (signed by the cluster's authority) or
token, and authorised by the API server, as kubelets do it.
"""

from __future__ import annotations

import socket
import ssl
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, NODES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Controller, Done, Reconciler, Result, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.malformed_requests import shorten_malformed_requests
from karmada.kube.server.auth.peer import PeerCertificates
from karmada.kube.server.auth.pki import SERVER_USAGES, CertificateAuthority
from karmada.kube.server.auth.serving import server_context
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.request import Query
from karmada.kube.server.http.results import RawResult, TakeOver
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.kubelet.access import TEXT, PodAccess
from karmada.kube.sim.kubelet.answers import Answers
from karmada.kube.sim.kubelet.managed import internal_ip, is_managed
from karmada.kube.sim.kubelet.pages import KubeletPages
from karmada.kube.sim.metrics.load import LoadModel

TOKEN_REVIEWS = GVR("authentication.k8s.io", "v1", "tokenreviews")
ACCESS_REVIEWS = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
AUTHENTICATION = ("kube-system", "extension-apiserver-authentication")
_SUBRESOURCES = {"stats": "stats", "metrics": "metrics", "logs": "log", "spec": "spec"}
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_STOP_SECONDS = 1.0
_log = get_logger("kubelet-server")


class KubeletServer:
    """A component. `advertise` is the address at which the API server reaches this machine; empty: found out."""

    name = "kubelet-server"

    def __init__(
        self,
        context: Context,
        load: LoadModel,
        *,
        host: str = "0.0.0.0",
        advertise: str = "",
        answers: Answers | None = None,
    ) -> None:
        self._context = context
        self._client = context.client(KUBELET)
        self._host = host
        self.address = advertise or _own_address()
        self.answers = answers or Answers()
        self.access = PodAccess(context, self.answers)
        self._pages = KubeletPages(self.access, load)
        self._nodes = context.informers.of(NODES)
        self._runners: dict[str, web.ServerRunner] = {}
        self.ports: dict[str, int] = {}
        """Ports by node."""
        self._controller = Controller(_Ports(self), context.informers)
        self._tls: ssl.SSLContext | None = None
        self._peers = PeerCertificates(b"")

    async def start(self) -> None:
        authority = await self._client_authority()
        self._peers = PeerCertificates(authority)
        self._tls = self._serving(authority)
        await self._controller.start()

    async def stop(self) -> None:
        await self._controller.stop(_STOP_SECONDS)
        for node in list(self._runners):
            await self._close(node)

    async def _client_authority(self) -> bytes:
        """Who signs the cluster's client certificates; nothing where that cannot be read, so that only tokens count."""
        namespace, name = AUTHENTICATION
        try:
            found = await self._client.get(CONFIG_MAPS, name, namespace)
        except ApiError as error:
            _log.info("Cannot read who signs client certificates", err=error.message)
            return b""
        return str((found.get("data") or {}).get("client-ca-file") or "").encode()

    def _serving(self, authority: bytes) -> ssl.SSLContext:
        now = self._context.clock.now()
        own = CertificateAuthority.create("sim-kubelet-ca", now=now)
        pair = own.issue("sim-kubelet", sans=(self.address, "localhost", "127.0.0.1"), usages=SERVER_USAGES, now=now)
        tls = server_context(ssl.TLSVersion.TLSv1_2)
        tls.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            certificate.write_bytes(pair.cert_pem + own.cert_pem)
            key.touch(0o600)
            key.write_bytes(pair.key_pem)
            tls.load_cert_chain(certificate, key)
        if authority:
            tls.verify_mode = ssl.CERT_OPTIONAL
            tls.load_verify_locations(cadata=authority.decode())
        return tls

    # ports

    async def serve_node(self, name: str) -> None:
        """Open the port of a node and publish it in its status, or close it if the node is gone."""
        node = self._nodes.get(Key("", name))
        if node is None or not is_managed(node):
            await self._close(name)
            return
        if name not in self._runners:
            await self._listen(name)
        await self._publish_port(node)

    async def _listen(self, node: str) -> None:
        shorten_malformed_requests()
        server = web.Server(partial(self._serve, node), access_log=None, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=_STOP_SECONDS)
        await runner.setup()
        await web.TCPSite(runner, self._host, 0, ssl_context=self._tls, backlog=128).start()
        self._runners[node] = runner
        self.ports[node] = int(runner.addresses[0][1])

    async def _close(self, node: str) -> None:
        self.ports.pop(node, None)
        runner = self._runners.pop(node, None)
        if runner is not None:
            await runner.cleanup()

    async def _publish_port(self, node: Obj) -> None:
        name, port = meta.name(node), self.ports[meta.name(node)]
        endpoint = ((node.get("status") or {}).get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        if endpoint.get("Port") == port and internal_ip(node) == self.address:
            return
        status = {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "addresses": [{"type": "InternalIP", "address": self.address}],
        }
        try:
            await self._client.patch(NODES, name, "", {"status": status}, type="strategic", subresource="status")
        except NotFound:
            return

    # requests

    async def _serve(self, node: str, raw: web.BaseRequest) -> web.StreamResponse:
        path, _, query = raw.raw_path.partition("?")
        try:
            refusal = await self._refusal(node, raw, path)
            if refusal is not None:
                return refusal
            result = await self._pages.handle(node, path, Query.parse(query), raw.headers)
            if isinstance(result, TakeOver):
                answer: web.StreamResponse = await result.run(raw)
                return answer
            assert isinstance(result, RawResult)
            headers = {**result.headers, "Content-Type": result.content_type}
            return web.Response(body=result.body, status=result.status, headers=headers)
        except ApiError as error:
            return web.Response(text=error.message, status=error.http_code, content_type=TEXT)

    async def _refusal(self, node: str, raw: web.BaseRequest, path: str) -> web.Response | None:
        user = await self._caller(raw)
        if user is None:
            return web.Response(text="Unauthorized", status=401)
        verb = _VERBS.get(raw.method, raw.method.lower())
        subresource = _SUBRESOURCES.get(path.strip("/").split("/")[0], "proxy")
        attributes = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": subresource, "name": node}
        spec: Obj = {"user": user.name, "groups": list(user.groups), "uid": user.uid, "resourceAttributes": attributes}
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        body = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": "SubjectAccessReview", "spec": spec}
        answer = await self._client.create(ACCESS_REVIEWS, body, "")
        if (answer.get("status") or {}).get("allowed"):
            return None
        text = f"Forbidden (user={user.name}, verb={verb}, resource=nodes, subresource(s)=[{subresource}])"
        return web.Response(text=text, status=403)

    async def _caller(self, raw: web.BaseRequest) -> User | None:
        tls: Any = raw.transport.get_extra_info("ssl_object") if raw.transport is not None else None
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        if certificate is not None:
            peer = self._peers.identify(certificate)
            if peer.user is not None and peer.valid_at(self._context.clock.now()):
                return peer.user
        scheme, _, token = raw.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        body = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": "TokenReview", "spec": {"token": token.strip()}}
        status = (await self._client.create(TOKEN_REVIEWS, body, "")).get("status") or {}
        if not status.get("authenticated"):
            return None
        user = status.get("user") or {}
        extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
        return User(user.get("username") or "", user.get("uid") or "", tuple(user.get("groups") or ()), extra)


class _Ports(Reconciler):
    """Reconciles the open ports with the nodes."""

    name = "kubelet-ports"
    watches = (Watch(NODES),)

    def __init__(self, server: KubeletServer) -> None:
        self._server = server

    async def reconcile(self, key: Key) -> Result:
        await self._server.serve_node(key.name)
        return Done


def _own_address() -> str:
    """Return the machine's address on its default route; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
