"""`karmada`: the whole control plane as one process: API server, controllers and scheduler."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karmada.components.program import Program
from karmada.components.running import namespace_deletion_flag, ready_flag, start_unless, tell_ready
from karmada.features import FEATURES, default_gates
from karmada.kube.objects.times import parse_duration
from karmada.kube.server.config import DEFAULT_PORT, ServerConfig

if TYPE_CHECKING:
    from karmada.components.controlplane import ControlPlane


def _seconds(_ctx: click.Context, param: click.Parameter, value: str) -> float:
    try:
        return parse_duration(value)
    except ValueError:
        raise click.BadParameter(f'"{value}" is not a duration such as 10s or 1m30s', param=param) from None


@click.command("karmada", cls=Program, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("~/.karmada"),
    help="Certificates, keys, state and admin.kubeconfig; made with mode 0700 when it does not exist.",
)
@click.option(
    "--storage",
    default="",
    help="sqlite:///path, etcd://host:port,host:port[?cacert=&cert=&key=&prefix=] or memory://  "
    "[default: state.db in the data directory]",
)
@click.option("--bind-address", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=DEFAULT_PORT, help="Port to listen on; 0 takes a free one.")
@click.option("--advertise-address", default="", help="Address clients use.  [default: the bind address]")
@click.option("--tls-san", multiple=True, help="Further name or address in the serving certificate; may be repeated.")
@click.option("--feature-gates", default="", help=f"Name=true,… of: {', '.join(sorted(FEATURES))}.")
@click.option(
    "--cluster-status-update-frequency", callback=_seconds, default="10s", help="How often members are asked."
)
@click.option("--cluster-success-threshold", callback=_seconds, default="30s", help="Well for so long counts as well.")
@click.option("--cluster-failure-threshold", callback=_seconds, default="30s", help="Ill for so long counts as ill.")
@click.option(
    "--controllers",
    default="*",
    help="Comma-separated: * and optional ones to run besides: hpaScaleTargetMarker, deploymentReplicasSyncer.",
)
@click.option("--cluster-monitor-grace-period", callback=_seconds, default="40s", help="Unheard for so long: Unknown.")
@click.option("--cluster-startup-grace-period", callback=_seconds, default="60s", help="The same for a new cluster.")
@click.option("--cluster-api-kubeconfig", default="", help="Cluster API's management cluster: its clusters join.")
@click.option("--cluster-api-context", default="", help="The context in that kubeconfig.")
@namespace_deletion_flag
@ready_flag
@click.option("-v", "--verbosity", default=0, help="How much to log, as in Kubernetes.")
def main(
    data_dir: Path,
    storage: str,
    bind_address: str,
    port: int,
    advertise_address: str,
    tls_san: tuple[str, ...],
    feature_gates: str,
    cluster_status_update_frequency: float,
    cluster_success_threshold: float,
    cluster_failure_threshold: float,
    controllers: str,
    cluster_monitor_grace_period: float,
    cluster_startup_grace_period: float,
    cluster_api_kubeconfig: str,
    cluster_api_context: str,
    namespace_deletion_delay: float,
    ready_fd: int | None,
    verbosity: int,
) -> None:
    """Run a multi-cluster control plane: its API, everything behind it, and nothing else to install.

    \b
    Example:
      karmada --data-dir ~/.karmada &
      karmadactl join member1 --kubeconfig ~/.karmada/admin.kubeconfig --cluster-kubeconfig member1.config
    """
    import uvloop

    from karmada.controllers.context import Settings
    from karmada.kube.server.storage.interface import StoreUnavailable

    gates = default_gates()
    try:
        if feature_gates:
            gates.set(feature_gates)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--feature-gates") from None
    config = ServerConfig(
        data_dir=data_dir.expanduser(),
        storage=storage,
        host=bind_address,
        port=port,
        advertise_host=advertise_address,
        extra_sans=tls_san,
        namespace_deletion_delay=namespace_deletion_delay,
    )
    settings = Settings(
        cluster_status_update_frequency=cluster_status_update_frequency,
        cluster_success_threshold=cluster_success_threshold,
        cluster_failure_threshold=cluster_failure_threshold,
        controllers=tuple(name.strip() for name in controllers.split(",") if name.strip()),
        cluster_monitor_grace_period=cluster_monitor_grace_period,
        cluster_startup_grace_period=cluster_startup_grace_period,
        cluster_api_kubeconfig=cluster_api_kubeconfig,
        cluster_api_context=cluster_api_context,
    )

    async def serve() -> None:
        from karmada.components.controlplane import ControlPlane
        from karmada.kube.runtime.logging import setup
        from karmada.kube.runtime.tuning import tune_garbage_collection
        from karmada.kube.server.auth.shared_keys import share_keys_through

        setup(verbosity=verbosity)
        tune_garbage_collection()
        stopping = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if config.shares_storage and not await start_unless(
            stopping, share_keys_through(config.storage, config.data_dir / "pki")
        ):
            return
        await run(ControlPlane(config, settings=settings, gates=gates), stopping, ready_fd)

    try:
        uvloop.run(serve())
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        raise click.ClickException(text) from error
    except (ValueError, StoreUnavailable) as error:
        raise click.ClickException(str(error)) from error


async def run(plane: ControlPlane, stopping: asyncio.Event, ready_fd: int | None = None) -> None:
    """Until it is time to stop, which may be before everything has started."""
    started = await start_unless(stopping, plane.start())
    try:
        if started:
            click.echo(f"Control plane at {plane.server.url}")
            click.echo(f"  export KUBECONFIG={plane.server.kubeconfig}")
            tell_ready(ready_fd)
            await stopping.wait()
    finally:
        click.echo("Stopping", file=sys.stderr)
        await plane.stop()


if __name__ == "__main__":
    main()
