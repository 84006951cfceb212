"""`karmadactl check-store`: is everything in the store as it was written?"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import orjson

from karmada.cli.commands.backup import storage_option
from karmada.kube.server.storage.encryption import MARK
from karmada.kube.server.storage.interface import StoreUnavailable
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.storage.sqlite_check import examine
from karmada.kube.server.storage.sqlite_files import read_acknowledged

_PAGE = 1000


@click.command("check-store")
@storage_option
def check_store(storage: str) -> None:
    """Check every page, index and value of the store; servers may keep running.

    With SQLite the checksum of each value is compared and that no acknowledged write is missing. With etcd, which has
    checksums of its own, each value must be an object. Ends with code 1 if something is damaged.

    \b
    Examples:
      karmadactl check-store --data-dir ~/.karmada
      karmadactl check-store --storage etcd://10.0.0.1:2379
    """
    parts = urlsplit(storage)
    try:
        if parts.scheme == "sqlite":
            problems = _sqlite_problems(Path(unquote(parts.path)))
        else:
            problems = asyncio.run(_object_problems(storage))
    except (StoreUnavailable, ValueError, sqlite3.Error) as error:
        raise click.ClickException(str(error)) from error
    for problem in problems:
        click.echo(problem)
    if problems:
        raise click.ClickException(f"{storage} is damaged: restore a backup, or start the server with --accept-loss")
    click.echo(f"{storage} is in order")


def _sqlite_problems(path: Path) -> list[str]:
    if not path.exists():
        raise click.ClickException(f"{path} does not exist")
    acknowledged = read_acknowledged(path)  # before the database is read: a running server goes on
    return examine(path, acknowledged, rows=True)


async def _object_problems(storage: str) -> list[str]:
    store = open_store(storage)
    await store.open()
    problems: list[str] = []
    after, revision = "", 0
    try:
        while True:
            page = await store.range("", after=after, limit=_PAGE, revision=revision)
            problems += [
                f"{item.key} at revision {item.revision} is no object" for item in page.items if _bad(item.value)
            ]
            if not page.remaining:
                return problems
            after, revision = page.items[-1].key, page.revision
    finally:
        await store.close()


def _bad(value: bytes) -> bool:
    if value.startswith(MARK):
        return False
    try:
        return not isinstance(orjson.loads(value), dict)
    except orjson.JSONDecodeError:
        return True
