"""Encryption at rest: which resources are stored encrypted, by which key.

The configuration is Kubernetes' EncryptionConfiguration. A stored value begins with `k8s:enc:<provider>:v1:<key>:`,
so a value says by itself how it is read, and plain values from before can stand beside encrypted ones. The first key of
the first provider writes, all of them read. A value that was not written by it is stale: an update that changes nothing
is carried out for it, which is how keys are rotated. With an AEAD (aesgcm, chacha20poly1305) the key of the object is
part of what is authenticated, so a value cannot be moved to another name. A store may pack values before (packing.py).
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import yaml
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher as BlockCipher
from cryptography.hazmat.primitives.ciphers import algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.padding import PKCS7

from karmada.kube.server.auth.files import read_optional, write_private
from karmada.kube.server.storage.interface import StoreUnavailable
from karmada.kube.server.storage.packing import unpack

MARK = b"k8s:enc:"
_API_VERSIONS = ("apiserver.config.k8s.io/v1", "v1")
_NONCE = 12
_BLOCK = 16


class Undecipherable(StoreUnavailable):
    """A value is encrypted by a key that is not configured, or it was changed."""


class Cipher(Protocol):
    def seal(self, value: bytes, context: bytes, /) -> bytes: ...

    def open(self, sealed: bytes, context: bytes, /) -> bytes:
        """ValueError or InvalidTag if it was not sealed by this key, for an AEAD in this context."""


class Aead:
    """AES-GCM and ChaCha20-Poly1305, with a random nonce in front."""

    def __init__(self, algorithm: AESGCM | ChaCha20Poly1305) -> None:
        self._algorithm = algorithm

    def seal(self, value: bytes, context: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._algorithm.encrypt(nonce, value, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        return self._algorithm.decrypt(sealed[:_NONCE], sealed[_NONCE:], context)


class AesCbc:
    """As Kubernetes has it: it hides a value, but a changed one is not noticed."""

    def __init__(self, key: bytes) -> None:
        self._algorithm = algorithms.AES(key)

    def seal(self, value: bytes, _context: bytes, /) -> bytes:
        start = os.urandom(_BLOCK)
        padder = PKCS7(_BLOCK * 8).padder()
        encryptor = BlockCipher(self._algorithm, modes.CBC(start)).encryptor()
        return start + encryptor.update(padder.update(value) + padder.finalize()) + encryptor.finalize()

    def open(self, sealed: bytes, _context: bytes, /) -> bytes:
        decryptor = BlockCipher(self._algorithm, modes.CBC(sealed[:_BLOCK])).decryptor()
        unpadder = PKCS7(_BLOCK * 8).unpadder()
        padded = decryptor.update(sealed[_BLOCK:]) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()


class SecretBox:
    """XSalsa20-Poly1305 of NaCl, as Kubernetes has it: notices a changed value, but not one of another object."""

    def __init__(self, key: bytes) -> None:
        from nacl.exceptions import CryptoError
        from nacl.secret import SecretBox as NaclBox

        self._box, self._refused = NaclBox(key), CryptoError

    def seal(self, value: bytes, _context: bytes, /) -> bytes:
        return bytes(self._box.encrypt(value))

    def open(self, sealed: bytes, _context: bytes, /) -> bytes:
        try:
            return bytes(self._box.decrypt(sealed))
        except self._refused as error:
            raise ValueError(str(error)) from error


class _Kind(NamedTuple):
    sizes: tuple[int, ...]
    make: Callable[[bytes], Cipher]


_KINDS = {
    "aesgcm": _Kind((16, 24, 32), lambda key: Aead(AESGCM(key))),
    "aescbc": _Kind((16, 24, 32), AesCbc),
    "secretbox": _Kind((32,), SecretBox),
    "chacha20poly1305": _Kind((32,), lambda key: Aead(ChaCha20Poly1305(key))),
}


class Key(NamedTuple):
    prefix: bytes
    """Prefix of a value that this key has encrypted."""
    cipher: Cipher


class Rule(NamedTuple):
    resources: tuple[str, ...]
    """`secrets`, `deployments.apps`, `*.apps`, `*.` for the core group, `*.*`."""
    keys: tuple[Key, ...]
    plain_first: bool
    """The first provider is identity: what is written stays plain."""

    def selects(self, group: str, resource: str) -> bool:
        names = {f"{resource}.{group}" if group else resource, f"*.{group}", "*.*"}
        return not names.isdisjoint(self.resources)


class Encryption:
    """The encryption of every value that a store writes or reads."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._keys = {key.prefix: key for rule in rules for key in rule.keys}
        self._rules = rules
        self._writing: dict[str, Key | None] = {}
        """Keys to write with, by the part of a storage key that names the resource."""
        self._stale: set[str] = set()

    def encoder(self, start: str) -> Callable[[str, bytes], bytes] | None:
        """Return `encode` for a resource, by what its keys start with; None if its values are stored as they are."""
        return None if not self._stale and self._writes(start) is None else self.encode

    def encode(self, key: str, value: bytes) -> bytes:
        writing = self._writes(key)
        self._stale.discard(key)
        return value if writing is None else writing.prefix + writing.cipher.seal(value, key.encode())

    def decode(self, key: str, stored: bytes, /) -> bytes:
        """Return the value."""
        return unpack(key, self.reveal(key, stored))

    def reveal(self, key: str, stored: bytes, /) -> bytes:
        """Return the value as it was before it was encrypted: perhaps packed."""
        writing = self._writes(key)
        if not stored.startswith(MARK):
            if writing is not None:
                self._stale.add(key)
            return stored
        reading, sealed = self._reads(key, stored)
        if reading is not writing:
            self._stale.add(key)
        elif self._stale:
            self._stale.discard(key)
        try:
            return reading.cipher.open(sealed, key.encode())
        except (InvalidTag, ValueError) as error:
            raise Undecipherable(
                f"{key} cannot be decrypted by {_name(reading.prefix)}: it was changed, or the key is another of the "
                "same name. Restore the key file (or a backup), or delete this key from the store"
            ) from error

    def is_stale(self, key: str) -> bool:
        """Return whether it was read in another form than it would be written in."""
        return key in self._stale

    def _writes(self, key: str) -> Key | None:
        if not self._rules:
            return None
        end = key.find("/", key.find("/") + 1)
        named = key[:end] if end > 0 else key
        try:
            return self._writing[named]
        except KeyError:
            found = self._writing[named] = self._chosen(named)
            return found

    def _chosen(self, named: str) -> Key | None:
        group, _, resource = named.partition("/")
        for rule in self._rules:
            if rule.selects("" if group == "core" else group, resource):
                return None if rule.plain_first or not rule.keys else rule.keys[0]
        return None

    def _reads(self, key: str, stored: bytes) -> tuple[Key, bytes]:
        parts = stored.split(b":", 5)
        prefix = b":".join(parts[:5]) + b":"
        found = self._keys.get(prefix)
        if found is None or len(parts) < 6:
            raise Undecipherable(
                f"{key} is encrypted by {_name(prefix)}, which the encryption configuration does not have: add this key"
            )
        return found, parts[5]


class AsStored(Encryption):
    """For programs that copy a store or look into it: encrypted values pass as they are stored."""

    def reveal(self, _key: str, stored: bytes, /) -> bytes:
        return stored


PLAIN = Encryption(())
"""For a server without keys: nothing is encrypted, and nothing encrypted can be read."""
AS_STORED = AsStored(())


def _name(prefix: bytes) -> str:
    _, _, provider, _, name, *_ = (*prefix.decode(errors="replace").split(":"), "", "", "", "")
    return f'{provider} key "{name}"'


def read_encryption(path: Path) -> Encryption:
    """ValueError, with the field, for a configuration that cannot be used."""
    try:
        document = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from error
    try:
        return Encryption(tuple(_rules(document)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _rules(document: Any) -> Iterator[Rule]:
    if not isinstance(document, dict) or document.get("kind") not in ("EncryptionConfiguration", "EncryptionConfig"):
        raise ValueError("kind: must be EncryptionConfiguration")
    if document.get("apiVersion") not in _API_VERSIONS:
        raise ValueError(f"apiVersion: must be {_API_VERSIONS[0]}")
    rules = document.get("resources")
    if not isinstance(rules, list) or not rules:
        raise ValueError("resources: Required value")
    for number, rule in enumerate(rules):
        where = f"resources[{number}]"
        resources, providers = rule.get("resources"), rule.get("providers")
        if not resources:
            raise ValueError(f"{where}.resources: Required value")
        if not providers:
            raise ValueError(f"{where}.providers: Required value")
        keys = [key for i, provider in enumerate(providers) for key in _keys(provider, f"{where}.providers[{i}]")]
        yield Rule(tuple(map(str, resources)), tuple(keys), "identity" in providers[0])


def _keys(provider: Any, where: str) -> Iterator[Key]:
    if not isinstance(provider, dict) or len(provider) != 1:
        raise ValueError(f"{where}: must have exactly one provider")
    [(name, settings)] = provider.items()
    if name == "identity":
        return
    if name not in _KINDS:
        raise ValueError(f"{where}.{name}: not supported (known: identity, {', '.join(_KINDS)})")
    found = (settings or {}).get("keys")
    if not found:
        raise ValueError(f"{where}.{name}.keys: Required value")
    for number, key in enumerate(found):
        yield _key(name, key, f"{where}.{name}.keys[{number}]")


def _key(provider: str, key: Any, where: str) -> Key:
    name, secret = str(key.get("name", "")), str(key.get("secret", ""))
    if not name or ":" in name:
        raise ValueError(f"{where}.name: must not be empty nor hold a colon")
    try:
        raw = base64.b64decode(secret, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{where}.secret: must be base64") from error
    kind = _KINDS[provider]
    if len(raw) not in kind.sizes:
        raise ValueError(f"{where}.secret: has {len(raw)} bytes, must have {' or '.join(map(str, kind.sizes))}")
    return Key(MARK + f"{provider}:v1:{name}:".encode(), kind.make(raw))


def new_key() -> dict[str, str]:
    """Return a name that says which key it is, so that another one is never taken for it."""
    return {"name": f"key-{os.urandom(4).hex()}", "secret": base64.b64encode(os.urandom(32)).decode()}


def make_configuration(path: Path, resources: Sequence[str]) -> None:
    """Make a configuration of these resources with a new key; readable by the owner only.

    A file that is there stays, but what earlier versions made, for Secrets alone, gets the other resources as well.
    """
    if read_optional(path) is None:
        providers: list[Any] = [{"aesgcm": {"keys": [new_key()]}}, {"identity": {}}]
        _write(path, {"resources": [{"resources": list(resources), "providers": providers}]})
        return
    read_encryption(path)
    document = yaml.safe_load(path.read_text())
    rules = document["resources"]
    if len(rules) == 1 and rules[0]["resources"] == ["secrets"] != list(resources):
        rules[0]["resources"] = list(resources)
        _write(path, document)


def add_key(path: Path) -> str:
    """Put a new key in front of each list of keys that is written with; returns its name."""
    read_encryption(path)
    document = yaml.safe_load(path.read_text())
    key = new_key()
    for rule in document["resources"]:
        [(_, settings)] = rule["providers"][0].items()
        if settings:
            settings["keys"].insert(0, dict(key))
    _write(path, document)
    return key["name"]


def _write(path: Path, document: dict[str, Any]) -> None:
    head = {"apiVersion": _API_VERSIONS[0], "kind": "EncryptionConfiguration"}
    write_private(path, yaml.safe_dump({**head, **document}, sort_keys=False).encode())
