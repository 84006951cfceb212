"""The API server, put together: store, cache, registry, security, admission, handlers, HTTP, controllers.

Every part is handed what it needs here and nowhere else. `ApiServer` starts in order (store, cache, default objects,
HTTP, controllers) and stops in reverse; `client` gives in-process access as any user.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.admission.chain import Chain, default_chain
from karmada.kube.server.admission.policies import ValidatingPolicies
from karmada.kube.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from karmada.kube.server.aggregation.aggregator import Aggregator
from karmada.kube.server.allocator import Allocator
from karmada.kube.server.audit import AuditLog
from karmada.kube.server.auth.authentication import Authenticator, parse_token_file
from karmada.kube.server.auth.frontproxy import authentication_config
from karmada.kube.server.auth.jwt import KeySet, SigningKey
from karmada.kube.server.auth.kubeconfig import write_kubeconfig
from karmada.kube.server.auth.peer import PeerCertificates
from karmada.kube.server.auth.pki import FRONT_PROXY_CLIENT, Pki
from karmada.kube.server.auth.rbac import Authorizer
from karmada.kube.server.auth.service_accounts import ServiceAccountTokens
from karmada.kube.server.auth.tokens import JWKS_PATH, TokenIssuer, openid_configuration
from karmada.kube.server.bodies import Bodies
from karmada.kube.server.cache import Cache, encode_value, storage_key
from karmada.kube.server.claims import Claims
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.controllers.builtin import BuiltinControllers
from karmada.kube.server.custom_resources import CustomResources
from karmada.kube.server.defaults import ensure_defaults
from karmada.kube.server.deletes import Deletes
from karmada.kube.server.discovery import Discovery
from karmada.kube.server.endpoints import Endpoints
from karmada.kube.server.handlers import Handlers
from karmada.kube.server.health import Health
from karmada.kube.server.http import HttpFront
from karmada.kube.server.inprocess import InProcess
from karmada.kube.server.kinds.cluster import NAMESPACE_RESOURCE, SYSTEM_NAMESPACE, default_objects, system_namespace
from karmada.kube.server.kinds.inventory import builtin_resources
from karmada.kube.server.metrics import RequestMetrics
from karmada.kube.server.openapi.v2 import OpenApiV2
from karmada.kube.server.openapi.v3 import OpenApiV3
from karmada.kube.server.pipeline import PathHandler, Pipeline
from karmada.kube.server.reads import Reads
from karmada.kube.server.registry import Registry
from karmada.kube.server.request import Request
from karmada.kube.server.results import RawResult, Result
from karmada.kube.server.service_routing import ServiceRouter
from karmada.kube.server.storage.maintenance import maintain
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.user import AUTHENTICATED, MASTERS, User
from karmada.kube.server.version import version_info
from karmada.kube.server.versions import Versions
from karmada.kube.server.webhook_client import WebhookClient
from karmada.kube.server.writes import Writes

LOOPBACK = User("system:apiserver", groups=(MASTERS, AUTHENTICATED))
_RBAC = [
    GroupResource("rbac.authorization.k8s.io", name)
    for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
]


class ApiServer:
    def __init__(self, config: ServerConfig, clock: Clock | None = None) -> None:
        self.config = config
        self.clock = clock or RealClock()
        self.port = 0
        self.definitions = Definitions.load(config.kubernetes_version)
        network = ipaddress.ip_network(config.service_cidr)
        self.pki = Pki.open(
            config.data_dir / "pki", service_ip=str(network[1]), extra_sans=_names(config), now=self.clock.now
        )
        self.store = open_store(config.storage or f"sqlite://{(config.data_dir / 'state.db').absolute()}")
        self.cache = Cache(self.store, self.clock, config.history)
        self.registry = Registry()
        self._security()
        self._requests()
        self._documents()
        self.custom_resources = CustomResources(self.registry, self.cache, self.webhooks.post)
        self.controllers = BuiltinControllers(self, elect=config.shares_storage) if config.controllers else None
        self.more_defaults: list[Obj] = []
        """Objects that parts plugged in before the start want to be there from the first second."""
        self.closing: list[Callable[[], Awaitable[None]]] = []
        """What those parts want to be done when the server has stopped."""
        self._ready = False
        self._tasks: list[asyncio.Task[None]] = []

    def _security(self) -> None:
        config, now = self.config, self.clock.now
        key = SigningKey(self.pki.signing_key_pem)
        self.issuer = TokenIssuer(key, config.service_account_issuer, now=now)
        self.keys = KeySet([key.public])
        self.authorizer = Authorizer(self.cache, self._rbac_version)
        audiences = (config.service_account_issuer,)
        self.authenticator = Authenticator(
            self.cache,
            now=now,
            peers=PeerCertificates(self.pki.ca.cert_pem, self.pki.front_proxy_ca.cert_pem),
            service_accounts=ServiceAccountTokens(self.keys, audiences, audiences, self.cache, now),
            static_tokens=parse_token_file(config.token_file.read_text()) if config.token_file else None,
            audiences=audiences,
            anonymous=config.anonymous,
        )

    def _rbac_version(self) -> int:
        return max(self.cache.collection(resource).changed for resource in _RBAC)

    def _requests(self) -> None:
        config, clock, cache = self.config, self.clock, self.cache
        self.claims = Claims(cache, clock) if config.shares_storage else None
        self.allocator = Allocator(cache, config.service_cidr, config.node_ports, self.claims)
        self.registry.add(builtin_resources(self.definitions, self.allocator, clock))
        self.webhooks = WebhookClient(ServiceRouter(cache))
        hooks = (MutatingWebhooks, ValidatingWebhooks)
        self.admission = default_chain(
            cache,
            self.authorizer,
            disabled=config.disabled_admission,
            clock=clock,
            others=[
                *(hook(cache, self.registry, self.webhooks, self.authorizer) for hook in hooks),
                ValidatingPolicies(cache, self.registry, self.authorizer),
            ],
        )
        versions = Versions()
        bodies = Bodies(self.definitions)
        reads = Reads(cache, versions)
        writes = Writes(cache, versions, self.admission, clock)
        deletes = Deletes(cache, versions, self.admission, writes, clock)
        self.handlers = Handlers(self.registry, bodies, reads, writes, deletes, clock, self._may_create)
        self.handlers.scaling.schema = lambda: self.definitions.node("io.k8s.api.autoscaling.v1.Scale")
        self.pipeline = Pipeline(self.registry, self.handlers, self.authorizer, cache.catch_up)
        unasked = Chain([])
        inner_writes = Writes(cache, versions, unasked, clock)
        self.endpoints = Endpoints(
            self.handlers,
            self.definitions,
            cache,
            self.authorizer,
            self.authenticator,
            self.issuer,
            clock,
            self.admission,
            inner_writes,
            Deletes(cache, versions, unasked, inner_writes, clock),
        )
        self.endpoints.install()
        self.metrics = RequestMetrics()
        self.audit = AuditLog(config.audit_log, clock) if config.audit_log else None
        record = self.audit.record if self.audit is not None else None
        self.http = HttpFront(self.pipeline, self.authenticator, self.authorizer, clock, self.metrics, record)

    def _may_create(self, request: Request) -> None:
        """For writes that turn out to create: the caller needs that right, too."""
        info = request.info
        verb, info.verb = info.verb, "create"
        try:
            self.pipeline.authorize(request)
        finally:
            info.verb = verb

    def _documents(self) -> None:
        config = self.config
        self.health = Health()
        self.health.add("etcd", lambda: self.store.last_error is None)
        self.health.add("watch-cache", lambda: self.cache.alive)
        self.health.add("informer-sync", lambda: self._ready, pages=("readyz",))
        self.health.add("shutdown", lambda: self._ready, pages=("readyz",))
        self.aggregator = Aggregator(
            self.client(user_agent="kube-aggregator"),
            self.cache,
            self.registry,
            front_proxy=self.pki.front_proxy_client_files,
            clock=self.clock,
        )
        self.pipeline.delegate = self.aggregator
        self.discovery = Discovery(
            self.registry,
            lambda: f"{self.advertised}:{self.port}",
            self.aggregator.remote_versions,
            lambda: self.aggregator.generation,
        )
        self.openapi_v2 = OpenApiV2(self.registry, self.definitions, config.git_version)
        self.openapi_v3 = OpenApiV3(self.registry, self.definitions, self.clock, config.git_version)
        self.openapi_v3.remote = self.aggregator.openapi_documents
        version = orjson.dumps(version_info(config.kubernetes_version))
        jwks = orjson.dumps(self.keys.jwks())
        paths, prefixes = self.pipeline.paths, self.pipeline.prefixes
        paths["/version"] = _static(version)
        paths[JWKS_PATH] = _static(jwks, "application/jwk-set+json")
        paths["/.well-known/openid-configuration"] = self._openid
        paths["/metrics"] = self._metrics
        self.metrics.gauges["apiserver_storage_objects"] = self._object_counts
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

    @property
    def kubeconfig(self) -> Path:
        return self.config.data_dir / "admin.kubeconfig"

    def client(self, user: User = LOOPBACK, *, user_agent: str = "kube-apiserver") -> Client:
        """In-process access as a user."""
        return Client(InProcess(self.pipeline, user, user_agent=user_agent))

    async def start(self) -> None:
        await self.store.open()
        await self.cache.start()
        await self._take_identity()
        services = self.cache.collection(GroupResource("", "services"))
        self._tasks = [
            asyncio.create_task(maintain(self.store, self.clock), name="store maintenance"),
            asyncio.create_task(self.allocator.follow(services), name="service addresses"),
        ]
        await self.custom_resources.start()
        self.port = await self.http.start(self.config.host, self.config.port, self.tls())
        await ensure_defaults(self.client(), self.registry, self.cache, self._default_objects())
        ca, admin = self.pki.ca, self.pki.admin
        write_kubeconfig(self.kubeconfig, self.url, ca.cert_pem, admin.cert_pem, admin.key_pem, self.config.context)
        await self.aggregator.start()
        if self.controllers is not None:
            await self.controllers.start()
        self._ready = True

    async def _take_identity(self) -> None:
        """Make kube-system before anything else does, so that its uid is the configured one."""
        wanted = self.config.cluster_id
        if wanted and self.cache.get(NAMESPACE_RESOURCE, "", SYSTEM_NAMESPACE) is None:
            namespace = system_namespace(wanted, self.clock.now())
            key = storage_key(NAMESPACE_RESOURCE, "", SYSTEM_NAMESPACE)
            await self.store.write(key, encode_value(namespace), expected=0)
            await self.cache.fresh()

    async def stop(self) -> None:
        self._ready = False
        if self.controllers is not None:
            await self.controllers.stop()
        await self.aggregator.stop()
        await self.custom_resources.stop()
        self.cache.end_watches()
        await self.http.stop()
        await self.webhooks.close()
        await cancel_and_wait(*self._tasks)
        for close in self.closing:
            await close()
        await self.cache.stop()
        await self.store.close()
        if self.audit is not None:
            self.audit.close()

    def tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(*self.pki.serving_files)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.pki.client_ca_pem.decode())
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _default_objects(self) -> list[Obj]:
        objects = default_objects(
            host=self.advertised,
            port=self.port,
            service_cidr=self.config.service_cidr,
            definitions=self.definitions,
        )
        proxies = authentication_config(self.pki.ca.cert_pem, self.pki.front_proxy_ca.cert_pem, [FRONT_PROXY_CLIENT])
        return [*objects, proxies, *self.more_defaults]

    async def _root(self, _request: Request) -> Result:
        served = {path for path in self.pipeline.paths if path.startswith("/") and path != "/"}
        return RawResult(orjson.dumps({"paths": sorted(served | set(self.discovery.paths()))}))

    async def _openid(self, _request: Request) -> Result:
        return RawResult(orjson.dumps(openid_configuration(self.issuer.issuer, self.keys, self.url)))

    def _object_counts(self) -> list[tuple[dict[str, str], float]]:
        return [({"resource": str(r)}, self.cache.collection(r).count) for r in self.registry.stored()]

    async def _metrics(self, _request: Request) -> Result:
        return RawResult(self.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")


def _names(config: ServerConfig) -> tuple[str, ...]:
    own = [name for name in (config.advertise_host, config.host) if name and name not in ("0.0.0.0", "::")]
    return (*own, *config.extra_sans)


def _static(body: bytes, content_type: str = "application/json") -> PathHandler:
    async def handle(_request: Request) -> Result:
        return RawResult(body, content_type)

    return handle
