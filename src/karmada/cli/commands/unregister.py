"""`karmadactl unregister`: unregister a cluster in pull mode."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.joining.pull.objects import Placed
    from karmada.kube.client.config import RestConfig

LOCAL_FOLDER = Path("/etc/karmada")
"""Where Karmada's own command leaves files on the machine where a cluster is registered."""


@click.command()
@click.argument("names", nargs=-1, metavar="CLUSTER_NAME")
@connect.member_flags
@click.option("--karmada-config", default="", help="The kubeconfig of the control plane [that of the agent].")
@click.option("--karmada-context", default="", help="The context in the kubeconfig of the control plane.")
@click.option("-n", "--namespace", default="karmada-system", show_default=True, help="The namespace the agent is in.")
@click.option("--agent-name", default="karmada-agent", show_default=True, help="The Deployment of the agent.")
@click.option(
    "--cluster-namespace",
    default="karmada-cluster",
    show_default=True,
    help="The namespace in the control plane for the Secrets of the cluster.",
)
@click.option(
    "--wait",
    type=connect.Duration(),
    default="1m0s",
    show_default=True,
    help="How long to wait until the cluster's resources are removed.",
)
@click.option("--dry-run", is_flag=True, help="Check whether it could be done; change nothing.")
def unregister(
    names: tuple[str, ...],
    cluster_kubeconfig: str,
    cluster_context: str,
    karmada_config: str,
    karmada_context: str,
    namespace: str,
    agent_name: str,
    cluster_namespace: str,
    wait: float,
    dry_run: bool,
) -> None:
    """Unregister CLUSTER_NAME, a member in pull mode: propagated resources, the Cluster, and then the agent.

    Without --karmada-config the agent's own kubeconfig is used, which may not delete the agent's rights in the control
    plane: they are listed.

    \b
    Examples:
      karmadactl unregister member3 --cluster-kubeconfig member3.config
      karmadactl unregister member3 --cluster-kubeconfig member3.config --karmada-config karmada.config
    """
    from karmada.api.names import cluster_name_errors
    from karmada.kube.objects.times import format_duration

    name = connect.one_name(names, "only the cluster name is allowed as an argument")
    wrong = cluster_name_errors(name)
    if wrong:
        raise connect.failure(f"invalid cluster name({name}): {';'.join(wrong)}")
    if not cluster_kubeconfig:
        raise connect.failure(
            "--cluster-kubeconfig is required to specify KUBECONFIG file path to access unregistering member cluster"
        )
    if wait <= 0:
        raise connect.failure(f"--wait {format_duration(wait)} must be a positive duration, e.g. 1m0s")
    member = connect.member_config(cluster_kubeconfig, cluster_context)
    control = connect.control_config(karmada_config, karmada_context) if karmada_config else None
    options = {"namespace": namespace, "agent": agent_name, "cluster_namespace": cluster_namespace, "wait": wait}
    left = connect.run(_unregister(control, member, name, {**options, "dry_run": dry_run}))
    if dry_run:
        click.echo(f"cluster({name}) would be unregistered (dry run)")
        return
    _delete_local_files(LOCAL_FOLDER)
    if left:
        listed = "\n".join(map(str, left))
        click.echo(f"warning: delete these in the control plane, which the agent may not:\n{listed}", err=True)
    click.echo(f"cluster({name}) is unregistered successfully")


def _delete_local_files(folder: Path) -> None:
    """Delete what registering left here; an authority with its key belongs to a control plane here and stays."""
    authority = folder / "pki" / "ca.crt"
    kept = authority.with_suffix(".key").exists()
    for path in (folder / "karmada-agent.conf", *(() if kept else (authority,))):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            click.echo(f"warning: {path} could not be deleted: {error.strerror}", err=True)


async def _unregister(
    control: RestConfig | None, member: RestConfig, name: str, options: dict[str, Any]
) -> list[Placed]:
    from karmada.joining.pull.unregister import control_plane_of, unregister

    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(connect.connected(member))
        config = control or await control_plane_of(cluster, options["namespace"], options["agent"])
        plane = await stack.enter_async_context(connect.connected(config))
        with_rights = control is not None
        return await unregister(plane, cluster, name, with_rights=with_rights, progress=connect.progress, **options)
