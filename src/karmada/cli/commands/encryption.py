"""`karmadactl new-encryption-key` and `rewrite`: changing the key that a control plane stores objects with."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.client.discovery import Mapping
    from karmada.kube.objects.types import Obj

_PAGE = 500
_DEFAULT = ("secrets", "works.work.karmada.io")
"""Resources that are encrypted unless configured otherwise."""


@click.command("new-encryption-key")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def new_encryption_key(file: Path) -> None:
    """Put a new key in front of the keys in FILE, an EncryptionConfiguration; the others still read.

    It is used from the next start of the server on. Run "karmadactl rewrite" then.

    \b
    Example:
      karmadactl new-encryption-key ~/.karmada/pki/encryption.yaml
    """
    from karmada.kube.server.storage.encryption import add_key

    try:
        name = add_key(file)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f'{file}: key "{name}" is the first one now; restart the server, then run karmadactl rewrite')


@click.command()
@click.argument("resources", nargs=-1)
@connect.connection_flags
def rewrite(resources: tuple[str, ...], way: connect.Way) -> None:
    """Store all objects of RESOURCES (default: secrets and works) again as they are, with the current encryption key.

    \b
    Examples:
      karmadactl rewrite
      karmadactl rewrite secrets configmaps
    """
    connect.run(_rewrite(way, resources))


async def _rewrite(way: connect.Way, resources: tuple[str, ...]) -> None:
    from karmada.kube.client.discovery import NoMatch

    async with way.open() as session:
        for resource in resources or _DEFAULT:
            try:
                mapping = await session.client.mapper.named(resource)
            except NoMatch:
                if resources:
                    raise
                continue  # a server without Karmada's kinds
            count = await _write_all_again(session.client, mapping)
            click.echo(f"{count:,} {resource} are stored with the current key")


async def _write_all_again(client: Client, mapping: Mapping) -> int:
    count, token = 0, ""
    while True:
        page = await client.list(mapping.gvr, limit=_PAGE, continue_=token)
        for obj in page["items"]:
            await _write_again(client, mapping, obj)
        count += len(page["items"])
        token = page["metadata"].get("continue", "")
        if not token:
            return count


async def _write_again(client: Client, mapping: Mapping, obj: Obj) -> None:
    """Write an object again as it is; one that somebody else has written or deleted meanwhile needs nothing more."""
    from karmada.kube.objects.errors import Conflict, NotFound

    typed = {"apiVersion": mapping.gvk.api_version, "kind": mapping.gvk.kind, **obj}
    with contextlib.suppress(Conflict, NotFound):
        await client.update(mapping.gvr, typed)
