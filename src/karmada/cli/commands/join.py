"""`karmadactl join`: register a cluster in push mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.joining.join import Joining
    from karmada.kube.client.config import RestConfig

_RESERVED = "karmada-system"


@click.command()
@connect.membership_flags
@click.option("--cluster-provider", default="", help="The cloud provider of the cluster.")
@click.option("--cluster-region", default="", help="The region of the cluster.")
@click.option("--cluster-zones", multiple=True, help="The zones of the cluster, comma-separated.")
@click.option("--karmada-as", default="", help="The user to impersonate at the control plane.")
@click.option("--karmada-as-group", multiple=True, help="A group to impersonate at the control plane; may be repeated.")
@click.option("--karmada-as-uid", default="", help="The uid to impersonate at the control plane.")
def join(
    names: tuple[str, ...],
    way: connect.Way,
    cluster_kubeconfig: str,
    cluster_context: str,
    cluster_namespace: str,
    cluster_provider: str,
    cluster_region: str,
    cluster_zones: tuple[str, ...],
    karmada_as: str,
    karmada_as_group: tuple[str, ...],
    karmada_as_uid: str,
    dry_run: bool,
) -> None:
    """Register CLUSTER_NAME as a member that the control plane pushes resources to.

    \b
    Examples:
      karmadactl join member1 --cluster-kubeconfig ~/.kube/members.config --cluster-context member1
      karmadactl join member1 --cluster-kubeconfig member1.config --cluster-region eu --cluster-zones eu-a,eu-b
    """
    from dataclasses import replace

    from karmada.api.names import cluster_name_errors
    from karmada.joining.join import Joining
    from karmada.kube.client.config import Impersonation

    name = connect.one_name(names, "only the cluster name is allowed as an argument")
    wrong = cluster_name_errors(name)
    if wrong:
        raise connect.failure(f"invalid cluster name({name}): {';'.join(wrong)}")
    if cluster_namespace == _RESERVED:
        click.echo(
            f"warning: {_RESERVED} is reserved for the control plane; Secrets of clusters may be lost there", err=True
        )
    control = way.config()
    if karmada_as or karmada_as_group or karmada_as_uid:
        acting = Impersonation(user=karmada_as, uid=karmada_as_uid, groups=karmada_as_group)
        control = replace(control, impersonate=acting)
    chosen = connect.joining_context(cluster_kubeconfig, cluster_context, name)
    member = connect.member_config(cluster_kubeconfig, chosen)
    joining = Joining.to(
        member,
        name,
        namespace=cluster_namespace,
        provider=cluster_provider,
        region=cluster_region,
        zones=connect.commas(cluster_zones),
    )
    connect.run(_join(control, member, joining, dry_run))
    if not dry_run:
        click.echo(f"cluster({name}) is joined successfully")


async def _join(control: RestConfig, member: RestConfig, joining: Joining, dry_run: bool) -> None:
    from karmada.joining.join import join

    async with connect.connected(control) as plane, connect.connected(member) as cluster:
        await join(plane, cluster, joining, dry_run=dry_run, progress=connect.progress)
