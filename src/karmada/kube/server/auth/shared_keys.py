"""Several servers, one identity: the authorities' keys and the token key are kept in the store they share.

The first server puts those it has made into the store; every other one takes them from there before it issues its own
certificates. So a token or certificate from one server is good at all of them. A data directory that already has other
keys is not overwritten: whoever trusts those would be cut off.
"""

from __future__ import annotations

import base64
from pathlib import Path

import orjson

from karmada.kube.server.auth.files import private_directory, read_optional, write_private
from karmada.kube.server.auth.pki import Pki
from karmada.kube.server.storage.interface import RevisionConflict, Store
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.watchcache.entry import encode_value

KEY = "internal/keys/shared"
FILES = ("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key")


class ForeignKeys(ValueError):
    """The data directory belongs to another control plane."""


async def share_keys_through(url: str, directory: Path) -> None:
    """`share_keys` with the store at this address."""
    store = open_store(url)
    await store.open()
    try:
        await share_keys(store, directory)
    finally:
        await store.close()


async def share_keys(store: Store, directory: Path) -> None:
    """Make the keys in `directory` and those in the store the same."""
    stored = await store.get(KEY)
    if stored is None:
        Pki.open(directory)
        mine = {name: (directory / name).read_bytes() for name in FILES}
        try:
            await store.write(KEY, _encode(mine), expected=0)
        except RevisionConflict:
            stored = await store.get(KEY)
    if stored is not None:
        _take(_decode(stored.value), directory)


def _take(shared: dict[str, bytes], directory: Path) -> None:
    private_directory(directory)
    mine = {name: read_optional(directory / name) for name in FILES}
    different = [name for name, content in mine.items() if content is not None and content != shared[name]]
    if different:
        raise ForeignKeys(
            f"{directory} has keys of another control plane ({', '.join(different)}): "
            "use a new data directory, or the store these keys belong to"
        )
    for name, content in shared.items():
        if mine[name] is None:
            write_private(directory / name, content)


def _encode(files: dict[str, bytes]) -> bytes:
    """In the form of an object, as everything in the store; no endpoint serves it."""
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return encode_value({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shared"}, "data": data})


def _decode(value: bytes) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in orjson.loads(value)["data"].items()}
