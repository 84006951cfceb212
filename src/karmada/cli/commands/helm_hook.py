"""`karmadactl helm-hook`: what the jobs of the Helm chart run in a pod."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.install.release import Release

_release = click.option("--release", required=True, help="The name in front of the names of its objects.")
_namespace = click.option("-n", "--namespace", required=True, help="The namespace of the release.")
_domain = click.option(
    "--cluster-domain", default="cluster.local", show_default=True, help="The DNS domain of the cluster."
)


@click.group("helm-hook")
def helm_hook() -> None:
    """Do what the Helm chart cannot: certificates, their removal, and objects of the control plane. For its jobs.

    \b
    Examples:
      karmadactl helm-hook certificates --release karmada --namespace karmada-system
      karmadactl helm-hook clean-up --release karmada --namespace karmada-system
    """


@helm_hook.command()
@_release
@_namespace
@_domain
@click.option("--helm-release", default="", help="The release's name, where it is longer.")
@click.option("--host", "hosts", multiple=True, help="Name or address of the servers' certificate; repeatable.")
@click.option(
    "--expiry", type=connect.Duration(), default="43800h", show_default=True, help="How long certificates are valid."
)
@click.option("--etcd-replicas", default=0, show_default=True, help="The number of etcd's pods; 0 for none.")
def certificates(**given: Any) -> None:
    """Issue the certificates of a release, or renew those that near their end.

    \b
    Examples:
      karmadactl helm-hook certificates --release karmada --namespace karmada-system --host karmada.example.com
    """
    from karmada.install.release import write_secrets

    release = _release_of(given)

    async def write() -> None:
        async with connect.connected(connect.member_config()) as client:
            outcomes = await write_secrets(client, release, time.time(), click.echo)
        for name, outcome in outcomes.items():
            click.echo(f"secret/{name} {outcome}")

    connect.run(write())


@helm_hook.command("control-plane")
@_release
@_namespace
@_domain
@click.option("--kubeconfig", required=True, help="The kubeconfig of the control plane.")
@click.option("--ca-file", required=True, type=click.Path(), help="The authority of the servers' certificates.")
@click.option(
    "--timeout", type=connect.Duration(), default="10m", show_default=True, help="How long to wait for its servers."
)
@click.option(
    "--addon",
    "addons",
    multiple=True,
    type=click.Choice(["karmada-metrics-adapter", "karmada-search"]),
    help="An add-on of the release whose APIs are served; repeatable.",
)
def control_plane(kubeconfig: str, ca_file: str, timeout: float, addons: tuple[str, ...], **given: Any) -> None:
    """Put into the control plane of a release what its servers do not have by themselves: definitions, webhooks, roles.

    \b
    Examples:
      karmadactl helm-hook control-plane --release karmada -n karmada-system --kubeconfig cp.config --ca-file ca.crt
    """
    from karmada.install.release import write_objects
    from karmada.kube.objects.clock import SYSTEM

    release = _release_of({"hosts": (), "expiry": 1.0, "etcd_replicas": 1, "helm_release": "", **given})
    authority = _read(ca_file)

    async def write() -> None:
        async with connect.connected(connect.control_config(kubeconfig)) as client:
            await write_objects(client, release, authority, SYSTEM, _changes(), addons=addons, seconds=timeout)

    connect.run(write())


def _release_of(given: dict[str, Any]) -> Release:
    from karmada.install.release import Release

    return Release(
        name=given["release"],
        helm_name=given["helm_release"] or given["release"],
        namespace=given["namespace"],
        domain=given["cluster_domain"],
        hosts=tuple(given["hosts"]),
        seconds=given["expiry"],
        etcd_members=given["etcd_replicas"],
    )


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise connect.failure(f"--ca-file: {path}: {error.strerror}") from error


def _changes() -> Callable[[str], None]:
    """Print a line when it is another than the one before: the reasons to wait repeat themselves."""
    last = ""

    def show(text: str) -> None:
        nonlocal last
        if text != last:
            click.echo(text)
        last = text

    return show


@helm_hook.command("clean-up")
@_release
@_namespace
def clean_up(release: str, namespace: str) -> None:
    """Delete the certificates of a release that was uninstalled.

    \b
    Examples:
      karmadactl helm-hook clean-up --release karmada --namespace karmada-system
    """
    from karmada.install.release import delete_secrets, secret_names

    async def delete() -> None:
        async with connect.connected(connect.member_config()) as client:
            deleted = await delete_secrets(client, namespace, secret_names(release))
        for name in deleted:
            click.echo(f"secret/{name} deleted")

    connect.run(delete())
