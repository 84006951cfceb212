"""`karmadactl quarantine`: what controllers leave alone because it hung their event loop, and its release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.client.config import RestConfig
    from karmada.kube.runtime.quarantine import Entry

_HEADER = ("CONTROLLER", "KEY", "SINCE", "HUNG FOR", "IN")


@click.group()
def quarantine() -> None:
    """List and release what controllers leave alone because it hung the event loop of their process.

    \b
    Examples:
      karmadactl quarantine list
      karmadactl quarantine release resource-detector default/apps/v1/Deployment/nginx
    """


@quarantine.command("list")
@connect.connection_flags
def list_(way: connect.Way) -> None:
    """List what is in quarantine; * are all keys of a controller.

    \b
    Examples:
      karmadactl quarantine list
    """
    from karmada.cli.output.columns import columns

    entries = connect.run(_list(way.config()))
    if not entries:
        click.echo("nothing is in quarantine")
        return
    rows = [_HEADER, *((one.controller, one.key, one.since, f"{one.seconds:g}s", _innermost(one)) for one in entries)]
    click.echo(columns(rows), nl=False)


def _innermost(entry: Entry) -> str:
    return entry.stack.partition(" < ")[0]


@quarantine.command("release")
@click.argument("words", nargs=-1, metavar="CONTROLLER KEY")
@click.option("--all", "everything", is_flag=True, help="Release everything.")
@connect.connection_flags
def release(words: tuple[str, ...], everything: bool, way: connect.Way) -> None:
    """Have a controller handle a key again, although its object has not changed.

    \b
    Examples:
      karmadactl quarantine release resource-detector default/apps/v1/Deployment/nginx
      karmadactl quarantine release resource-detector '*'
      karmadactl quarantine release --all
    """
    if everything == bool(words) or len(words) not in (0, 2):
        raise connect.failure("either a controller and a key, as quarantine list shows them, or --all")
    released = connect.run(_release(way.config(), words))
    for entry in released:
        click.echo(f"{entry.key} of {entry.controller} released")
    if words and not released:
        raise connect.failure(f"{words[1]} of {words[0]} is not in quarantine")


async def _list(config: RestConfig) -> list[Entry]:
    async with connect.connected(config) as client:
        return await _entries(client)


async def _release(config: RestConfig, words: Sequence[str]) -> list[Entry]:
    """Release one entry, or without words all."""
    from karmada.api.quarantine import key_of_map
    from karmada.kube.objects.gvrs import CONFIG_MAPS
    from karmada.kube.runtime.writes import delete_if_exists

    async with connect.connected(config) as client:
        entries = [entry for entry in await _entries(client) if not words or entry.name == tuple(words)]
        for entry in entries:
            key = key_of_map(entry)
            await delete_if_exists(client, CONFIG_MAPS, key.name, key.namespace)
        return entries


async def _entries(client: Client) -> list[Entry]:
    from karmada.api.quarantine import LABEL, NAMESPACE, from_map
    from karmada.kube.objects.gvrs import CONFIG_MAPS

    maps = (await client.list_all(CONFIG_MAPS, NAMESPACE, label_selector=LABEL)).items
    return sorted((entry for entry in map(from_map, maps) if entry is not None), key=lambda entry: entry.name)
