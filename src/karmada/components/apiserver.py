"""`karmada-apiserver`: the embedded Kubernetes API server as a process of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import click

from karmada.components.program import Program
from karmada.components.running import namespace_deletion_flag
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.configuration import read_admission_configuration
from karmada.kube.server.admission.pod_security.policy import Configuration
from karmada.kube.server.config import DEFAULT_PORT, ServerConfig


@click.command(
    "karmada-apiserver", cls=Program, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
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
@click.option("--kubernetes-version", default="1.36", help="Version of the built-in kinds, 1.25 to 1.37.")
@click.option("--service-cluster-ip-range", default="10.96.0.0/12", help="Addresses of Services.")
@click.option("--service-node-port-range", default="30000-32767", help="Node ports of Services.")
@click.option(
    "--token-auth-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='Static tokens, a line each: token,user,uid,"group1,group2".',
)
@click.option("--anonymous-auth/--no-anonymous-auth", default=True, help="Let in requests without credentials.")
@click.option("--disable-admission-plugins", default="", help="Comma-separated names of plug-ins to leave out.")
@click.option(
    "--admission-control-config-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="AdmissionConfiguration: settings of single plug-ins, such as the defaults and exemptions of PodSecurity.",
)
@click.option("--controllers/--no-controllers", default=True, help="Run the built-in controllers.")
@namespace_deletion_flag
@click.option(
    "--audit-log-path", type=click.Path(dir_okay=False, path_type=Path), help="Append a JSON line for each request."
)
@click.option("-v", "--verbosity", default=0, help="How much to log, as in Kubernetes.")
def main(
    data_dir: Path,
    storage: str,
    bind_address: str,
    port: int,
    advertise_address: str,
    tls_san: tuple[str, ...],
    kubernetes_version: str,
    service_cluster_ip_range: str,
    service_node_port_range: str,
    token_auth_file: Path | None,
    anonymous_auth: bool,
    disable_admission_plugins: str,
    admission_control_config_file: Path | None,
    controllers: bool,
    namespace_deletion_delay: float,
    audit_log_path: Path | None,
    verbosity: int,
) -> None:
    """Serve the Kubernetes API from one process: no Docker, and no etcd unless you want it.

    On the first start it makes its certificates; then it writes admin.kubeconfig into the data directory and serves
    until it is interrupted. Every answered write is on disk.
    """
    config = ServerConfig(
        data_dir=data_dir.expanduser(),
        storage=storage,
        host=bind_address,
        port=port,
        advertise_host=advertise_address,
        extra_sans=tls_san,
        kubernetes_version=kubernetes_version.removeprefix("v"),
        service_cidr=service_cluster_ip_range,
        node_ports=_port_range(service_node_port_range),
        token_file=token_auth_file,
        anonymous=anonymous_auth,
        disabled_admission=frozenset(name.strip() for name in disable_admission_plugins.split(",") if name.strip()),
        admission_configuration=_admission_configuration(admission_control_config_file),
        controllers=controllers,
        namespace_deletion_delay=namespace_deletion_delay,
        audit_log=audit_log_path,
    )
    import uvloop

    from karmada.kube.server.storage.interface import StoreUnavailable

    try:
        uvloop.run(serve(config, verbosity))
    except OSError as error:
        raise click.ClickException(_plainly(error)) from error
    except (ValueError, StoreUnavailable) as error:
        raise click.ClickException(str(error)) from error


def _admission_configuration(path: Path | None) -> dict[str, Obj]:
    """What the file says; a configuration that a plug-in refuses is reported before anything starts."""
    if path is None:
        return {}
    try:
        found = read_admission_configuration(path)
        Configuration.of(found.get("PodSecurity"))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--admission-control-config-file") from error
    return found


def _plainly(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def _port_range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not dash or not first.isdigit() or not last.isdigit() or not 0 < int(first) <= int(last) < 65536:
        raise click.BadParameter(f'"{text}" is not a range like 30000-32767', param_hint="--service-node-port-range")
    return int(first), int(last)


async def serve(config: ServerConfig, verbosity: int) -> None:
    from karmada.kube.runtime.logging import setup
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.auth.shared_keys import share_keys_through

    setup(verbosity=verbosity)
    tune_garbage_collection()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if config.shares_storage:
        await share_keys_through(config.storage, config.data_dir / "pki")
    server = ApiServer(config)
    await server.start()
    click.echo(f"Kubernetes API {config.git_version} at {server.url}")
    click.echo(f"  export KUBECONFIG={server.kubeconfig}")
    try:
        await stopping.wait()
    finally:
        click.echo("Stopping", file=sys.stderr)
        await server.stop()


if __name__ == "__main__":
    main()
