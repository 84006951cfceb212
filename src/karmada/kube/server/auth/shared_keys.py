"""Several servers, one identity: the authorities' keys and the token key are kept in the store they share.

The first server puts those it has made into the store; every other one takes them from there before it issues its own
certificates. So a token or certificate from one server is good at all of them. A data directory that already has other
keys is not overwritten: whoever trusts those would be cut off. Only those that the store remembers as former ones, from
a rotation, are replaced; the former authority is kept as `old-ca.crt`, for --client-ca-file.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import orjson

from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.auth.files import private_directory, read_optional, write_private
from karmada.kube.server.auth.pki import AUTHORITIES, CertificateAuthority, Pki, generate_key_pem
from karmada.kube.server.storage.interface import RevisionConflict, Store
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.watchcache.entry import encode_value

KEY = "internal/keys/shared"
OLD_AUTHORITY = "old-ca.crt"
_FORMER = "former"
"""The entry with the digests of files that were replaced."""
log = get_logger("shared-keys")
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
        try:
            await store.write(KEY, _encode(_own(directory)), expected=0)
        except RevisionConflict:
            log.info("Another server was first: its keys are used")
        stored = await store.get(KEY)
    assert stored is not None, "keys are never deleted"
    _take(_decode(stored.value), directory)


def _own(directory: Path) -> dict[str, bytes]:
    """Return the keys of this directory.

    New ones are not in it before the store has them: other servers may be starting.
    """
    if any((directory / name).exists() for name in FILES):
        Pki.open(directory)
        return {name: (directory / name).read_bytes() for name in FILES}
    made = {name: CertificateAuthority.create(common).pair for name, common in AUTHORITIES.items()}
    files = {f"{name}.crt": pair.cert_pem for name, pair in made.items()}
    return {**files, **{f"{name}.key": pair.key_pem for name, pair in made.items()}, "sa.key": generate_key_pem()}


async def rotate_authority(store: Store) -> bytes:
    """Put a new authority into the store, for the next start of all servers; returns the former certificate."""
    stored = await store.get(KEY)
    if stored is None:
        raise ValueError("the store has no keys of a control plane yet: start a server on it first")
    shared = _decode(stored.value)
    made = CertificateAuthority.create(AUTHORITIES["ca"]).pair
    former = shared.get(_FORMER, b"").split() + [_digest(shared[name]) for name in ("ca.crt", "ca.key")]
    fresh = shared | {"ca.crt": made.cert_pem, "ca.key": made.key_pem, _FORMER: b"\n".join(former)}
    await store.write(KEY, _encode(fresh), expected=stored.revision)
    return shared["ca.crt"]


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _take(shared: dict[str, bytes], directory: Path) -> None:
    private_directory(directory)
    former = set(shared.get(_FORMER, b"").split())
    found = {name: read_optional(directory / name) for name in FILES}
    mine = {name: content for name, content in found.items() if content is not None and content != shared[name]}
    different = [name for name, content in mine.items() if _digest(content) not in former]
    if different:
        raise ForeignKeys(
            f"{directory} has keys of another control plane ({', '.join(different)}): use a new data directory, or the "
            "store these keys belong to. To give all servers of a store a new authority: karmadactl rotate-authority"
        )
    if "ca.crt" in mine:
        write_private(directory / OLD_AUTHORITY, mine["ca.crt"])
    for name in FILES:
        if found[name] != shared[name]:
            write_private(directory / name, shared[name])


def _encode(files: dict[str, bytes]) -> bytes:
    """In the form of an object, as everything in the store; no endpoint serves it."""
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return encode_value({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shared"}, "data": data})


def _decode(value: bytes) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in orjson.loads(value)["data"].items()}
