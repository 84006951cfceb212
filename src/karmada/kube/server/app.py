"""The API server, put together: store, cache, registry, security, admission, handlers, HTTP, controllers.

Every part is handed what it needs here and nowhere else; what a server has whatever it serves is in core.py.
`ApiServer` starts in order (store, cache, default objects, HTTP, controllers) and stops in reverse; `client` gives
in-process access as any user.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path

import orjson

from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.addresses.allocator import Allocator
from karmada.kube.server.addresses.claims import Claims
from karmada.kube.server.addresses.service_routing import ServiceRouter
from karmada.kube.server.admission.chain import Chain, default_chain
from karmada.kube.server.admission.mutating_policies import MutatingPolicies
from karmada.kube.server.admission.policies import ValidatingPolicies
from karmada.kube.server.admission.quota_status import record_usage
from karmada.kube.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from karmada.kube.server.aggregation.aggregator import Aggregator
from karmada.kube.server.auth.authentication import Authenticator, TokenSource, parse_token_file
from karmada.kube.server.auth.credentials import Credentials
from karmada.kube.server.auth.frontproxy import authentication_config
from karmada.kube.server.auth.jwt import KeySet, PublicKey, SigningKey, public_keys
from karmada.kube.server.auth.kubeconfig import write_kubeconfig
from karmada.kube.server.auth.peer import PeerCertificates
from karmada.kube.server.auth.pki import Pki
from karmada.kube.server.auth.rbac import Authorizer, RbacChanges
from karmada.kube.server.auth.service_accounts import ServiceAccountTokens
from karmada.kube.server.auth.tokens import JWKS_PATH, TokenIssuer, openid_configuration
from karmada.kube.server.bootstrap.objects import (
    NAMESPACE_RESOURCE,
    SYSTEM_NAMESPACE,
    default_objects,
    system_namespace,
)
from karmada.kube.server.bootstrap.reconcile import Defaults
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.controllers.builtin import BuiltinControllers
from karmada.kube.server.core import LOOPBACK, ServerCore, static
from karmada.kube.server.crds.serving import CustomResources
from karmada.kube.server.flowcontrol.control import FlowControl
from karmada.kube.server.handlers.deletes import Deletes
from karmada.kube.server.handlers.endpoints import Endpoints
from karmada.kube.server.handlers.writes import Writes
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result
from karmada.kube.server.outbound.webhooks import WebhookClient
from karmada.kube.server.storage.interface import StoreDamaged
from karmada.kube.server.storage.sqlite import SqliteStore
from karmada.kube.server.watchcache.cache import encode_value, storage_key

__all__ = ["LOOPBACK", "ApiServer"]


class ApiServer(ServerCore):
    def __init__(self, config: ServerConfig, clock: Clock | None = None) -> None:
        super().__init__(config, clock)
        network = ipaddress.ip_network(config.service_cidr)
        self.pki = Pki.open(
            config.data_dir / "pki", service_ip=str(network[1]), extra_sans=_names(config), now=self.clock.now
        )
        self.credentials = Credentials(self.pki, config.tls, config.front_proxy, self.clock, self._credentials_changed)
        self._security()
        self._requests()
        self._documents()
        self.custom_resources = CustomResources(self.registry, self.cache, self.webhooks.post)
        self.controllers = BuiltinControllers(self, elect=config.shares_storage) if config.controllers else None
        version = config.kubernetes_version
        self._defaults = Defaults(self.client(), self.registry, self.cache, self.clock, version)
        self.more_defaults: list[Obj] = []
        """Objects that parts plugged in before the start want to be there from the first second."""
        self.published: list[Callable[[], Obj]] = [self._published_authorities]
        """Objects with the server's address or authorities: made at the start and when certificates change."""

    def _security(self) -> None:
        config, now = self.config, self.clock.now
        key, self.keys = _token_keys(config, self.pki)
        self.issuer = TokenIssuer(key, config.service_account_issuer, now=now)
        self.peers = PeerCertificates(self.credentials.client_ca_pem, self.credentials.proxies.ca_pem)
        self.authorizer = Authorizer(self.cache, RbacChanges(self.cache))
        audiences = (config.service_account_issuer,)
        self.authenticator = Authenticator(
            self.cache,
            now=now,
            peers=self.peers,
            service_accounts=ServiceAccountTokens(self.keys, audiences, audiences, self.cache, now),
            static_tokens=parse_token_file(config.token_file.read_text()) if config.token_file else None,
            audiences=audiences,
            front_proxy=self.credentials.proxies,
            bootstrap=config.bootstrap_tokens,
            anonymous=config.anonymous,
            sources=self._token_sources(audiences),
        )

    def _token_sources(self, audiences: tuple[str, ...]) -> list[TokenSource]:
        """Modules of sources that are not configured are not loaded."""
        config, sources = self.config, list[TokenSource]()
        if config.oidc is not None:
            from karmada.kube.server.auth.oidc import OidcTokens

            sources.append(OidcTokens(config.oidc, audiences, self.clock))
        if config.token_webhook is not None:
            from karmada.kube.server.auth.token_webhook import WebhookTokens

            sources.append(WebhookTokens(config.token_webhook, audiences, self.clock))
        self.closing += [source.close for source in sources]
        return sources

    def _requests(self) -> None:
        config, clock, cache = self.config, self.clock, self.cache
        self.claims = Claims(cache, clock) if config.shares_storage else None
        self.allocator = Allocator(cache, config.service_cidr, config.node_ports, self.claims)
        self.registry.add(builtin_resources(self.definitions, self.allocator.reserve, clock))
        self.webhooks = WebhookClient(ServiceRouter(cache))
        self.closing.append(self.webhooks.close)
        hooks = (MutatingWebhooks, ValidatingWebhooks)
        admission = default_chain(
            cache,
            self.authorizer,
            disabled=config.disabled_admission,
            clock=clock,
            configuration=config.admission_configuration,
            record_usage=lambda quota, extra: record_usage(self.client(), quota, extra),
            others=[
                *(hook(cache, self.registry, self.webhooks, self.authorizer) for hook in hooks),
                MutatingPolicies(cache, self.registry, self.authorizer),
                ValidatingPolicies(cache, self.registry, self.authorizer),
            ],
        )
        self._answer_requests(self.authenticator, self.authorizer, admission, FlowControl(cache))
        self._fence_writes()
        unasked = Chain([])
        inner_writes = Writes(cache, unasked, clock)
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
            Deletes(cache, unasked, inner_writes, clock),
        )
        self.endpoints.install()

    def _documents(self) -> None:
        self.aggregator = Aggregator(
            self.client(user_agent="kube-aggregator"),
            self.cache,
            self.registry,
            front_proxy=self.credentials.front_proxy_client_files,
            clock=self.clock,
        )
        self.pipeline.delegate = self.aggregator
        self._describe(self.aggregator.remote_versions, lambda: self.aggregator.generation)
        self.openapi_v3.remote = self.aggregator.openapi_documents
        paths = self.pipeline.paths
        paths[JWKS_PATH] = self._jwks
        paths["/.well-known/openid-configuration"] = self._openid

    @property
    def kubeconfig(self) -> Path:
        return self.config.data_dir / "admin.kubeconfig"

    async def start(self) -> None:
        await self._open_store()
        await self._check_state_is_there()
        await self._take_identity()
        services = self.cache.collection(GroupResource("", "services"))
        self._tasks.append(asyncio.create_task(self.allocator.follow(services), name="service addresses"))
        await self.custom_resources.start()
        self.port = await self.http.start(self.config.host, self.config.port, self.tls())
        await self._defaults.ensure(self._default_objects())
        self._write_kubeconfig()
        self._tasks.append(asyncio.create_task(self.credentials.follow(), name="certificates"))
        await self.aggregator.start()
        self._ready = True  # for requests; controllers that have to look at every object take longer
        if self.controllers is not None:
            await self.controllers.start()

    async def _check_state_is_there(self) -> None:
        """Refuse to give a data directory that has served a new, empty state: clients have its certificates."""
        if not isinstance(self.store, SqliteStore) or self.store.revision or self.config.accept_loss:
            return
        if self.kubeconfig.exists():
            raise StoreDamaged(
                f"{self.store.path} is empty, but {self.kubeconfig} shows that {self.config.data_dir} had a state: "
                "restore a backup with karmadactl restore, or start anew in it with --accept-loss"
            )

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
        await self._close()

    def tls(self) -> ssl.SSLContext:
        return self.credentials.context

    def _write_kubeconfig(self) -> None:
        admin, root = self.pki.admin, self.credentials.root_pem
        write_kubeconfig(self.kubeconfig, self.url, root, admin.cert_pem, admin.key_pem, self.config.context)

    async def _credentials_changed(self) -> None:
        self.pki = self.credentials.pki
        self.peers.trust(self.credentials.client_ca_pem, self.credentials.proxies.ca_pem)
        self.aggregator.reload_certificate()
        self._write_kubeconfig()
        await self._defaults.ensure([publish() for publish in self.published])

    def _published_authorities(self) -> Obj:
        """Return the authorities by which aggregated servers know this server's users and this server itself."""
        return authentication_config(self.credentials.client_ca_pem, self.credentials.proxies)

    def _default_objects(self) -> list[Obj]:
        objects = default_objects(
            host=self.advertised,
            port=self.port,
            service_cidr=self.config.service_cidr,
            definitions=self.definitions,
        )
        return [*objects, *(publish() for publish in self.published), *self.more_defaults]

    async def _jwks(self, request: Request) -> Result:
        return await static(orjson.dumps(self.keys.jwks()), "application/jwk-set+json")(request)

    async def _openid(self, _request: Request) -> Result:
        return RawResult(orjson.dumps(openid_configuration(self.issuer.issuer, self.keys, self.url)))


def _token_keys(config: ServerConfig, pki: Pki) -> tuple[SigningKey, KeySet]:
    """Return what signs the tokens of ServiceAccounts, and what they are verified with; ValueError names a bad file."""
    given = config.service_account_signing_key_file
    signing = SigningKey(pki.signing_key_pem if given is None else given.read_bytes())
    accepted: list[PublicKey] = []
    for path in (*(() if given is None else (given,)), *config.service_account_key_files):
        try:
            accepted += public_keys(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}: give an RSA or EC P-256 key in PEM") from error
    others = {key.kid: key for key in accepted if key.kid != signing.public.kid}
    return signing, KeySet([signing.public, *others.values()])


def _names(config: ServerConfig) -> tuple[str, ...]:
    own = [name for name in (config.advertise_host, config.host) if name and name not in ("0.0.0.0", "::")]
    return (*own, *config.extra_sans)
