"""`create configmap` and `create secret generic|docker-registry|tls`.

`--append-hash` uses the hash of kubectl and kustomize, so that names agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from karmada.cli.commands.create.generator import Recipe, generator
from karmada.cli.commands.create.sources import collect, read_or_fail
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

F = TypeVar("F", bound=Callable[..., Any])
_HASH_LETTERS = str.maketrans("013ae", "ghkmt")
_APPEND_HASH = click.option("--append-hash", is_flag=True, help="Append a hash of the content to the name.")


def _source_flags(command: F) -> F:
    for option in (
        click.option("--from-env-file", multiple=True, help="A file of KEY=VALUE lines; may be repeated."),
        click.option("--from-literal", multiple=True, help="KEY=VALUE; may be repeated."),
        click.option(
            "--from-file", multiple=True, help="FILE, KEY=FILE, or a directory of such files; may be repeated."
        ),
    ):
        command = option(command)
    return command


@generator("v1/configmaps")
@_source_flags
@_APPEND_HASH
def configmap(
    name: str,
    from_file: tuple[str, ...],
    from_literal: tuple[str, ...],
    from_env_file: tuple[str, ...],
    append_hash: bool,
) -> Recipe:
    """Create a config map from literals, files or directories.

    \b
    Examples:
      karmadactl create configmap settings --from-literal=colour=blue --from-literal=size=large
      karmadactl create configmap pages --from-file=index.html --from-file=error=404.html
      karmadactl create configmap variables --from-env-file=app.env
    """
    values = collect("ConfigMap", name, literals=from_literal, files=from_file, env_files=from_env_file)
    text, binary = {}, {}
    for key, value in values.items():
        try:
            text[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = _base64(value)
    obj: Obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}
    if text:
        obj["data"] = text
    if binary:
        obj["binaryData"] = binary
    if append_hash:
        hashed: Obj = {"kind": "ConfigMap", "name": name, "data": text}
        return _renamed(obj, {**hashed, "binaryData": binary} if binary else hashed)
    return obj


# secrets


@generator("v1/secrets", word="secret")
@_source_flags
@_APPEND_HASH
@click.option("--type", "type_", default="", help="The type of the secret.")
def generic(
    name: str,
    from_file: tuple[str, ...],
    from_literal: tuple[str, ...],
    from_env_file: tuple[str, ...],
    append_hash: bool,
    type_: str,
) -> Recipe:
    """Create a secret from literals, files or directories.

    \b
    Examples:
      karmadactl create secret generic database --from-literal=user=shop --from-literal=password=open
      karmadactl create secret generic keys --from-file=id_ed25519 --type=kubernetes.io/ssh-auth
    """
    values = collect("Secret", name, literals=from_literal, files=from_file, env_files=from_env_file)
    return _secret(name, type_, values, append_hash)


@generator("v1/secrets", word="secret docker-registry")
@click.option("--docker-email", default="", help="The e-mail address of the account.")
@click.option("--docker-password", default="", help="The password of the account.")
@click.option("--docker-server", default="https://index.docker.io/v1/", show_default=True, help="The registry.")
@click.option("--docker-username", default="", help="The account.")
@click.option("--from-file", multiple=True, help="A docker configuration file, instead of the account flags.")
@_APPEND_HASH
def docker_registry(
    name: str,
    docker_email: str,
    docker_password: str,
    docker_server: str,
    docker_username: str,
    from_file: tuple[str, ...],
    append_hash: bool,
) -> Recipe:
    """Create a secret for pulling images from a registry.

    \b
    Examples:
      karmadactl create secret docker-registry pull --docker-server=registry.example.com --docker-username=ann \\
        --docker-password=open
      karmadactl create secret docker-registry pull --from-file=.docker/config.json
    """
    if not from_file and not (docker_username and docker_password and docker_server):
        raise connect.failure(
            "either --from-file or the combination of --docker-username, --docker-password and --docker-server is "
            "required"
        )
    if from_file:
        files = collect("Secret", name, literals=(), files=from_file, env_files=(), file_key=".dockerconfigjson")
        return _secret(name, "kubernetes.io/dockerconfigjson", files, append_hash)
    account = {
        "username": docker_username,
        "password": docker_password,
        "email": docker_email,
        "auth": _base64(f"{docker_username}:{docker_password}".encode()),
    }
    config = {"auths": {docker_server: {key: value for key, value in account.items() if value}}}
    return _secret(name, "kubernetes.io/dockerconfigjson", {".dockerconfigjson": _go_json(config)}, append_hash)


@generator("v1/secrets", word="secret tls")
@click.option("--cert", default="", help="The certificate file (PEM).")
@click.option("--key", default="", help="The key file (PEM).")
@_APPEND_HASH
def tls(name: str, cert: str, key: str, append_hash: bool) -> Recipe:
    """Create a secret with a certificate and its key.

    \b
    Example:
      karmadactl create secret tls shop --cert=shop.crt --key=shop.key
    """
    if not cert or not key:
        raise connect.failure("key and cert must be specified")
    refusal = "Cannot read file {path}, open {path}"
    pair = {"tls.crt": read_or_fail(cert, refusal), "tls.key": read_or_fail(key, refusal)}
    _check_pair(cert, key, pair["tls.crt"], pair["tls.key"])
    return _secret(name, "kubernetes.io/tls", pair, append_hash)


def _check_pair(cert_path: str, key_path: str, cert: bytes, key: bytes) -> None:
    import ssl

    for what, text in (("certificate", cert), ("key", key)):
        if b"-----BEGIN " not in text:
            raise connect.failure(f"tls: failed to find any PEM data in {what} input")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert_path, key_path, password="")
    except ssl.SSLError as error:
        if "MISMATCH" in (error.reason or ""):
            raise connect.failure("tls: private key does not match public key") from error
        raise connect.failure(
            f"tls: {cert_path} and {key_path} are not a certificate and its key: {error.reason}"
        ) from error


def _secret(name: str, type_: str, values: dict[str, bytes], append_hash: bool) -> Obj:
    data = {key: _base64(value) for key, value in values.items()}
    obj: Obj = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}}
    if data:
        obj["data"] = data
    if type_:
        obj["type"] = type_
    if append_hash:
        return _renamed(obj, {"kind": "Secret", "type": type_, "name": name, "data": data})
    return obj


# --append-hash


def _renamed(obj: Obj, hashed: Obj) -> Obj:
    from hashlib import sha256

    digest = sha256(_go_json(dict(sorted(hashed.items())))).hexdigest()[:10].translate(_HASH_LETTERS)
    return {**obj, "metadata": {**obj["metadata"], "name": f"{obj['metadata']['name']}-{digest}"}}


def _go_json(value: Any) -> bytes:
    """As Go writes JSON: safe inside HTML."""
    import orjson

    text = orjson.dumps(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character.encode(), f"\\u{ord(character):04x}".encode())
    return text


def _base64(value: bytes) -> str:
    from base64 import b64encode

    return b64encode(value).decode()
