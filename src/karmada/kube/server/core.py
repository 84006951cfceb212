"""What every API server here is made of: store, cache, registry, handlers, HTTP, documents.

`ServerCore` knows no kind and no account. Authentication and authorisation are passed in; kinds are added to its
registry and endpoints to its handlers before it starts. `app.ApiServer` makes a Kubernetes of it, and
`extension.ExtensionServer` a server of a few kinds behind another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

import orjson

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.follow_ups import FollowUps
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.audit.trail import Auditor, open_auditor
from karmada.kube.server.auth.files import private_directory
from karmada.kube.server.auth.interface import Decides, Identifies
from karmada.kube.server.auth.user import AUTHENTICATED, MASTERS, User
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.flowcontrol.control import FlowControl
from karmada.kube.server.handlers.deletes import Deletes
from karmada.kube.server.handlers.discovery import Discovery, RemoteVersion, aggregated_forms
from karmada.kube.server.handlers.dispatch import Handlers
from karmada.kube.server.handlers.fencing import Fencing
from karmada.kube.server.handlers.group_creates import GroupCreates
from karmada.kube.server.handlers.pipeline import PathHandler, Pipeline
from karmada.kube.server.handlers.reads import Reads
from karmada.kube.server.handlers.writes import Writes
from karmada.kube.server.http.bodies import Bodies
from karmada.kube.server.http.front import HttpFront
from karmada.kube.server.http.health import Health
from karmada.kube.server.http.inprocess import InProcess
from karmada.kube.server.http.metrics import RequestMetrics
from karmada.kube.server.http.negotiation import check_produced
from karmada.kube.server.http.protobuf_form import ProtobufForm
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result
from karmada.kube.server.http.version import version_info
from karmada.kube.server.openapi.v2 import OpenApiV2
from karmada.kube.server.openapi.v3 import OpenApiV3
from karmada.kube.server.registry import Registry
from karmada.kube.server.storage.encryption import PLAIN, Encryption, make_configuration, read_encryption
from karmada.kube.server.storage.interface import StoreFull
from karmada.kube.server.storage.maintenance import maintain
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.watchcache.cache import Cache

LOOPBACK_AGENT = "kube-apiserver"
LOOPBACK = User("system:apiserver", groups=(MASTERS, AUTHENTICATED))


class ServerCore:
    def __init__(self, config: ServerConfig, clock: Clock | None = None) -> None:
        self.config = config
        self.clock = clock or RealClock()
        self.port = 0
        self.definitions = Definitions.load(config.kubernetes_version)
        storage = config.storage_url
        self.store = open_store(storage, accept_loss=config.accept_loss, encryption=_encryption(config, storage))
        self.registry = Registry()
        self.cache = Cache(
            self.store, self.clock, config.history, scope=config.storage_scope, seldom_read=self.registry.seldom_read
        )
        self.closing: list[Callable[[], Awaitable[None]]] = []
        """Callbacks of parts that are plugged in, for when the server has stopped."""
        self._ready = False
        self._tasks: list[asyncio.Task[None]] = []

    # put together

    def _answer_requests(self, callers: Identifies, rights: Decides, admission: Chain, flow: FlowControl) -> None:
        clock, cache = self.clock, self.cache
        self.admission = admission
        self.follow_ups = FollowUps()
        writes = Writes(cache, admission, clock, self.follow_ups)
        deletes = Deletes(cache, admission, writes, clock)
        reads, bodies = Reads(cache), Bodies(self.definitions)
        groups = GroupCreates(cache, admission, writes, clock)
        self.handlers = Handlers(self.registry, bodies, reads, writes, deletes, groups, clock, self._may_create)
        self.handlers.scaling.schema = lambda: self.definitions.node("io.k8s.api.autoscaling.v1.Scale")
        self.pipeline = Pipeline(self.registry, self.handlers, rights, cache.catch_up)
        self.metrics = RequestMetrics()
        self.audit = open_auditor(self.config.audit, clock, self._decoded_body)
        if self.audit is not None:
            self.pipeline.takes_groups = False
            self._count_audit(self.audit)
        protobuf = ProtobufForm(self.definitions)
        self.http = HttpFront(self.pipeline, callers, rights, clock, self.metrics, protobuf, flow, self.audit)

    def _fence_writes(self) -> None:
        """For a server that has Leases."""
        fencing = self.pipeline.fencing = self.handlers.writes.fencing = Fencing(self.cache)
        self.metrics.gauges["apiserver_fenced_writes_total"] = lambda: [({}, fencing.refused)]

    def _count_audit(self, audit: Auditor) -> None:
        self.metrics.gauges["apiserver_audit_event_total"] = audit.counts
        self.metrics.gauges["apiserver_audit_error_total"] = audit.losses

    def _decoded_body(self, request: Request) -> Obj | None:
        """For the audit log: a body in protobuf; None for what cannot be read."""
        resource = self.registry.get(request.info.gvr)
        if resource is None:
            return None
        try:
            parsed, _ = self.handlers.bodies.parse(request, resource.gvk, custom=resource.custom)
        except ApiError:
            return None
        return parsed if isinstance(parsed, dict) else None

    async def _may_create(self, request: Request) -> None:
        """For writes that turn out to create: the caller needs that right, too."""
        info = request.info
        verb, info.verb = info.verb, "create"
        try:
            await self.pipeline.authorize(request)
        finally:
            info.verb = verb

    def _describe(
        self,
        remote: Callable[[], Iterable[RemoteVersion]] = tuple,
        remote_generation: Callable[[], int] = lambda: 0,
    ) -> None:
        """Discovery, OpenAPI, health and metrics; `remote` is what other servers answer for under this address."""
        config = self.config
        self.health = Health()
        self.health.add("etcd", lambda: self.store.last_error is None or self._space_exceeded())
        self.health.add("storage-space", lambda: not self._space_exceeded(), pages=("readyz",))
        self.health.add("watch-cache", lambda: self.cache.alive)
        self.health.add("informer-sync", lambda: self._ready, pages=("readyz",))
        self.health.add("shutdown", lambda: self._ready, pages=("readyz",))
        self.discovery = Discovery(
            self.registry, lambda: f"{self.advertised}:{self.port}", remote, remote_generation,
            forms=aggregated_forms(config.kubernetes_version),
        )  # fmt: skip
        self.openapi_v2 = OpenApiV2(self.registry, self.definitions, config.git_version)
        self.openapi_v3 = OpenApiV3(self.registry, self.definitions, self.clock, config.git_version)
        paths, prefixes = self.pipeline.paths, self.pipeline.prefixes
        paths["/version"] = static(orjson.dumps(version_info(config.kubernetes_version)))
        paths["/metrics"] = self._metrics
        self.metrics.gauges["apiserver_storage_objects"] = self._object_counts
        self.metrics.gauges["apiserver_storage_space_exceeded"] = lambda: [({}, float(self._space_exceeded()))]
        paths["/openapi/v2"] = self.openapi_v2.handle
        paths["/openapi/v3"] = self.openapi_v3.handle
        paths["/"] = paths[""] = self._root
        paths["/api"] = paths["/apis"] = self.discovery.handle
        prefixes |= {
            "/openapi/v3/": self.openapi_v3.handle,
            "/api/": self.discovery.handle,
            "/apis/": self.discovery.handle,
        }
        for page in ("healthz", "livez", "readyz"):
            paths[f"/{page}"] = prefixes[f"/{page}/"] = self.health.handle

    @property
    def advertised(self) -> str:
        return self.config.advertise_host or self.config.host

    @property
    def url(self) -> str:
        return f"https://{self.advertised}:{self.port}"

    def client(self, user: User | None = None, *, user_agent: str = LOOPBACK_AGENT) -> Client:
        """In-process access as a user; by default as the part of this process that the agent names."""
        if user is None:
            part = user_agent.partition("/")[0]
            user = LOOPBACK if part == LOOPBACK_AGENT else replace(LOOPBACK, name=f"system:{part}")
        return Client(InProcess(self.pipeline, user, user_agent=user_agent, audit=self.audit))

    # life

    async def _open_store(self) -> None:
        await self.store.open()
        await self.cache.start()
        self._tasks.append(asyncio.create_task(maintain(self.store, self.clock), name="store maintenance"))

    async def _close(self) -> None:
        """Take no more requests, then close everything: the last part of a stop."""
        self.cache.end_watches()
        await self.http.stop()
        await cancel_and_wait(*self._tasks)
        self._tasks.clear()
        for close in self.closing:
            await close()
        await self.cache.stop()
        await self.store.close()
        if self.audit is not None:
            await self.audit.close()

    # pages

    async def _root(self, _request: Request) -> Result:
        served = {path for path in self.pipeline.paths if path.startswith("/") and path != "/"}
        return RawResult(orjson.dumps({"paths": sorted(served | set(self.discovery.paths()))}))

    def _space_exceeded(self) -> bool:
        """Only deletions are accepted; it serves, so it is alive, but it is not ready for everything."""
        return isinstance(self.store.last_error, StoreFull)

    def _object_counts(self) -> list[tuple[dict[str, str], float]]:
        """-1 for what is still in the store only, as kube-apiserver has for what it cannot count."""
        found = ((resource, self.cache.collection(resource)) for resource in self.registry.stored())
        return [({"resource": str(r)}, -1 if collection.unloaded else collection.count) for r, collection in found]

    async def _metrics(self, _request: Request) -> Result:
        return RawResult(*self.metrics.expose())


def _encryption(config: ServerConfig, storage: str) -> Encryption:
    """As configured; servers that share a store need the same file, so none is made for them."""
    if config.encryption_config is not None:
        return read_encryption(config.encryption_config)
    path = config.data_dir / "pki" / "encryption.yaml"
    if storage.startswith("sqlite:"):
        private_directory(path.parent)
        make_configuration(path, config.encrypted_resources)
    return read_encryption(path) if path.exists() and not storage.startswith("memory:") else PLAIN


def static(body: bytes, content_type: str = "application/json") -> PathHandler:
    """Return a page that is always the same."""

    async def handle(request: Request) -> Result:
        if not request.in_process:
            check_produced(request.headers.get("Accept", ""), (content_type,))
        return RawResult(body, content_type)

    return handle
