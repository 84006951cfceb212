"""`karmadactl deinit`: remove a control plane from the cluster it was installed into."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from karmada.cli.parsing.confirming import confirmed
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.install.removal import Removal
    from karmada.kube.client.config import RestConfig


@click.command()
@click.option("-n", "--namespace", default="karmada-system", show_default=True, help="The namespace it is in.")
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster it was installed into.")
@click.option("--context", default="", help="The context in that kubeconfig.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed; remove nothing.")
@click.option("-f", "--force", is_flag=True, help="Skip the confirmation.")
@click.option("--purge-namespace", is_flag=True, help="Remove the namespace with everything in it, also the state.")
@click.option("--addons", is_flag=True, help="Remove addons, too.")
def deinit(
    namespace: str, kubeconfig: str, context: str, dry_run: bool, force: bool, purge_namespace: bool, addons: bool
) -> None:
    """Remove a control plane from the cluster it was installed into. Its state stays, unless the namespace goes.

    \b
    Examples:
      karmadactl deinit --dry-run
      karmadactl deinit --addons
      karmadactl deinit --force --purge-namespace
    """
    from karmada.install.removal import Removal

    removal = Removal(namespace=namespace, purge_namespace=purge_namespace, addons=addons, dry_run=dry_run)
    config = connect.member_config(kubeconfig, context, flag="--kubeconfig")
    connect.run(_deinit(config, removal, force or dry_run))


async def _deinit(config: RestConfig, removal: Removal, force: bool) -> None:
    from karmada.install.removal import addons_of, kept_claims, remove
    from karmada.kube.objects.gvrs import NAMESPACES

    async with connect.connected(config) as host:
        await host.get(NAMESPACES, removal.namespace)
        click.echo(f"removes Karmada from namespace {removal.namespace} of {config.server}")
        if not force and not confirmed():
            return
        was_there = await remove(host, removal, click.echo)
        claims = [] if removal.purge_namespace else await kept_claims(host, removal.namespace)
        addons = [] if removal.purge_namespace or removal.addons else await addons_of(host, removal.namespace)
    if removal.dry_run:
        click.echo("nothing was removed (dry run)")
        return
    if not was_there:
        click.echo(f"namespace {removal.namespace} has nothing that init has installed. For Helm: 'helm uninstall'")
        return
    click.echo("remove Karmada successfully.")
    if addons:
        click.echo(f"Addons stay: {', '.join(addons)}. 'deinit --addons' removes them.")
    if claims:
        click.echo(
            f"The state is kept in PersistentVolumeClaims: {', '.join(claims)}. init with the same flags uses it."
        )
    click.echo("A folder with state on a node is kept, if there was one (default /var/lib/karmada-etcd).")
