"""`karmada-webhook`: the rules of Karmada's kinds for a kube-apiserver that is not ours.

One HTTPS server with a path for each hook, and /convert for bindings. `karmadactl webhook-config` prints what makes an
API server call it. Without a certificate it creates one, with its own CA, and writes ca.crt beside it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karmada.components.flags import (
    Address,
    Endpoints,
    address,
    admission_flags,
    client_flags,
    config_from,
    feature_gates_flag,
    gates_from,
    ignored,
    logging_flags,
    together,
)
from karmada.components.program import CONTEXT, Program
from karmada.components.running import begin

if TYPE_CHECKING:
    from aiohttp import web

    from karmada.admission.context import Settings
    from karmada.admission.hooks import Hook
    from karmada.kube.runtime.metrics import Metrics
    from karmada.kube.runtime.serving import ObservabilityServer

CERT_DIR = Path("/tmp/k8s-webhook-server/serving-certs")
MAX_BODY = 32 * 1024 * 1024
SERVICE = "karmada-webhook.karmada-system"
TLS_VERSIONS = {
    "1.0": ssl.TLSVersion.TLSv1,
    "1.1": ssl.TLSVersion.TLSv1_1,
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}


class WebhookServer:
    """Serves reviews; `port` 0 takes a free port, and is set to it."""

    def __init__(
        self,
        settings: Settings,
        tls: ssl.SSLContext,
        *,
        host: str = "0.0.0.0",
        port: int = 0,
        metrics: Metrics | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._settings = settings
        self._tls = tls
        self._measure = _Measures(metrics) if metrics is not None else None
        self._runner: web.AppRunner | None = None

    @property
    def serving(self) -> bool:
        return self._runner is not None

    async def start(self) -> None:
        from aiohttp import web

        from karmada.admission.table import HOOKS
        from karmada.kube.runtime.http_server import serve

        app = web.Application(client_max_size=MAX_BODY)
        for hook in HOOKS:
            app.router.add_post(hook.path, self._reviewer(hook))
        app.router.add_post("/convert", self._convert)
        for path in ("/readyz", "/readyz/"):
            app.router.add_get(path, self._ready)
        self._runner = await serve(app, self.host, self.port, self._tls)
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def _reviewer(self, hook: Hook) -> Callable[[web.Request], Awaitable[web.Response]]:
        from karmada.admission.review import answer

        async def handle(request: web.Request) -> web.Response:
            began = time.perf_counter()
            review = await answer(hook, await request.read(), self._settings)
            if self._measure is not None:
                self._measure.answered(hook.path, time.perf_counter() - began)
            return _json(review)

        return handle

    async def _ready(self, _request: web.Request) -> web.Response:
        """Return whether it serves, which is all there is to be ready for."""
        from aiohttp import web

        return web.Response(text="ok")

    async def _convert(self, request: web.Request) -> web.Response:
        from karmada.admission.conversion import answer

        return _json(answer(await request.read()))


def _json(answer: object) -> web.Response:
    import orjson
    from aiohttp import web

    return web.Response(body=orjson.dumps(answer), content_type="application/json")


class _Measures:
    """Under the names that Karmada's own webhook has them."""

    def __init__(self, metrics: Metrics) -> None:
        from prometheus_client import Counter, Histogram

        self._count = Counter(
            "controller_runtime_webhook_requests",
            "Reviews that got a response",
            ["webhook", "code"],
            registry=metrics.registry,
        )
        self._seconds = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Seconds per review",
            ["webhook"],
            registry=metrics.registry,
        )

    def answered(self, path: str, seconds: float) -> None:
        self._count.labels(path, "200").inc()
        self._seconds.labels(path).observe(seconds)


# certificates


def serving_context(directory: Path, certificate: str, key: str, minimum: str) -> ssl.SSLContext:
    """TLS with the certificate of a directory, which is made when there is none, or only a part of one."""
    from karmada.kube.server.auth.files import check_trusted, locked, private_directory
    from karmada.kube.server.auth.serving import server_context

    cert_file, key_file = directory / certificate, directory / key
    for path in (directory, cert_file, key_file):
        check_trusted(path)
    if not (cert_file.exists() and key_file.exists()):
        private_directory(directory)
        with locked(directory):
            if not (cert_file.exists() and key_file.exists()):
                _make_certificate(directory, cert_file, key_file)
    context = server_context(TLS_VERSIONS[minimum])
    context.load_cert_chain(cert_file, key_file)
    return context


def _make_certificate(directory: Path, cert_file: Path, key_file: Path) -> None:
    """Delete the old certificate first, write the new one last, so that an interruption leaves no mismatched pair."""
    from karmada.kube.server.auth.files import write_private
    from karmada.kube.server.auth.pki import SERVER_USAGES, CertificateAuthority

    cert_file.unlink(missing_ok=True)
    authority = CertificateAuthority.create("karmada-webhook-ca")
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), SERVICE, f"{SERVICE}.svc"]
    pair = authority.issue("karmada-webhook", sans=names, usages=SERVER_USAGES)
    write_private(directory / "ca.crt", authority.cert_pem)
    write_private(key_file, pair.key_pem)
    write_private(cert_file, pair.cert_pem)


# the process


flags = together(
    click.option("--bind-address", default="0.0.0.0", help="Address to listen on."),
    click.option("--secure-port", default=8443, help="Port to listen on; 0 takes a free one."),
    click.option(
        "--cert-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=CERT_DIR,
        help="Directory of the serving certificate; one is made there, with a ca.crt, when there is none.",
    ),
    click.option("--tls-cert-file-name", default="tls.crt", help="File of the certificate in that directory."),
    click.option("--tls-private-key-file-name", default="tls.key", help="File of its key in that directory."),
    click.option(
        "--tls-min-version", type=click.Choice(list(TLS_VERSIONS)), default="1.3", help="Oldest TLS version accepted."
    ),
    client_flags,
    address("--metrics-bind-address", ":8080", "Address of /metrics; 0 disables it."),
    address("--health-probe-bind-address", ":8000", "Address of /healthz and /readyz; 0 disables them."),
    admission_flags,
    feature_gates_flag,
    ignored("--enable-pprof --profiling-bind-address", "this program has no Go profiles; use py-spy."),
    logging_flags,
)


@click.command("karmada-webhook", cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Answer the admission and conversion reviews of a kube-apiserver, until interrupted.

    \b
    Example:
      karmada-webhook --cert-dir ./certs &
      karmadactl webhook-config --url https://localhost:8443 --ca ./certs/ca.crt | kubectl apply -f -
    """
    import uvloop

    from karmada.admission.context import Settings
    from karmada.kube.client.client import Client
    from karmada.kube.client.http_transport import HttpTransport
    from karmada.kube.client.kubeconfig import KubeconfigError

    gates = gates_from(given)
    names = (given["tls_cert_file_name"], given["tls_private_key_file_name"])
    try:
        tls = serving_context(given["cert_dir"], *names, given["tls_min_version"])
        config = config_from(given)
    except (ValueError, OSError, KubeconfigError) as error:
        raise click.ClickException(str(error)) from error

    async def run() -> None:
        stopping = begin(verbosity=given["verbosity"], logging_format=given["logging_format"])
        client = Client(HttpTransport(config))
        allowed = given["allow_no_execute_taint_policy"]
        settings = Settings(client=client, gates=gates, allow_no_execute_taint_policy=allowed)
        where = (given["bind_address"], given["secure_port"])
        try:
            endpoints = Endpoints(given["metrics_bind_address"], given["health_probe_bind_address"])
            await serve(settings, tls, where, endpoints, stopping)
        finally:
            await client.close()

    try:
        uvloop.run(run())
    except OSError as error:
        raise click.ClickException(error.strerror or str(error)) from error


async def serve(
    settings: Settings,
    tls: ssl.SSLContext,
    address: Address,
    endpoints: Endpoints,
    stopping: asyncio.Event,
) -> None:
    """Reviews, metrics and health, until it is time to stop."""
    from karmada.kube.runtime.health import Health
    from karmada.kube.runtime.metrics import Metrics

    metrics, health = Metrics(), Health()
    server = WebhookServer(settings, tls, host=address[0], port=address[1], metrics=metrics)
    health.add_ready("webhook", lambda: server.serving)
    parts: list[WebhookServer | ObservabilityServer] = [server, *endpoints.servers(health, metrics)]
    started: list[WebhookServer | ObservabilityServer] = []
    try:
        for part in parts:
            await part.start()
            started.append(part)
        click.echo(f"Reviews at https://{address[0]}:{server.port}")
        await stopping.wait()
    finally:
        click.echo("Stopping", file=sys.stderr)
        for part in reversed(started):
            await part.stop()


if __name__ == "__main__":
    main()
