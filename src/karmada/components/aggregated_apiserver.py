"""`karmada-aggregated-apiserver`: clusters and their proxy, for a control plane whose API server is a kube-apiserver.

It serves the group cluster.karmada.io and nothing else, behind an APIService of the control plane. Accounts, roles and
the Secrets of the clusters are the control plane's; the clusters themselves are stored here. The embedded API server
has all this built in and does not need it.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

import click

from karmada.components.program import Program

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
TLS_VERSIONS: Final = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_KEPT_KEYS: Final = ("token", "caBundle", "kubeconfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the control plane is reached: for Secrets, for questions about callers, for questions about rights."""

    secrets: RestConfig
    callers: RestConfig
    rights: RestConfig


class AggregatedApiServer:
    """`trust` is believed besides what the control plane publishes, which `lookup` asks for."""

    def __init__(
        self,
        config: ServerConfig,
        access: Access,
        tls: ssl.SSLContext,
        gates: FeatureGates,
        *,
        trust: Trust,
        lookup: bool = True,
    ) -> None:
        from karmada.apiserver.mount import mount_clusters
        from karmada.joining.objects import SECRETS
        from karmada.kube.client.client import Client
        from karmada.kube.client.light import transport_for
        from karmada.kube.objects.clock import RealClock
        from karmada.kube.runtime.informers import Informers
        from karmada.kube.server.auth.delegated import DelegatedAuthenticator, DelegatedAuthorizer, FollowedTrust
        from karmada.kube.server.extension import ExtensionServer

        clock = RealClock()
        self._tls = tls
        self._transport = transport_for(access.secrets)
        self._control_plane = Client(self._transport)
        self._asking = [Client(transport_for(way)) for way in (access.callers, access.rights)]
        self._callers = DelegatedAuthenticator(self._asking[0], clock, anonymous=config.anonymous)
        self.server = ExtensionServer(config, self._callers, DelegatedAuthorizer(self._asking[1], clock), tls, clock)
        self._informers = Informers(self._control_plane, clock=clock)
        self._published = Informers(self._asking[0], clock=clock)
        self._secrets = self._informers.of(SECRETS, transform=_credentials)
        self._believe(trust)
        if lookup:
            FollowedTrust(self._published, trust, self._believe)
        models = gates.enabled("CustomizedClusterResourceModeling")
        mount_clusters(self.server, models=models, secret=self._secret, local=self._local)
        self.server.health.add("control-plane", lambda: self._informers.synced, pages=("readyz",))

    def _believe(self, trust: Trust) -> None:
        """An authority that is gone stays with the TLS layer, but names nobody any more."""
        if trust.pem:
            self._tls.load_verify_locations(cadata=trust.pem.decode("ascii"))
        self._callers.believe(trust)

    async def start(self) -> None:
        """Returns when it serves; that waits for the control plane to tell whom to trust."""
        for informers in (self._published, self._informers):
            informers.start()
            await informers.wait_synced()
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()
        await self._informers.stop()
        await self._published.stop()
        for client in (self._control_plane, *self._asking):
            await client.close()

    async def _secret(self, namespace: str, name: str) -> Obj | None:
        """One that is not here may just have been made."""
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
        """Pages that are no resource are the control plane's."""
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


def serving_context(certificate: Path | None, key: Path | None, directory: Path, minimum: str) -> ssl.SSLContext:
    """TLS with the given certificate, else with one of its own, made when there is none; asks clients for theirs."""
    if certificate is None or key is None:
        certificate, key = directory / "apiserver.crt", directory / "apiserver.key"
        if not certificate.exists() or not key.exists():
            _make_certificate(directory, certificate, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = TLS_VERSIONS[minimum]
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def _make_certificate(directory: Path, certificate: Path, key: Path) -> None:
    from karmada.kube.server.auth.files import private_directory, write_private
    from karmada.kube.server.auth.pki import SERVER_USAGES, CertificateAuthority

    private_directory(directory)
    authority = CertificateAuthority.create("karmada-aggregated-apiserver-ca")
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), SERVICE, f"{SERVICE}.svc"]
    pair = authority.issue("karmada-aggregated-apiserver", sans=names, usages=SERVER_USAGES)
    write_private(directory / "ca.crt", authority.cert_pem)
    write_private(key, pair.key_pem)
    write_private(certificate, pair.cert_pem)


# the process


def etcd_address(servers: str, prefix: str, authority: str, certificate: str, key: str) -> str:
    """The store's address from the flags that API servers have for it."""
    hosts = []
    for server in servers.split(","):
        parts = urlsplit(server.strip() if "://" in server else f"http://{server.strip()}")
        if not parts.netloc or parts.scheme not in ("http", "https"):
            raise ValueError(f'--etcd-servers: "{server}" is not a URL like https://host:2379')
        if parts.scheme == "https" and not authority:
            raise ValueError(f"--etcd-servers: {server} needs --etcd-cafile")
        hosts.append(parts.netloc)
    options = {"prefix": prefix, "cacert": authority, "cert": certificate, "key": key}
    query = "&".join(f"{name}={quote(value)}" for name, value in options.items() if value)
    return f"etcd://{','.join(hosts)}?{query}"


def _names(_context: click.Context, _option: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    "karmada-aggregated-apiserver",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option("--kubeconfig", default="", help="How the control plane is reached.  [default: as kubectl]")
@click.option("--authentication-kubeconfig", default="", help="How it is asked about callers.  [default: the same]")
@click.option("--authorization-kubeconfig", default="", help="How it is asked about rights.  [default: the same]")
@click.option(
    "--authentication-skip-lookup",
    is_flag=True,
    help="Trust only what the flags below say, not what the control plane publishes in kube-system.",
)
@click.option("--client-ca-file", type=_FILE, help="Certificates of the authority of clients.")
@click.option("--requestheader-client-ca-file", type=_FILE, help="Certificates of the authority of front proxies.")
@click.option("--requestheader-allowed-names", default="", callback=_names, help="Names of the front proxies.")
@click.option(
    "--requestheader-username-headers", default="x-remote-user", callback=_names, help="Headers with the user's name."
)
@click.option(
    "--requestheader-uid-headers", default="x-remote-uid", callback=_names, help="Headers with the user's uid."
)
@click.option(
    "--requestheader-group-headers", default="x-remote-group", callback=_names, help="Headers with the user's groups."
)
@click.option(
    "--requestheader-extra-headers-prefix",
    default="x-remote-extra-",
    callback=_names,
    help="What headers with more about the user begin with.",
)
@click.option("--etcd-servers", default="", help="Where clusters are stored: URLs of etcd, with commas.")
@click.option("--etcd-prefix", default="/registry", help="What keys in etcd begin with.")
@click.option("--etcd-cafile", default="", help="The authority of etcd's certificate.")
@click.option("--etcd-certfile", default="", help="The certificate to show etcd.")
@click.option("--etcd-keyfile", default="", help="Its key.")
@click.option(
    "--storage", default="", help="Where clusters are stored instead: sqlite:///path, memory:// or etcd://host:port."
)
@click.option("--bind-address", default="0.0.0.0", help="Address to listen on.")
@click.option("--secure-port", default=443, help="Port to listen on; 0 takes a free one.")
@click.option("--tls-cert-file", type=_FILE, help="The serving certificate; one is made when there is none.")
@click.option("--tls-private-key-file", type=_FILE, help="Its key.")
@click.option(
    "--cert-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=CERT_DIR,
    help="Where the certificate is made, with a ca.crt, when none is given.",
)
@click.option(
    "--tls-min-version",
    type=click.Choice(list(TLS_VERSIONS)),
    default="VersionTLS12",
    help="The oldest TLS that is spoken.",
)
@click.option("--audit-log-path", default="", help="Append a JSON line for each request; - for standard output.")
@click.option("--audit-log-maxage", default=0, help="Accepted for compatibility: rotate the file with logrotate.")
@click.option("--audit-log-maxbackup", default=0, help="Accepted for compatibility, as the one before.")
@click.option("--feature-gates", default="", help="Gates to switch: Name=true,Other=false.")
@click.option("--kube-api-qps", default=40.0, help="Accepted for compatibility: the rate adapts to the API server.")
@click.option("--kube-api-burst", default=60, help="Accepted for compatibility, as the one before.")
@click.option("-v", "--v", "verbosity", default=0, help="How much to log, as in Kubernetes.")
def main(
    kubeconfig: str,
    authentication_kubeconfig: str,
    authorization_kubeconfig: str,
    authentication_skip_lookup: bool,
    client_ca_file: Path | None,
    requestheader_client_ca_file: Path | None,
    requestheader_allowed_names: tuple[str, ...],
    requestheader_username_headers: tuple[str, ...],
    requestheader_uid_headers: tuple[str, ...],
    requestheader_group_headers: tuple[str, ...],
    requestheader_extra_headers_prefix: tuple[str, ...],
    etcd_servers: str,
    etcd_prefix: str,
    etcd_cafile: str,
    etcd_certfile: str,
    etcd_keyfile: str,
    storage: str,
    bind_address: str,
    secure_port: int,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    cert_dir: Path,
    tls_min_version: str,
    audit_log_path: str,
    audit_log_maxage: int,  # noqa: ARG001 - see its help
    audit_log_maxbackup: int,  # noqa: ARG001
    feature_gates: str,
    kube_api_qps: float,  # noqa: ARG001
    kube_api_burst: int,  # noqa: ARG001
    verbosity: int,
) -> None:
    """Serve cluster.karmada.io behind a kube-apiserver, until interrupted.

    The control plane sends requests here once it has an APIService v1alpha1.cluster.karmada.io for it.
    """
    import uvloop

    from karmada.features import default_gates
    from karmada.kube.client.kubeconfig import load_config
    from karmada.kube.server.auth.delegated import Trust
    from karmada.kube.server.auth.frontproxy import FrontProxy
    from karmada.kube.server.config import ServerConfig
    from karmada.kube.server.storage.interface import StoreUnavailable

    if not storage and not etcd_servers:
        raise click.UsageError("say where clusters are stored: --etcd-servers, or --storage")
    gates = default_gates()
    try:
        gates.set(feature_gates)
        first = load_config(kubeconfig or None)
        access = Access(
            secrets=first,
            callers=load_config(authentication_kubeconfig) if authentication_kubeconfig else first,
            rights=load_config(authorization_kubeconfig) if authorization_kubeconfig else first,
        )
        proxy = FrontProxy(
            ca_pem=requestheader_client_ca_file.read_bytes() if requestheader_client_ca_file else b"",
            allowed_names=requestheader_allowed_names,
            user_headers=requestheader_username_headers,
            uid_headers=requestheader_uid_headers,
            group_headers=requestheader_group_headers,
            extra_prefixes=requestheader_extra_headers_prefix,
        )
        trust = Trust(client_ca_file.read_bytes() if client_ca_file else b"", proxy)
        tls = serving_context(tls_cert_file, tls_private_key_file, cert_dir, tls_min_version)
        config = ServerConfig(
            data_dir=cert_dir,
            storage=storage or etcd_address(etcd_servers, etcd_prefix, etcd_cafile, etcd_certfile, etcd_keyfile),
            storage_scope=f"{GROUP}/",
            host=bind_address,
            port=secure_port,
            audit_log=Path("/dev/stdout" if audit_log_path == "-" else audit_log_path) if audit_log_path else None,
        )
        uvloop.run(_serve(config, access, tls, gates, trust, not authentication_skip_lookup, verbosity))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error
    except (ValueError, StoreUnavailable) as error:
        raise click.ClickException(str(error)) from error


async def _serve(
    config: ServerConfig,
    access: Access,
    tls: ssl.SSLContext,
    gates: FeatureGates,
    trust: Trust,
    lookup: bool,
    verbosity: int,
) -> None:
    from karmada.kube.runtime.logging import setup
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.kube.runtime.waiting import cancel_and_wait

    setup(verbosity=verbosity)
    tune_garbage_collection()
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    server = AggregatedApiServer(config, access, tls, gates, trust=trust, lookup=lookup)
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
