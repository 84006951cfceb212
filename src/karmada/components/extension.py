"""A server of its own process behind the API server of a control plane: flags, certificates, delegated accounts, life.

Who a caller is and what it may do is decided by the control plane. What is served is up to the component, which fills
the server between `Extension(...)` and `start`.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from karmada.components.flags import Address, F, Given, file, switch, together
from karmada.components.front_proxy_flags import front_proxy_from, request_header_flags
from karmada.components.running import begin, errors_in_one_line, start_unless
from karmada.components.server_flags import audit_from, storage_from
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.server.auth.serving import TLS_VERSIONS, FollowedServing

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig
    from karmada.kube.objects.gvk import GroupVersion
    from karmada.kube.runtime.serving import Exposes, ObservabilityServer
    from karmada.kube.server.aggregation.backends import Inside
    from karmada.kube.server.auth.delegated import Trust
    from karmada.kube.server.config import ServerConfig

CERT_DIR: Final = Path("apiserver.local.config/certificates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Clients of the control plane: for its objects, for authentication, for authorisation."""

    objects: RestConfig
    callers: RestConfig
    rights: RestConfig


class Extension:
    """`trust` is added to the authorities that the control plane publishes, which are watched with `lookup`.

    `inside` serves group-versions that are not stored here. `scraped` is where /metrics is served without credentials,
    beside the page at the port of the server.
    """

    def __init__(
        self,
        config: ServerConfig,
        access: Access,
        tls: FollowedServing,
        *,
        trust: Trust,
        lookup: bool = True,
        inside: Callable[[Extension], tuple[Inside, Sequence[GroupVersion]]] | None = None,
        scraped: Address | None = None,
    ) -> None:
        from karmada.kube.client.client import Client
        from karmada.kube.client.http_transport import HttpTransport
        from karmada.kube.runtime.informers import Informers
        from karmada.kube.server.auth.delegated import DelegatedAuthenticator, DelegatedAuthorizer, FollowedTrust
        from karmada.kube.server.extension import ExtensionServer

        self.clock: Clock = RealClock()
        self._tls = tls
        self._following: asyncio.Task[None] | None = None
        self.started: list[Callable[[], Awaitable[None]]] = []
        """Work that begins once the server serves."""
        self.transport = HttpTransport(access.objects)
        self.control_plane = Client(self.transport)
        self._delegates = [Client(HttpTransport(way)) for way in (access.callers, access.rights)]
        self._callers = DelegatedAuthenticator(self._delegates[0], self.clock, anonymous=config.anonymous)
        self.rights = DelegatedAuthorizer(self._delegates[1], self.clock)
        self.server = ExtensionServer(
            config, self._callers, self.rights, tls.context, self.clock, inside(self) if inside else None
        )
        self.endpoint = _endpoint(scraped, self.server.metrics) if scraped else None
        self.informers = Informers(self.control_plane, clock=self.clock)
        self._published = Informers(self._delegates[0], clock=self.clock)
        self._believe(trust)
        if lookup:
            FollowedTrust(self._published, trust, self._believe)
        self.server.health.add("control-plane", lambda: self.informers.synced, pages=("readyz",))

    def _believe(self, trust: Trust) -> None:
        self._tls.trust(trust.pem)
        self._callers.believe(trust)

    async def start(self) -> None:
        """Wait until it serves, which waits for the authorities that the control plane publishes."""
        for informers in (self._published, self.informers):
            informers.start()
            await informers.wait_synced()
        if self.endpoint is not None:
            await self.endpoint.start()
        await self.server.start()
        self._following = asyncio.create_task(self._tls.follow(), name="certificates")
        for begin_part in self.started:
            await begin_part()

    async def stop(self) -> None:
        from karmada.kube.runtime.waiting import cancel_and_wait

        if self._following is not None:
            await cancel_and_wait(self._following)
        await self.server.stop()
        if self.endpoint is not None:
            await self.endpoint.stop()
        await self.informers.stop()
        await self._published.stop()
        for client in (self.control_plane, *self._delegates):
            await client.close()


def _endpoint(where: Address, metrics: Exposes) -> ObservabilityServer:
    from karmada.kube.runtime.health import Health
    from karmada.kube.runtime.serving import ObservabilityServer

    return ObservabilityServer(Health(), metrics, host=where[0], port=where[1])


# certificates


def followed_serving(
    service: str, certificate: Path | None, key: Path | None, directory: Path, minimum: str, clock: Clock
) -> FollowedServing:
    """Return the given certificate and key, else the directory's, made for the Service and renewed."""
    from karmada.kube.server.auth.own_serving import OwnServing

    if certificate is not None and key is not None:
        return FollowedServing(certificate, key, minimum, clock)
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), service, f"{service}.svc"]
    own = OwnServing(directory, service.partition(".")[0], names)
    return FollowedServing(*own.files, minimum, clock, own.renew)


# flags


delegation_flags = together(
    click.option("--kubeconfig", default="", help="Kubeconfig of the control plane.  [default: as kubectl]"),
    click.option(
        "--authentication-kubeconfig", default="", help="Kubeconfig for TokenReviews.  [default: --kubeconfig]"
    ),
    click.option(
        "--authorization-kubeconfig", default="", help="Kubeconfig for SubjectAccessReviews.  [default: --kubeconfig]"
    ),
    switch(
        "--authentication-skip-lookup",
        False,
        "Trust only the authorities of the flags below, not those that the control plane publishes in kube-system.",
    ),
    file("--client-ca-file", "Certificates (PEM) of the authority of client certificates."),
    request_header_flags,
)
"""Who decides about callers."""


def serving_flags_at(port: int, cert_dir: Path | None = CERT_DIR) -> Callable[[F], F]:
    """Return where it listens, and with which certificate; without a `cert_dir` a temporary directory has it."""
    temporary = "" if cert_dir is not None else "  [default: a temporary directory]"
    return together(
        click.option("--bind-address", default="0.0.0.0", help="Address to listen on."),
        click.option("--secure-port", default=port, help="Port to listen on; 0 takes a free one."),
        file(
            "--tls-cert-file",
            "Serving certificate (PEM), followed when it changes.  [default: made in --cert-dir]",
        ),
        file("--tls-private-key-file", "Key (PEM) of the serving certificate."),
        click.option(
            "--cert-dir",
            type=click.Path(file_okay=False, path_type=Path),
            default=cert_dir,
            help=f"Directory in which a certificate and its ca.crt are made when none is given.{temporary}",
        ),
        click.option(
            "--tls-min-version",
            type=click.Choice(list(TLS_VERSIONS)),
            default="VersionTLS12",
            help="Oldest TLS accepted.",
        ),
    )


serving_flags = serving_flags_at(443)


def run_extension(given: Given, make: Callable[[ServerConfig], Extension], title: str, scope: str = "") -> None:
    """Run a program that is an extension: what it stores (nothing, without `scope`) is where its flags say."""
    import uvloop

    from karmada.kube.server.config import ServerConfig

    with errors_in_one_line():
        config = ServerConfig(
            data_dir=given["cert_dir"],
            storage=_storage_of(given) if scope else "memory://",
            storage_scope=scope,
            host=given["bind_address"],
            port=given["secure_port"],
            audit=audit_from(given),
        )

        async def run() -> None:
            await serve(make(config), title, given)

        uvloop.run(run())


def _storage_of(given: Given) -> str:
    storage = storage_from(given)
    if not storage:
        raise click.UsageError("say where its objects are stored: --etcd-servers, or --storage")
    return storage


def access_from(given: Given) -> Access:
    """OSError, ValueError for kubeconfigs that cannot be used."""
    from karmada.kube.client.kubeconfig import load_config

    first = load_config(given["kubeconfig"] or None)
    return Access(
        objects=first,
        callers=load_config(given["authentication_kubeconfig"]) if given["authentication_kubeconfig"] else first,
        rights=load_config(given["authorization_kubeconfig"]) if given["authorization_kubeconfig"] else first,
    )


def tls_from(given: Given, service: str) -> FollowedServing:
    files = given["tls_cert_file"], given["tls_private_key_file"]
    return followed_serving(service, *files, given["cert_dir"], given["tls_min_version"], RealClock())


def trust_from(given: Given) -> Trust:
    """Return the authorities that the flags name."""
    from karmada.kube.server.auth.delegated import Trust

    def read(flag: str) -> bytes:
        return given[flag].read_bytes() if given[flag] else b""

    return Trust(read("client_ca_file"), front_proxy_from(given, read("requestheader_client_ca_file")))


def extension_from(
    given: Given,
    config: ServerConfig,
    service: str,
    inside: Callable[[Extension], tuple[Inside, Sequence[GroupVersion]]] | None = None,
    scraped: Address | None = None,
) -> Extension:
    """As the flags say. OSError, ValueError for files that cannot be used."""
    return Extension(
        config,
        access_from(given),
        tls_from(given, service),
        trust=trust_from(given),
        lookup=not given["authentication_skip_lookup"],
        inside=inside,
        scraped=scraped,
    )


# the process


async def serve(extension: Extension, title: str, given: Given) -> None:
    """Until interrupted; the title is printed with the address once it serves."""
    stopping = begin(verbosity=given["verbosity"], logging_format=given["logging_format"])
    try:
        if await start_unless(stopping, extension.start()):
            click.echo(f"{title} at {extension.server.url}")
            await stopping.wait()
        click.echo("Stopping", file=sys.stderr)
    finally:
        await extension.stop()
