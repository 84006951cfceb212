"""`karmadactl unjoin`: unregister a cluster in push mode."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig


@click.command()
@connect.membership_flags
@click.option("--force", is_flag=True, help="After --wait, remove the finalizers that block the deletion.")
@click.option(
    "--wait", type=connect.Duration(), default="1m0s", show_default=True, help="How long to wait for the deletion."
)
def unjoin(
    names: tuple[str, ...],
    way: connect.Way,
    cluster_kubeconfig: str,
    cluster_context: str,
    cluster_namespace: str,
    force: bool,
    wait: float,
    dry_run: bool,
) -> None:
    """Unregister CLUSTER_NAME: propagated resources are removed from it, then its Cluster object.

    With --cluster-kubeconfig, the service accounts and RBAC that join created in the cluster are removed as well.

    \b
    Examples:
      karmadactl unjoin member1 --cluster-kubeconfig ~/.kube/members.config --cluster-context member1
      karmadactl unjoin member1 --force --wait 10s
    """
    from karmada.kube.objects.times import format_duration

    name = connect.one_name(names, "only the cluster name is allowed as an argument")
    if wait <= 0:
        raise connect.failure(f"--wait {format_duration(wait)} must be a positive duration, e.g. 1m0s")
    control = way.config()
    member = connect.member_config(cluster_kubeconfig, cluster_context or name) if cluster_kubeconfig else None
    options = {"namespace": cluster_namespace, "force": force, "wait": wait, "dry_run": dry_run}
    forced = connect.run(_unjoin(control, member, name, options))
    click.echo(_summary(name, forced=forced, dry_run=dry_run, cleaned=member is not None))


def _summary(name: str, *, forced: bool, dry_run: bool, cleaned: bool) -> str:
    if dry_run:
        return f"cluster({name}) would be unjoined (dry run)"
    propagated = (
        "propagated resources may remain in the cluster, since the deletion was forced"
        if forced
        else "propagated resources are removed from the cluster"
    )
    accounts = (
        "service accounts and RBAC of the control plane are removed from the cluster"
        if cleaned
        else "service accounts and RBAC of the control plane remain in the cluster (--cluster-kubeconfig removes them)"
    )
    return f"cluster({name}) is unjoined successfully: {propagated}; {accounts}"


async def _unjoin(control: RestConfig, member: RestConfig | None, name: str, options: dict[str, Any]) -> bool:
    from karmada.joining.unjoin import unjoin

    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(connect.connected(control))
        cluster = await stack.enter_async_context(connect.connected(member)) if member is not None else None
        return await unjoin(plane, name, member=cluster, progress=connect.progress, **options)
