"""`karmadactl backup` and `restore`: the state of a control plane in one file, from and to any store."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import click

from karmada.kube.server.storage import dump
from karmada.kube.server.storage.interface import StoreUnavailable
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.storage.sqlite_reader import SqliteReader


def storage_option(command: Callable[..., None]) -> Callable[..., None]:
    """--storage or --data-dir, of which the command gets the address as `storage`."""

    @click.option(
        "--storage",
        default="",
        help="The store, as in the server's --storage: sqlite:///path/to/state.db or etcd://host:port,…",
    )
    @click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="The data directory of a server that stores in state.db there, in place of --storage.",
    )
    @functools.wraps(command)
    def wrapped(*args: Any, storage: str, data_dir: Path | None, **given: Any) -> None:
        if bool(storage) == (data_dir is not None):
            raise click.UsageError("either --storage or --data-dir is required")
        if data_dir is not None:
            storage = f"sqlite://{quote(str(data_dir.expanduser().absolute() / 'state.db'))}"
        command(*args, storage=storage, **given)

    return wrapped


def _progress(word: str) -> dump.Progress:
    def show(count: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{word} {count:,} objects", nl=False, err=True)

    return show


def _run(work: Callable[[], Awaitable[int]]) -> int:
    async def run() -> int:
        return await work()

    try:
        count = asyncio.run(run())
    except (dump.BadDump, StoreUnavailable, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if sys.stderr.isatty():
        click.echo("", err=True)
    return count


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@storage_option
def backup(file: Path, storage: str) -> None:
    """Write a consistent snapshot of the store into FILE; servers may keep running.

    The snapshot holds every object with its uid, Secrets included: only you can read FILE. The certificates and keys in
    the data directory are not part of it.

    \b
    Examples:
      karmadactl backup monday.backup --data-dir ~/.karmada
      karmadactl backup monday.backup --storage etcd://10.0.0.1:2379
    """

    async def work() -> int:
        parts = urlsplit(storage)
        source = SqliteReader(unquote(parts.path)) if parts.scheme == "sqlite" else open_store(storage)
        await source.open()
        try:
            return await dump.back_up(source, file, _progress("Copied"))
        finally:
            await source.close()

    if file.exists():
        raise click.ClickException(f"{file} exists; remove it or choose another name")
    click.echo(f"{_run(work):,} objects in {file}")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@storage_option
def restore(file: Path, storage: str) -> None:
    """Restore the snapshot in FILE into an empty store; no server may run on it meanwhile.

    Objects keep their uids. Their resourceVersions are new, so clients list again.

    \b
    Example:
      karmadactl restore monday.backup --storage etcd://10.0.0.1:2379
    """

    async def work() -> int:
        store = open_store(storage)
        await store.open()
        try:
            return await dump.restore(store, file, _progress("Restored"))
        finally:
            await store.close()

    click.echo(f"{_run(work):,} objects from {file}")
