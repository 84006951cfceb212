"""`karmada-dashboard`: the dashboard as a process of its own, in front of any control plane.

Viewers log in with a token or a kubeconfig, whose credentials are passed on; the process needs no right of its own. To
accept client certificates it must be given their authority, and an account that may impersonate.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from karmada.components.extension import serving_flags_at, tls_from
from karmada.components.flags import (
    Endpoints,
    address,
    client_flags,
    config_from,
    file,
    logging_flags,
    switch,
    together,
)
from karmada.components.program import CONTEXT, Program
from karmada.components.running import begin, errors_in_one_line, start_unless

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from karmada.components.flags import Given
    from karmada.dashboard.login import Login
    from karmada.dashboard.server import Dashboard, Options
    from karmada.kube.client.config import RestConfig
    from karmada.kube.server.auth.serving import FollowedServing

SERVICE: Final = "karmada-dashboard.karmada-system"
PORT, HEALTH_PORT = 5480, 10359

flags = together(
    client_flags,
    serving_flags_at(PORT),
    click.option(
        "--host",
        multiple=True,
        help="A name by which browsers reach the dashboard, besides localhost and addresses; repeatable.",
    ),
    file(
        "--client-ca-file",
        "Certificates (PEM) of the authority of client certificates. Their users are impersonated with the account of "
        "the kubeconfig, which must be allowed to.  [default: client certificates are not accepted]",
    ),
    switch(
        "--enable-writes",
        False,
        "Let viewers change what their own rights allow, and open terminals; without it the dashboard only reads.",
    ),
    address("--metrics-bind-address", ":8080", "Address of /metrics; 0 disables it."),
    address("--health-probe-bind-address", f":{HEALTH_PORT}", "Address of /healthz and /readyz; 0 disables them."),
    logging_flags,
)


@click.command("karmada-dashboard", cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Serve the dashboard of a control plane, until interrupted.

    \b
    Example:
      karmada-dashboard --kubeconfig ~/.karmada/admin.kubeconfig --cert-dir ./certs --host dashboard.example.com
    """
    import uvloop

    from karmada.kube.client.kubeconfig import KubeconfigError

    async def serve() -> None:
        stopping = begin(verbosity=given["verbosity"], logging_format=given["logging_format"])
        process = dashboard_process(given)
        try:
            if await start_unless(stopping, process.start()):
                click.echo(f"Dashboard at {process.dashboard.url}")
                await stopping.wait()
            click.echo("Stopping", file=sys.stderr)
        finally:
            await process.stop()

    try:
        with errors_in_one_line():
            uvloop.run(serve())
    except KubeconfigError as error:
        raise click.ClickException(str(error)) from error


def dashboard_process(given: Given) -> DashboardProcess:
    """As the flags say; OSError, ValueError for files that cannot be used."""
    from karmada.dashboard.server import Options
    from karmada.kube.objects.clock import SYSTEM

    config = config_from(given)
    tls = tls_from(given, SERVICE)
    authority = given["client_ca_file"].read_bytes() if given["client_ca_file"] else b""
    if authority:
        tls.trust(authority)
    else:
        tls.context.verify_mode = ssl.CERT_NONE  # no browser is to offer a certificate that nobody would look at
    return DashboardProcess(
        login_with(config, authority, SYSTEM),
        Options(
            host=given["bind_address"],
            port=given["secure_port"],
            names=tuple(name.lower() for name in given["host"]),
            writes=given["enable_writes"],
        ),
        tls,
        Endpoints(given["metrics_bind_address"], given["health_probe_bind_address"]),
    )


def login_with(config: RestConfig, authority: bytes, clock: Any) -> Login:
    """Viewers reach the control plane at the same address, with credentials of their own."""
    from dataclasses import replace

    from karmada.components.dashboard_service import certificate_login
    from karmada.dashboard.login import Login
    from karmada.kube.client.config import Impersonation, Material
    from karmada.kube.server.auth.peer import PeerCertificates

    way = replace(
        config,
        certificate=Material(),
        key=Material(),
        token="",
        token_file="",
        username="",
        password="",
        exec=None,
        reloaded=None,
        impersonate=Impersonation(),
    )
    certificates = certificate_login(config, PeerCertificates(authority), clock) if authority else None
    return Login(way, clock, certificates)


class DashboardMetrics:
    """A metrics collector: the version, and who looks."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        from karmada.build_info import build_info

        yield build_info()
        sessions = len(self._dashboard.sessions)
        yield GaugeMetricFamily("karmada_dashboard_sessions", "Viewers that are logged in", value=sessions)
        streams = self._dashboard.open_pages
        yield GaugeMetricFamily("karmada_dashboard_open_pages", "Pages that follow changes", value=streams)


class DashboardProcess:
    def __init__(
        self,
        login: Login,
        options: Options,
        tls: FollowedServing,
        endpoints: Endpoints,
    ) -> None:
        from karmada.dashboard.server import Dashboard
        from karmada.kube.client.client import Client
        from karmada.kube.client.http_transport import HttpTransport
        from karmada.kube.runtime.health import Health
        from karmada.kube.runtime.metrics import Metrics

        self.dashboard = Dashboard(login, options, tls.context)
        self._tls = tls
        self._following: asyncio.Task[None] | None = None
        self._control_plane = Client(HttpTransport(login.control_plane))
        self.health, metrics = Health(), Metrics()
        self.health.add_ready("control-plane", self._is_reachable)
        metrics.registry.register(DashboardMetrics(self.dashboard))
        self.endpoints = endpoints.servers(self.health, metrics)

    async def _is_reachable(self) -> bool:
        """Return whether the control plane responds, be it with a refusal: nobody is logged in here."""
        from karmada.kube.client.transport import ConnectionFailed
        from karmada.kube.objects.errors import Forbidden, Unauthorized

        try:
            await self._control_plane.raw("GET", "/readyz")
        except (Forbidden, Unauthorized):
            return True
        except ConnectionFailed:
            return False
        return True

    async def start(self) -> None:
        for endpoint in self.endpoints:
            await endpoint.start()
        await self.dashboard.start()
        self._following = asyncio.create_task(self._tls.follow(), name="certificates")

    async def stop(self) -> None:
        from karmada.kube.runtime.waiting import cancel_and_wait

        if self._following is not None:
            await cancel_and_wait(self._following)
        await self.dashboard.stop()
        for endpoint in reversed(self.endpoints):
            await endpoint.stop()
        await self._control_plane.close()


if __name__ == "__main__":
    main()
