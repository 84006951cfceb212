"""`karmada-scheduler`: a scheduler as a process of its own.

The control plane in one process has the scheduler that bindings get by default. Further ones, each with a name and a
lease of its own, schedule the bindings that name them, in their own way: other plug-ins, other gates. Of several
processes with one lease, one works and the others stand by.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from karmada.components.election import DEFAULT_SCHEDULER, Election, scheduler_lease

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig
    from karmada.kube.runtime.features import FeatureGates
    from karmada.kube.runtime.serving import ObservabilityServer
    from karmada.scheduler.estimators.protocol import RemoteEstimator
    from karmada.scheduler.service.core import Options
    from karmada.scheduler.service.pauses import Limits

COMPONENT = "karmada-scheduler"
Address = tuple[str, int]


class SchedulerProcess:
    """A scheduler over the network, with its endpoints; `election` None: it works without a lease."""

    def __init__(
        self,
        config: RestConfig,
        options: Options,
        gates: FeatureGates,
        *,
        election: Election | None = None,
        metrics_address: Address | None = None,
        health_address: Address | None = None,
        remote: Sequence[RemoteEstimator] = (),
    ) -> None:
        from dataclasses import replace

        from karmada.components.assembly import Assembly
        from karmada.kube.client.client import Client
        from karmada.kube.client.light import transport_for
        from karmada.kube.runtime.health import Health
        from karmada.kube.runtime.metrics import Metrics

        self.client = Client(transport_for(replace(config, user_agent=COMPONENT)), field_manager=COMPONENT)
        self.metrics, self.health = Metrics(), Health()
        assembly = Assembly(
            lambda _name: self.client,
            name=COMPONENT,
            gates=gates,
            metrics=self.metrics,
            health=self.health,
        )
        self.manager = assembly.manager
        assembly.add_scheduler(options, remote, election)
        self.endpoints = self._endpoints(metrics_address, health_address)

    def _endpoints(self, metrics: Address | None, health: Address | None) -> list[ObservabilityServer]:
        """One server for both when they have one address."""
        from karmada.kube.runtime.serving import ObservabilityServer

        found: dict[Address, bool] = {}
        for address, measured in ((health, False), (metrics, True)):
            if address is not None:
                found[address] = found.get(address, False) or measured
        return [
            ObservabilityServer(self.health, self.metrics if measured else None, host=host, port=port)
            for (host, port), measured in found.items()
        ]

    async def run(self, stopping: asyncio.Event) -> None:
        """Until told to stop; LeadershipLost if somebody else works now."""
        from karmada.kube.runtime.waiting import cancel_and_wait

        started: list[ObservabilityServer] = []
        told = asyncio.create_task(stopping.wait())
        try:
            for endpoint in self.endpoints:
                started.append(endpoint)
                await endpoint.start()
            working = asyncio.create_task(self.manager.run())
            try:
                await asyncio.wait({working, told}, return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    working.result()
            finally:
                await cancel_and_wait(working)
        finally:
            await cancel_and_wait(told)
            for endpoint in reversed(started):
                await endpoint.stop()
            await self.client.close()


# flags


def _seconds(_ctx: click.Context, param: click.Parameter, value: str) -> float:
    from karmada.kube.objects.times import parse_duration

    try:
        return parse_duration(value)
    except ValueError:
        raise click.BadParameter(f'"{value}" is not a duration such as 10s or 1m30s', param=param) from None


def _address(_ctx: click.Context, param: click.Parameter, text: str) -> Address | None:
    """host:port, with all addresses of the machine for an empty host; "" and "0" are none."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f'"{text}" is not an address like :8080', param=param)
    return host.strip("[]") or "0.0.0.0", int(port)


F = TypeVar("F", bound=Callable[..., Any])


def _switch(name: str, default: bool, text: str) -> Callable[[F], F]:
    return click.option(name, type=bool, is_flag=False, flag_value=True, default=default, help=text)


def _duration(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(name, callback=_seconds, default=default, help=text)


_COMPATIBLE = "Accepted for compatibility"


@click.group(
    invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.option("--scheduler-name", default=DEFAULT_SCHEDULER, help="Which bindings: those with this schedulerName.")
@click.option("--kubeconfig", default="", help="How the control plane is reached.  [default: as kubectl]")
@click.option("--master", default="", help="The control plane's address, in place of the kubeconfig's.")
@_switch("--leader-elect", True, "Work only while holding the lease.")
@click.option(
    "--leader-elect-resource-name",
    default="",
    help="Name of the lease.  [default: karmada-scheduler, for a scheduler of another name karmada-scheduler-NAME]",
)
@click.option("--leader-elect-resource-namespace", default="karmada-system", help="The lease's namespace.")
@_duration("--leader-elect-lease-duration", "15s", "How long others wait before they take over.")
@_duration("--leader-elect-renew-deadline", "10s", "How long the lease is believed in without renewal.")
@_duration("--leader-elect-retry-period", "2s", "How often the lease is renewed or asked for.")
@click.option("--metrics-bind-address", callback=_address, default=":8080", help="Where /metrics is; 0 for nowhere.")
@click.option(
    "--health-probe-bind-address", callback=_address, default=":10351", help="Where /healthz is; 0 for nowhere."
)
@_switch("--enable-scheduler-estimator", False, "Ask the estimators of the clusters, too.")
@_switch("--disable-scheduler-estimator-in-pull-mode", False, "Do not ask those of clusters in Pull mode.")
@_duration("--scheduler-estimator-timeout", "3s", "How long estimators may take together.")
@click.option("--scheduler-estimator-service-namespace", default="karmada-system", help="Where their Services are.")
@click.option("--scheduler-estimator-service-prefix", default="karmada-scheduler-estimator", help="Of their names.")
@click.option("--scheduler-estimator-port", type=int, default=10352, help="Of their Services.")
@click.option("--scheduler-estimator-cert-file", default="", help="The certificate to show them.")
@click.option("--scheduler-estimator-key-file", default="", help="Its key.")
@click.option("--scheduler-estimator-ca-file", default="", help="Who vouches for them.")
@_switch("--insecure-skip-estimator-verify", False, "Do not ask who vouches for them.")
@_switch("--enable-empty-workload-propagation", False, "Selected clusters get workloads of 0 replicas, too.")
@click.option(
    "--plugins", multiple=True, default=("*",), help="Names to switch on, or with a dash off; * for all of them."
)
@click.option("--feature-gates", multiple=True, default=(), help="Gates to switch: Name=true,Other=false.")
@_duration("--rate-limiter-base-delay", "5ms", "The first pause after a failure; it doubles.")
@_duration("--rate-limiter-max-delay", "1000s", "The longest pause.")
@click.option("--rate-limiter-qps", type=float, default=10.0, help="Tries after failures a second, of all together.")
@click.option("--rate-limiter-bucket-size", type=int, default=100, help="As many may come at once.")
@click.option("--kube-api-qps", type=float, default=40.0, help=f"{_COMPATIBLE}: the rate adapts to the API server.")
@click.option("--kube-api-burst", type=int, default=60, help=f"{_COMPATIBLE}, as the one before.")
@_switch("--enable-pprof", False, f"{_COMPATIBLE}: there is nothing of the sort.")
@click.option("--profiling-bind-address", default=":6060", help=f"{_COMPATIBLE}, as the one before.")
@click.option("-v", "--verbosity", "--v", default=0, help="How much to log, as in Kubernetes.")
@click.pass_context
def main(context: click.Context, /, **flags: Any) -> None:
    """Schedule the bindings that name this scheduler, until interrupted.

    \b
    Example:
      karmada-scheduler --scheduler-name other --leader-elect-resource-name other-scheduler \\
        --kubeconfig ~/.karmada/admin.kubeconfig --plugins '*,-ClusterLocality'
    """
    if context.invoked_subcommand is not None:
        return
    import uvloop

    from karmada.kube.client.kubeconfig import KubeconfigError
    from karmada.kube.runtime.manager import LeadershipLost
    from karmada.scheduler.plugins import PluginError

    _check(flags)

    async def serve() -> None:
        from karmada.kube.runtime.logging import setup
        from karmada.kube.runtime.tuning import tune_garbage_collection

        setup(verbosity=flags["verbosity"])
        tune_garbage_collection()
        stopping = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        process = _process(flags)
        click.echo(f"Scheduler {flags['scheduler_name']}")
        try:
            await process.run(stopping)
        finally:
            click.echo("Stopping", file=sys.stderr)

    try:
        uvloop.run(serve())
    except LeadershipLost:
        raise click.ClickException("leaderelection lost") from None
    except OSError as error:
        raise click.ClickException(error.strerror or str(error)) from error
    except (ValueError, KubeconfigError, PluginError, TimeoutError) as error:
        raise click.ClickException(str(error)) from error


def _check(flags: dict[str, Any]) -> None:
    from karmada.kube.objects.errors import FieldError, invalid

    wrong: list[FieldError] = []
    if not flags["scheduler_name"]:
        wrong.append(invalid("Options.SchedulerName", "", "should not be empty"))
    port, timeout = flags["scheduler_estimator_port"], flags["scheduler_estimator_timeout"]
    if not 0 <= port <= 65535:
        text = "must be a valid port between 0 and 65535 inclusive"
        wrong.append(invalid("Options.SchedulerEstimatorPort", port, text))
    if timeout < 0:
        text = "must be greater than or equal to 0"
        wrong.append(invalid("Options.SchedulerEstimatorTimeout", timeout, text))
    if wrong:
        raise click.ClickException("; ".join(map(str, wrong)))
    if flags["enable_scheduler_estimator"]:
        raise click.UsageError("--enable-scheduler-estimator: this build has no client for estimators of clusters")


def _process(flags: dict[str, Any]) -> SchedulerProcess:
    from dataclasses import replace

    from karmada.features import default_gates
    from karmada.kube.client.kubeconfig import load_config
    from karmada.scheduler.service.core import Options

    gates = default_gates()
    for text in flags["feature_gates"]:
        gates.set(text)
    config = load_config(flags["kubeconfig"] or None)
    if flags["master"]:
        config = replace(config, server=flags["master"])
    options = Options(
        name=flags["scheduler_name"],
        plugins=tuple(name for text in flags["plugins"] for name in text.split(",")),
        propagate_empty=flags["enable_empty_workload_propagation"],
        limits=_limits(flags),
    )
    election = Election(
        name=flags["leader_elect_resource_name"] or scheduler_lease(flags["scheduler_name"]),
        namespace=flags["leader_elect_resource_namespace"],
        lease_duration=flags["leader_elect_lease_duration"],
        renew_deadline=flags["leader_elect_renew_deadline"],
        retry_period=flags["leader_elect_retry_period"],
    )
    return SchedulerProcess(
        config,
        options,
        gates,
        election=election if flags["leader_elect"] else None,
        metrics_address=flags["metrics_bind_address"],
        health_address=flags["health_probe_bind_address"],
    )


def _limits(flags: dict[str, Any]) -> Limits:
    """What makes no sense is as if it were not given."""
    from karmada.scheduler.service.pauses import Limits

    given = {
        "base_delay": flags["rate_limiter_base_delay"],
        "max_delay": flags["rate_limiter_max_delay"],
        "rate": flags["rate_limiter_qps"],
        "burst": flags["rate_limiter_bucket_size"],
    }
    return Limits(**{name: value for name, value in given.items() if value > 0})


@main.command()
def version() -> None:
    """Say which version this is."""
    from karmada.version import line

    click.echo(line(COMPONENT))


if __name__ == "__main__":
    main()
