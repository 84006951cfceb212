"""`karmadactl api-versions`: the API versions of a server."""

from __future__ import annotations

import click

from karmada.cli.targeting import connect
from karmada.cli.targeting.scope import chosen_cluster, one_cluster_flags


@click.command("api-versions")
@connect.connection_flags
@one_cluster_flags
def api_versions(way: connect.Way, scope: str, cluster: str) -> None:
    """List the API versions that the control plane or a member serves, as group/version.

    \b
    Examples:
      karmadactl api-versions
      karmadactl api-versions -s members --cluster member1
    """
    for version in connect.run(_read(way, chosen_cluster(scope, cluster))):
        click.echo(version)


async def _read(way: connect.Way, cluster: str) -> list[str]:

    async with way.server(cluster) as session:
        catalog = await session.client.mapper.catalog()
    return sorted({str(version) for version in (*catalog.group_versions, *catalog.failed)})
