"""`karmadactl rotate-authority`: a new certificate authority for the servers of a control plane."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from karmada.cli.commands.backup import storage_option

_NEXT = (
    "Start the servers with --client-ca-file {old} while certificates of the former authority are in use, give their "
    "users the new admin.kubeconfig, and leave the flag out when nobody needs them any more."
)


@click.command("rotate-authority")
@storage_option
def rotate_authority(storage: str) -> None:
    """Replace the certificate authority of a control plane whose servers are stopped.

    Servers on etcd share the new one through the store: each takes it at its next start. A server on SQLite makes it at
    its next start. The former authority's certificate is kept as pki/old-ca.crt.

    \b
    Examples:
      karmadactl rotate-authority --data-dir ~/.karmada
      karmadactl rotate-authority --storage etcd://10.0.0.1:2379
    """
    from karmada.kube.server.storage.interface import StoreUnavailable

    try:
        if urlsplit(storage).scheme == "sqlite":
            directory = Path(unquote(urlsplit(storage).path)).parent / "pki"
            _retire(directory)
            click.echo(_NEXT.format(old=directory / "old-ca.crt"))
        else:
            asyncio.run(_rotate(storage))
            click.echo(_NEXT.format(old="pki/old-ca.crt of the data directory"))
    except (OSError, ValueError, StoreUnavailable) as error:
        raise click.ClickException(str(error)) from error


def _retire(directory: Path) -> None:
    """Remove the old authority; the next start makes one where there is none."""
    from karmada.kube.server.auth.files import locked, write_private
    from karmada.kube.server.auth.shared_keys import OLD_AUTHORITY

    with locked(directory):
        write_private(directory / OLD_AUTHORITY, (directory / "ca.crt").read_bytes())
        for name in ("ca.crt", "ca.key"):
            (directory / name).unlink()


async def _rotate(storage: str) -> None:
    from karmada.kube.server.auth import shared_keys
    from karmada.kube.server.storage.open import open_store

    store = open_store(storage)
    await store.open()
    try:
        await shared_keys.rotate_authority(store)
    finally:
        await store.close()
