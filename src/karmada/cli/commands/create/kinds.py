"""`create secret` and `create service`, which have subcommands of their own for the types there are."""

from __future__ import annotations

import click

from karmada.cli.commands.create import Entry, Subcommands

SECRETS = {
    "docker-registry": Entry("data:docker_registry"),
    "generic": Entry("data:generic"),
    "tls": Entry("data:tls"),
}
SERVICES = {
    "clusterip": Entry("networking:clusterip"),
    "externalname": Entry("networking:externalname"),
    "loadbalancer": Entry("networking:loadbalancer"),
    "nodeport": Entry("networking:nodeport"),
}


@click.command(cls=Subcommands, table=SECRETS)
def secret() -> None:
    """Create a secret of a type.

    \b
    Example:
      karmadactl create secret generic database --from-literal=password=open
    """


@click.command(cls=Subcommands, table=SERVICES)
def service() -> None:
    """Create a service of a type.

    \b
    Example:
      karmadactl create service clusterip web --tcp=80:8080
    """
