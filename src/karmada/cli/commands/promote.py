"""`karmadactl promote`: bring an existing resource of a cluster under the control plane.

The resource is copied without its cluster-specific fields and created in the control plane, with a policy that
propagates it to its cluster and adopts the existing object there: nothing stops running.
"""

from __future__ import annotations

from typing import Any

import click

from karmada.cli.targeting import connect


@click.command()
@click.argument("words", nargs=-1, metavar="TYPE NAME")
@click.option("-C", "--cluster", default="", help="The cluster of the resource.")
@click.option("--cluster-context", default="", help="The context in the cluster's kubeconfig [the cluster's name].")
@click.option(
    "--cluster-kubeconfig", default="", help="The cluster's kubeconfig, instead of the control plane's proxy."
)
@click.option(
    "--auto-create-policy",
    is_flag=True,
    default=True,
    help="Create a policy that propagates the resource to its cluster.",
)
@click.option("--policy-name", default="", help="The name of the policy [made from the resource].")
@click.option("-d", "--dependencies", is_flag=True, help="Promote its dependencies, too.")
@click.option(
    "-o", "--output", default="", help="Print the objects that would be created, as json or yaml, and create nothing."
)
@connect.dry_run_flag
@connect.connection_flags
@connect.namespace_flag
def promote(words: tuple[str, ...], **flags: Any) -> None:
    """Bring an existing resource of a cluster under the control plane without interrupting it.

    \b
    Examples:
      karmadactl promote deployment nginx -C member1
      karmadactl promote deployment nginx -n shop -C member1 -d
      karmadactl promote clusterrole viewer -C member1 --auto-create-policy=false
      karmadactl promote deployment nginx -C member1 -o yaml
    """
    if len(words) != 2:
        raise connect.failure("incorrect command format, please use correct command format")
    if not flags["cluster"]:
        raise connect.failure("the cluster cannot be empty")
    if flags["output"] not in ("", "json", "yaml"):
        wrong = f'unable to match a printer suitable for the output format "{flags["output"]}"'
        raise connect.failure(f"{wrong}, allowed formats are: json,yaml")
    from karmada.cli.changing.promoting import promote_resource

    connect.run(promote_resource(words[0], words[1], flags))
