"""What is listed is stored encrypted, whatever the store; keys are found by name, and rotate."""

from __future__ import annotations

import asyncio
import base64
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from karmada.cli.commands.encryption import new_encryption_key
from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.storage import dump
from karmada.kube.server.storage.encryption import (
    PLAIN,
    Encryption,
    Undecipherable,
    make_configuration,
    read_encryption,
)
from karmada.kube.server.storage.interface import Store
from karmada.kube.server.storage.memory import MemoryStore
from karmada.kube.server.storage.open import open_store
from karmada.kube.server.storage.packing import pack
from karmada.kube.server.storage.sqlite_reader import SqliteReader
from tests.support.cases import cases
from tests.support.etcd_cluster import EtcdCluster

KEY = "core/secrets/default/password"
WORK = "work.karmada.io/works/karmada-es-member1/password"
VALUE = b'{"apiVersion":"v1","kind":"Secret","metadata":{"name":"password"},"data":{"word":"sesame"}}'


def key(name: str, size: int = 32) -> dict[str, str]:
    return {"name": name, "secret": base64.b64encode(name[:1].encode() * size).decode()}


def configuration(*providers: dict[str, Any], resources: tuple[str, ...] = ("secrets",)) -> dict[str, Any]:
    rules = [{"resources": list(resources), "providers": list(providers)}]
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": rules}


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(document))
    return path


def encryption(tmp_path: Path, *providers: dict[str, Any], resources: tuple[str, ...] = ("secrets",)) -> Encryption:
    return read_encryption(written(tmp_path / "encryption.yaml", configuration(*providers, resources=resources)))


@pytest.mark.parametrize("provider", ["aesgcm", "aescbc", "secretbox", "chacha20poly1305"])
@given(value=st.binary(max_size=200))
def test_what_is_encoded_is_decoded_again(
    tmp_path_factory: pytest.TempPathFactory, provider: str, value: bytes
) -> None:
    codec = encryption(tmp_path_factory.mktemp("law"), {provider: {"keys": [key("one")]}})
    stored = codec.encode(KEY, pack(value))
    assert stored.startswith(b"k8s:enc:%b:v1:one:" % provider.encode())
    assert codec.decode(KEY, stored) == value
    assert codec.encode(KEY, pack(value)) != stored, "equal values must not look equal"


@cases(
    ("secrets", KEY, True),
    ("secrets", "core/configmaps/default/c", False),
    ("deployments.apps", "apps/deployments/default/d", True),
    ("deployments", "apps/deployments/default/d", False),
    ("*.apps", "apps/replicasets/default/r", True),
    ("*.apps", KEY, False),
    ("*.", KEY, True),
    ("*.", "apps/deployments/default/d", False),
    ("*.*", "work.karmada.io/works/karmada-es-m/w", True),
    ("secrets", "secrets.example.io/secrets/name", False),
)
def test_the_list_says_what_is_encrypted(listed: str, storage_key: str, encrypted: bool, tmp_path: Path) -> None:
    codec = encryption(tmp_path, {"aesgcm": {"keys": [key("one")]}}, resources=(listed,))
    assert codec.encode(storage_key, VALUE).startswith(b"k8s:enc:") is encrypted


def test_a_value_that_was_changed_or_moved_is_not_read(tmp_path: Path) -> None:
    codec = encryption(tmp_path, {"aesgcm": {"keys": [key("one")]}})
    stored = codec.encode(KEY, VALUE)
    with pytest.raises(Undecipherable, match="core/secrets/other/password cannot be decrypted"):
        codec.decode("core/secrets/other/password", stored)
    with pytest.raises(Undecipherable, match=KEY):
        codec.decode(KEY, stored[:-1] + bytes([stored[-1] ^ 1]))


@cases("aesgcm", "secretbox", "chacha20poly1305")
def test_a_changed_value_is_noticed(provider: str, tmp_path: Path) -> None:
    codec = encryption(tmp_path, {provider: {"keys": [key("one")]}})
    stored = codec.encode(KEY, VALUE)
    for changed in (stored[:-1] + bytes([stored[-1] ^ 1]), stored[:-1], stored[: stored.index(b"one:") + 9]):
        with pytest.raises(Undecipherable, match=f'{KEY} cannot be decrypted by {provider} key "one"'):
            codec.decode(KEY, changed)


def test_secretbox_reads_what_kubernetes_has_written(tmp_path: Path) -> None:
    """The vector of NaCl's crypto_secretbox, in the form that a kube-apiserver stores."""
    secret = base64.b64encode(bytes.fromhex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389"))
    nonce = bytes.fromhex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37")
    box = bytes.fromhex(
        "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5"
    )
    codec = encryption(tmp_path, {"secretbox": {"keys": [{"name": "one", "secret": secret.decode()}]}})
    value = codec.decode(KEY, b"k8s:enc:secretbox:v1:one:" + nonce + box)
    assert value[:8] == bytes.fromhex("be075fc53c81f2d5")
    assert len(value) == 131


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    stored = encryption(tmp_path, {"aesgcm": {"keys": [key("one")]}}).encode(KEY, VALUE)
    for codec in (encryption(tmp_path, {"aesgcm": {"keys": [key("two")]}}), PLAIN):
        with pytest.raises(Undecipherable, match=f'{KEY} is encrypted by aesgcm key "one", which .* add this key'):
            codec.decode(KEY, stored)


def test_all_keys_read_and_what_the_first_has_not_written_is_stale(tmp_path: Path) -> None:
    one, two = {"aesgcm": {"keys": [key("one")]}}, {"aescbc": {"keys": [key("two")]}}
    old = encryption(tmp_path, one).encode(KEY, VALUE)
    codec = encryption(tmp_path, two, one, {"identity": {}})
    for stored in (old, VALUE):
        assert codec.decode(KEY, stored) == VALUE
        assert codec.is_stale(KEY)
        new = codec.encode(KEY, VALUE)
        assert new.startswith(b"k8s:enc:aescbc:v1:two:")
        assert not codec.is_stale(KEY)
        assert codec.decode(KEY, new) == VALUE
        assert not codec.is_stale(KEY)


def test_identity_first_decrypts_what_is_written_next(tmp_path: Path) -> None:
    one = {"aesgcm": {"keys": [key("one")]}}
    stored = encryption(tmp_path, one).encode(KEY, VALUE)
    codec = encryption(tmp_path, {"identity": {}}, one)
    assert codec.decode(KEY, stored) == VALUE
    assert codec.is_stale(KEY)
    assert codec.encode(KEY, VALUE) == VALUE


@cases(
    ({"kind": "Secret"}, "kind: must be EncryptionConfiguration"),
    ({**configuration(), "resources": []}, "resources: Required value"),
    (configuration(), r"resources\[0\].providers: Required value"),
    (configuration({"kms": {"name": "one"}}), r"providers\[0\].kms: not supported \(known: identity, aesgcm"),
    (configuration({"secretbox": {"keys": [key("one", 16)]}}), r"keys\[0\].secret: has 16 bytes, must have 32"),
    (configuration({"aesgcm": {"keys": []}}), r"providers\[0\].aesgcm.keys: Required value"),
    (configuration({"aesgcm": {"keys": [key("one", 5)]}}), r"keys\[0\].secret: has 5 bytes, must have 16 or 24"),
    (configuration({"aesgcm": {"keys": [{"name": "a", "secret": "?"}]}}), r"keys\[0\].secret: must be base64"),
    (configuration({"aesgcm": {"keys": [key("a:b")]}}), r"keys\[0\].name: must not be empty nor hold a colon"),
)
def test_a_bad_configuration_is_refused_with_the_field(document: dict[str, Any], error: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"encryption.yaml: .*{error}"):
        read_encryption(written(tmp_path / "encryption.yaml", document))


@pytest.fixture(params=["sqlite", "etcd"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    if request.param == "sqlite":
        yield f"sqlite://{tmp_path}/state.db"
    else:
        etcd: EtcdCluster = request.getfixturevalue("etcd")
        yield f"{etcd.url}?prefix=/encryption/{os.urandom(4).hex()}"


async def test_both_stores_hold_no_plain_secret_and_give_it_back(url: str, tmp_path: Path) -> None:
    codec = encryption(tmp_path, {"aesgcm": {"keys": [key("one")]}})
    store = open_store(url, encryption=codec)
    await store.open()
    first = await store.write(KEY, VALUE, expected=0)
    second = await store.write(KEY, VALUE + b" ", expected=first)
    got = await store.get(KEY)
    assert got is not None
    assert got.value == VALUE + b" "
    assert [item.value for item in (await store.range("core/")).items] == [VALUE + b" "]
    [event] = await store.history("", since=first, until=second)
    assert event.previous is not None
    assert (event.value, event.previous.value) == (VALUE + b" ", VALUE)
    async for [watched] in store.watch("", since=first):
        assert watched.value == VALUE + b" "
        break
    await store.close()

    raw = open_store(url)
    await raw.open()
    [item] = (await raw.range("core/")).items
    await raw.close()
    assert item.value.startswith(b"k8s:enc:aesgcm:v1:one:")
    assert b"sesame" not in item.value
    if url.startswith("sqlite"):
        content = (tmp_path / "state.db").read_bytes()
        assert b"sesame" not in content


async def test_a_copy_keeps_what_is_encrypted_and_needs_no_key(tmp_path: Path) -> None:
    codec = encryption(tmp_path, {"aesgcm": {"keys": [key("one")]}})
    source = open_store(f"sqlite://{tmp_path}/state.db", encryption=codec)
    await source.open()
    await source.write(KEY, VALUE, expected=0)
    await source.write("core/configmaps/default/c", b'{"kind":"ConfigMap"}', expected=0)
    reader = SqliteReader(tmp_path / "state.db")
    await reader.open()
    assert await dump.back_up(reader, tmp_path / "copy") == 2
    await reader.close()
    await source.close()
    plain = MemoryStore()
    await dump.restore(plain, tmp_path / "copy")
    copied = await plain.get(KEY)
    assert copied is not None
    assert copied.value.startswith(b"k8s:enc:")

    target: Store = open_store(f"sqlite://{tmp_path}/other.db")
    await target.open()
    await dump.restore(target, tmp_path / "copy")
    await target.close()
    target = open_store(f"sqlite://{tmp_path}/other.db", encryption=codec)
    await target.open()
    assert [item.value for item in (await target.range("")).items] == [b'{"kind":"ConfigMap"}', VALUE]
    await target.close()


class Served:
    """A server over a data directory, for as long as the block."""

    def __init__(self, folder: Path) -> None:
        self.server = ApiServer(ServerConfig(data_dir=folder, port=0))

    async def __aenter__(self) -> Client:
        await self.server.start()
        return self.server.client()

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()


async def stored(folder: Path) -> bytes:
    reader = SqliteReader(folder / "state.db")
    await reader.open()
    [item] = (await reader.range(KEY)).items
    await reader.close()
    return item.value


async def test_secrets_are_encrypted_by_default_and_the_key_rotates_by_rewriting(tmp_path: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"word": "sesame"}}
    async with Served(tmp_path) as client:
        await client.create(SECRETS, secret, namespace="default")
    file = tmp_path / "pki" / "encryption.yaml"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    first = await stored(tmp_path)
    assert first.startswith(b"k8s:enc:aesgcm:v1:key-")

    rotated = CliRunner().invoke(new_encryption_key, [str(file)])
    assert rotated.exit_code == 0, rotated.output
    async with Served(tmp_path) as client:
        found = await client.get(SECRETS, "password", "default")
        assert found["data"] == {"word": base64.b64encode(b"sesame").decode()}
        again = await client.update(SECRETS, found)
        assert again["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]
        same = await client.update(SECRETS, again)
        assert same["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"], "nothing was left to do"
    second = await stored(tmp_path)
    assert second.split(b":")[4] != first.split(b":")[4]
    assert second.split(b":")[4].decode() in rotated.output


def test_a_configuration_of_an_earlier_version_gets_what_is_encrypted_by_default_now(tmp_path: Path) -> None:
    file = tmp_path / "encryption.yaml"
    make_configuration(file, ["secrets"])
    secret = read_encryption(file).encode(KEY, VALUE)
    make_configuration(file, ["secrets", "works.work.karmada.io"])
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    codec = read_encryption(file)
    assert codec.decode(KEY, secret) == VALUE
    assert not codec.is_stale(KEY)
    assert codec.decode(WORK, VALUE) == VALUE
    assert codec.is_stale(WORK), "the next write encrypts it"


def test_a_configuration_that_somebody_has_changed_stays_as_it_is(tmp_path: Path) -> None:
    document = configuration({"aesgcm": {"keys": [key("one")]}}, resources=("secrets", "configmaps"))
    file = written(tmp_path / "encryption.yaml", document)
    before = file.read_bytes()
    make_configuration(file, ["secrets", "works.work.karmada.io"])
    assert file.read_bytes() == before


async def test_a_server_without_the_key_does_not_start_and_names_it(tmp_path: Path) -> None:
    async with Served(tmp_path) as client:
        await client.create(SECRETS, {"metadata": {"name": "password"}}, namespace="default")
    os.unlink(tmp_path / "pki" / "encryption.yaml")
    with pytest.raises(Undecipherable, match=f'{KEY} is encrypted by aesgcm key "key-.*add this key'):
        async with Served(tmp_path):
            pass


async def test_check_store_accepts_encrypted_values_and_finds_rubbish(etcd: EtcdCluster, tmp_path: Path) -> None:
    url = f"{etcd.url}?prefix=/checked/{os.urandom(4).hex()}"
    store = open_store(url, encryption=encryption(tmp_path, {"aesgcm": {"keys": [key("one")]}}))
    await store.open()
    await store.write(KEY, VALUE, expected=0)
    command = [sys.executable, "-m", "karmada.cli.karmadactl", "check-store", "--storage", url]
    checked = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, f"{url} is in order\n"), checked.stderr
    await store.write("core/configmaps/default/c", b"rubbish", expected=0)
    await store.close()
    checked = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert "core/configmaps/default/c at revision" in checked.stdout
