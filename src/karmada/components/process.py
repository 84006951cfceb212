"""A component as a process of its own: a client of some API server, with /metrics and /healthz of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from karmada.components.flags import Endpoints
from karmada.components.hanging import ending_hangs, open_quarantine
from karmada.components.running import begin, start_unless

if TYPE_CHECKING:
    from karmada.components.flags import Given
    from karmada.components.sharing import Sharing
    from karmada.controllers.context import OwnCluster, Settings
    from karmada.kube.client.client import Client
    from karmada.kube.client.config import RestConfig
    from karmada.kube.client.transport import Transport
    from karmada.kube.runtime.back_off import BackOff
    from karmada.kube.runtime.features import FeatureGates
    from karmada.kube.runtime.membership import Membership
    from karmada.kube.runtime.serving import ObservabilityServer

NOWHERE = Endpoints()


class Process:
    """An assembly over the network with its endpoints; `name` is the user agent and the default field manager."""

    def __init__(
        self,
        config: RestConfig,
        name: str,
        gates: FeatureGates,
        *,
        settings: Settings | None = None,
        back_off: BackOff | None = None,
        endpoints: Endpoints = NOWHERE,
        own: OwnCluster | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        """`own`: see Assembly. `sharing`: the controllers share their work with other replicas."""
        from karmada.components.assembly import Assembly
        from karmada.kube.client.client import Client
        from karmada.kube.client.http_transport import HttpTransport
        from karmada.kube.runtime.health import Health
        from karmada.kube.runtime.watchdog import STALLS

        transport = HttpTransport(replace(config, user_agent=name))
        self.client = Client(transport, field_manager=name)
        self._membership: Membership | None = None
        self._unguarded: Client | None = None
        if sharing is not None:
            self._unguarded = Client(HttpTransport(replace(config, user_agent=name)), field_manager=name)
        self.health = Health()
        self.assembly = Assembly(
            self._connect,
            name=name,
            gates=gates,
            settings=settings,
            health=self.health,
            back_off=back_off,
            own=own,
            open_member=self._open_member,
            event_client=self._unguarded,
        )
        self.manager, self.metrics = self.assembly.manager, self.assembly.metrics
        self.metrics.registry.register(STALLS)
        transport.returned.append(self.manager.informers.retry_now)
        self.endpoints = endpoints.servers(self.health, self.metrics)
        if sharing is not None and self._unguarded is not None:
            self._membership = transport.guard = self.assembly.share_controllers(sharing, self._unguarded)

    def _open_member(self, config: RestConfig, before: Transport | None) -> Transport:
        """Guard writes to members, too, which do not have the Leases."""
        from karmada.kube.client.fencing import GuardElsewhere
        from karmada.kube.client.http_transport import HttpTransport
        from karmada.members.switching import over_network

        transport = over_network(config, before)
        if isinstance(transport, HttpTransport) and self._membership is not None:
            transport.guard = GuardElsewhere(self._membership)
        return transport

    def _connect(self, name: str) -> Client:
        """Clients of all names share the connection and what is known of the server's resources."""
        from karmada.kube.client.client import Client

        if name == self.client.field_manager:
            return self.client
        return Client(self.client.transport, field_manager=name, mapper=self.client.mapper)

    async def prepare(self) -> None:
        """Do what must be done before anything is watched; subclasses define it."""

    async def _work(self) -> None:
        await self.prepare()
        await self.manager.run()

    async def run(self, stopping: asyncio.Event) -> None:
        """Until `stopping`; LeadershipLost when another process took over."""
        started: list[ObservabilityServer] = []
        try:
            for endpoint in self.endpoints:
                started.append(endpoint)
                await endpoint.start()
            await start_unless(stopping, self._work())
        finally:
            for endpoint in reversed(started):
                await endpoint.stop()
            for client in (self.client, self._unguarded):
                if client is not None:
                    await client.close()


def run_process(make: Callable[[], Process], banner: str, given: Given) -> None:
    """Run a component from its command line: logs, signals, and errors in one line."""
    import uvloop

    from karmada.joining.join import JoinError
    from karmada.kube.client.kubeconfig import KubeconfigError
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError
    from karmada.kube.runtime.manager import LeadershipLost
    from karmada.scheduler.plugins import PluginError

    async def serve() -> None:
        stopping = begin(verbosity=given["verbosity"], logging_format=given["logging_format"])
        if given.get("quarantine_file"):
            open_quarantine(given["quarantine_file"])
        process = make()
        click.echo(banner)
        try:
            with ending_hangs(given):
                await process.run(stopping)
        finally:
            click.echo("Stopping", file=sys.stderr)

    try:
        uvloop.run(serve())
    except LeadershipLost:
        raise click.ClickException("leaderelection lost") from None
    except OSError as error:
        raise click.ClickException(error.strerror or str(error)) from error
    except (ValueError, KubeconfigError, PluginError, TimeoutError, JoinError, ApiError, ConnectionFailed) as error:
        raise click.ClickException(str(error)) from error
