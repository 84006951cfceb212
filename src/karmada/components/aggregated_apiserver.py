"""`karmada-aggregated-apiserver`: clusters and their proxy, for a control plane whose API server is a kube-apiserver.

It serves the group cluster.karmada.io and nothing else, behind an APIService of the control plane. Accounts, roles and
the Secrets of the clusters are the control plane's; the clusters themselves are stored here. The embedded API server
has all this built in and does not need it.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from karmada.components.flags import (
    F,
    Given,
    feature_gates_flag,
    file,
    gates_from,
    ignored,
    insecure_members_flag,
    logging_flags,
    switch,
    together,
    words,
)
from karmada.components.program import CONTEXT, Program
from karmada.components.server_flags import audit_flags, audit_from, etcd_flags, storage_from
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.server.auth.serving import TLS_VERSIONS, FollowedServing

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig
    from karmada.kube.objects.types import Obj
    from karmada.kube.runtime.features import FeatureGates
    from karmada.kube.server.auth.delegated import Trust
    from karmada.kube.server.config import ServerConfig
    from karmada.kube.server.http.request import Request
    from karmada.kube.server.http.results import Result

SERVICE: Final = "karmada-aggregated-apiserver.karmada-system"
GROUP: Final = "cluster.karmada.io"
CERT_DIR: Final = Path("apiserver.local.config/certificates")
_KEPT_KEYS: Final = ("token", "caBundle", "kubeconfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Clients of the control plane: for Secrets, for authentication, for authorisation."""

    secrets: RestConfig
    callers: RestConfig
    rights: RestConfig


class AggregatedApiServer:
    """`trust` is added to the authorities that the control plane publishes, which are watched with `lookup`."""

    def __init__(
        self,
        config: ServerConfig,
        access: Access,
        tls: FollowedServing,
        gates: FeatureGates,
        *,
        trust: Trust,
        lookup: bool = True,
        allow_insecure_members: bool = False,
    ) -> None:
        from karmada.apiserver.mount import mount_clusters
        from karmada.joining.objects import SECRETS
        from karmada.kube.client.client import Client
        from karmada.kube.client.light import transport_for
        from karmada.kube.runtime.informers import Informers
        from karmada.kube.server.auth.delegated import DelegatedAuthenticator, DelegatedAuthorizer, FollowedTrust
        from karmada.kube.server.extension import ExtensionServer

        clock = RealClock()
        self._tls = tls
        self._following: asyncio.Task[None] | None = None
        self._transport = transport_for(access.secrets)
        self._control_plane = Client(self._transport)
        self._delegates = [Client(transport_for(way)) for way in (access.callers, access.rights)]
        self._callers = DelegatedAuthenticator(self._delegates[0], clock, anonymous=config.anonymous)
        rights = DelegatedAuthorizer(self._delegates[1], clock)
        self.server = ExtensionServer(config, self._callers, rights, tls.context, clock)
        self._informers = Informers(self._control_plane, clock=clock)
        self._published = Informers(self._delegates[0], clock=clock)
        self._secrets = self._informers.of(SECRETS, transform=_credentials)
        self._believe(trust)
        if lookup:
            FollowedTrust(self._published, trust, self._believe)
        models = gates.enabled("CustomizedClusterResourceModeling")
        mount_clusters(
            self.server,
            rights,
            models=models,
            allow_insecure=allow_insecure_members,
            secret=self._secret,
            local=self._local,
        )
        self.server.health.add("control-plane", lambda: self._informers.synced, pages=("readyz",))

    def _believe(self, trust: Trust) -> None:
        self._tls.trust(trust.pem)
        self._callers.believe(trust)

    async def start(self) -> None:
        """Returns when it serves, which waits for the authorities that the control plane publishes."""
        for informers in (self._published, self._informers):
            informers.start()
            await informers.wait_synced()
        await self.server.start()
        self._following = asyncio.create_task(self._tls.follow(), name="certificates")

    async def stop(self) -> None:
        from karmada.kube.runtime.waiting import cancel_and_wait

        if self._following is not None:
            await cancel_and_wait(self._following)
        await self.server.stop()
        await self._informers.stop()
        await self._published.stop()
        for client in (self._control_plane, *self._delegates):
            await client.close()

    async def _secret(self, namespace: str, name: str) -> Obj | None:
        """A Secret; read from the server if the cache does not have it yet."""
        from karmada.apiserver.members import plain
        from karmada.joining.objects import SECRETS
        from karmada.kube.client.transport import ConnectionFailed
        from karmada.kube.objects.errors import NotFound
        from karmada.kube.runtime.keys import Key

        found = self._secrets.get(Key(namespace, name))
        if found is not None:
            return found
        try:
            return await self._control_plane.get(SECRETS, name, namespace)
        except NotFound:
            return None
        except ConnectionFailed as error:
            raise plain(str(error)) from error

    async def _local(self, request: Request, path: str) -> Result:
        """Paths that are no resource are served by the control plane."""
        from karmada.apiserver.members import plain
        from karmada.kube.client.transport import Call, ConnectionFailed
        from karmada.kube.server.http.results import RawResult

        accept = request.headers.get("Accept", "") or "application/json"
        try:
            answer = await self._transport.answer(Call(request.method, path, accept=accept))
        except ConnectionFailed as error:
            raise plain(str(error)) from error
        return RawResult(answer.body, answer.headers.get("Content-Type", "application/json"), answer.status)


def _credentials(secret: Obj) -> Obj:
    """All that is kept of a Secret: there may be many, and large ones."""
    data = secret.get("data") or {}
    metadata = {key: value for key, value in secret["metadata"].items() if key != "managedFields"}
    return {"metadata": metadata, "data": {key: data[key] for key in _KEPT_KEYS if key in data}}


# certificates


def followed_serving(
    certificate: Path | None, key: Path | None, directory: Path, minimum: str, clock: Clock
) -> FollowedServing:
    """The given certificate and key, else those of the directory, made and renewed when nobody else does."""
    from karmada.kube.server.auth.own_serving import OwnServing

    if certificate is not None and key is not None:
        return FollowedServing(certificate, key, minimum, clock)
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), SERVICE, f"{SERVICE}.svc"]
    own = OwnServing(directory, "karmada-aggregated-apiserver", names)
    return FollowedServing(*own.files, minimum, clock, own.renew)


# the process


def _header_flag(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(name, default=default, callback=lambda _ctx, _param, value: words(value), help=text)


flags = together(
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
    file("--requestheader-client-ca-file", "Certificates (PEM) of the authority of front proxies."),
    _header_flag("--requestheader-allowed-names", "", "Common names of the front proxies.  [default: any]"),
    _header_flag("--requestheader-username-headers", "x-remote-user", "Headers with the name of the user."),
    _header_flag("--requestheader-uid-headers", "x-remote-uid", "Headers with the uid of the user."),
    _header_flag("--requestheader-group-headers", "x-remote-group", "Headers with the groups of the user."),
    _header_flag("--requestheader-extra-headers-prefix", "x-remote-extra-", "Prefixes of headers with more."),
    etcd_flags("/registry"),
    click.option(
        "--storage",
        default="",
        help="Where clusters are stored, in place of --etcd-servers: sqlite:///path, memory:// or etcd://host:port.",
    ),
    click.option("--bind-address", default="0.0.0.0", help="Address to listen on."),
    click.option("--secure-port", default=443, help="Port to listen on; 0 takes a free one."),
    file(
        "--tls-cert-file",
        "Serving certificate (PEM), followed when it changes.  [default: made in --cert-dir]",
    ),
    file("--tls-private-key-file", "Key (PEM) of the serving certificate."),
    click.option(
        "--cert-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=CERT_DIR,
        help="Directory in which a certificate and its ca.crt are made when none is given.",
    ),
    click.option(
        "--tls-min-version", type=click.Choice(list(TLS_VERSIONS)), default="VersionTLS12", help="Oldest TLS accepted."
    ),
    audit_flags,
    insecure_members_flag,
    feature_gates_flag,
    ignored("--kube-api-qps --kube-api-burst", "the rate of requests adapts to the API server."),
    logging_flags,
)


@click.command("karmada-aggregated-apiserver", cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Serve cluster.karmada.io behind a kube-apiserver, until interrupted.

    The control plane sends requests here once it has an APIService v1alpha1.cluster.karmada.io for it.
    """
    import uvloop

    from karmada.kube.client.kubeconfig import load_config
    from karmada.kube.server.config import ServerConfig
    from karmada.kube.server.storage.interface import StoreUnavailable

    storage = storage_from(given)
    if not storage:
        raise click.UsageError("say where clusters are stored: --etcd-servers, or --storage")
    gates = gates_from(given)
    try:
        first = load_config(given["kubeconfig"] or None)
        access = Access(
            secrets=first,
            callers=load_config(given["authentication_kubeconfig"]) if given["authentication_kubeconfig"] else first,
            rights=load_config(given["authorization_kubeconfig"]) if given["authorization_kubeconfig"] else first,
        )
        files = given["tls_cert_file"], given["tls_private_key_file"]
        tls = followed_serving(*files, given["cert_dir"], given["tls_min_version"], RealClock())
        config = ServerConfig(
            data_dir=given["cert_dir"],
            storage=storage,
            storage_scope=f"{GROUP}/",
            host=given["bind_address"],
            port=given["secure_port"],
            audit=audit_from(given),
        )
        uvloop.run(_serve(config, access, tls, gates, given))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error
    except (ValueError, StoreUnavailable) as error:
        raise click.ClickException(str(error)) from error


def _trust(given: Given) -> Trust:
    """The authorities that the flags name."""
    from karmada.kube.server.auth.delegated import Trust
    from karmada.kube.server.auth.frontproxy import FrontProxy

    def read(flag: str) -> bytes:
        return given[flag].read_bytes() if given[flag] else b""

    proxy = FrontProxy(
        ca_pem=read("requestheader_client_ca_file"),
        allowed_names=given["requestheader_allowed_names"],
        user_headers=given["requestheader_username_headers"],
        uid_headers=given["requestheader_uid_headers"],
        group_headers=given["requestheader_group_headers"],
        extra_prefixes=given["requestheader_extra_headers_prefix"],
    )
    return Trust(read("client_ca_file"), proxy)


async def _serve(config: ServerConfig, access: Access, tls: FollowedServing, gates: FeatureGates, given: Given) -> None:
    from karmada.kube.runtime.logging import setup
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.kube.runtime.waiting import cancel_and_wait

    setup(verbosity=given["verbosity"], format=given["logging_format"])
    tune_garbage_collection()
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        lookup = not given["authentication_skip_lookup"]
    server = AggregatedApiServer(
        config,
        access,
        tls,
        gates,
        trust=_trust(given),
        lookup=lookup,
        allow_insecure_members=given["allow_insecure_members"],
    )

    starting = asyncio.create_task(server.start())
    stopped = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((starting, stopped), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            click.echo(f"{GROUP} at {server.server.url}")
            await stopped
        click.echo("Stopping", file=sys.stderr)
    finally:
        await cancel_and_wait(starting, stopped)
        await server.stop()


if __name__ == "__main__":
    main()
