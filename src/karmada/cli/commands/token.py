"""`karmadactl token`: the bootstrap tokens that clusters register with.

A token is a Secret in kube-system, named after its public half. Until it expires, the server accepts it as a credential
and signs the cluster-info ConfigMap with it, by which an agent verifies the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.parsing import program
from karmada.cli.targeting import connect
from karmada.joining.pull.tokens import Token, from_secret, new_token, to_secret
from karmada.kube.objects.bootstrap_tokens import (
    ID_PATTERN,
    NAME_PREFIX,
    NAMESPACE,
    SECRET_PATTERN,
    SECRET_TYPE,
)

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig
    from karmada.kube.objects.clock import Clock

_ATTEMPTS, _FIRST_PAUSE = 5, 5.0
"""How often a token is written, and the seconds before the second time; each pause is twice the last."""
_OVERLOADED = frozenset({429, 500, 502, 503, 504})
_HEADER = ("TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS")
_DAY = 86400


def row(token: Token, now: float) -> tuple[str, ...]:
    """Return the cells of a token in the list."""
    from karmada.kube.objects.times import rfc3339

    return (
        str(token),
        "<forever>" if token.expires is None else time_left(token.expires - now),
        "<never>" if token.expires is None else rfc3339(token.expires),
        ",".join(token.usages) or "<none>",
        token.description or "<none>",
        ",".join(token.groups) or "<none>",
    )


def time_left(seconds: float) -> str:
    """In the largest unit there is one of."""
    total = int(seconds)
    if total < 0:
        return "0s" if total > -2 else "<invalid>"
    for unit, size, most in (("s", 1, 60), ("m", 60, 60), ("h", 3600, 24), ("d", _DAY, 365)):
        if total // size < most:
            return f"{total // size}{unit}"
    return f"{total // _DAY // 365}y"


def id_of(word: str) -> str:
    """Return the id of a token or of an id itself; raise Failure when it is neither."""
    import re

    if re.fullmatch(ID_PATTERN, word):
        return word
    found = re.fullmatch(rf"({ID_PATTERN})\.{SECRET_PATTERN}", word)
    if found is None:
        raise connect.failure(f'given token didn\'t match pattern "{ID_PATTERN}" or "{ID_PATTERN}.{SECRET_PATTERN}"')
    return found[1]


def register_command(config: RestConfig, token: str) -> str:
    """Return the command that registers a cluster with this token."""
    host = config.server.partition("://")[2].rstrip("/")
    hashes = ",".join(_authority_hashes(config))
    return f"{program.command()} register {host} --token {token} --discovery-token-ca-cert-hash {hashes}"


def _authority_hashes(config: RestConfig) -> list[str]:
    from pathlib import Path

    from karmada.joining.pull.pins import pins_of

    try:
        pem = config.ca.data or (Path(config.ca.path).read_bytes() if config.ca.path else b"")
        found = pins_of(pem) if pem else []
    except (OSError, ValueError) as error:
        raise connect.failure(f"the kubeconfig's certificate authority cannot be read: {error}") from error
    if not found:
        raise connect.failure(
            "the kubeconfig has no certificate authority, which clusters need to verify the control plane"
        )
    return found


# commands


@click.group()
def token() -> None:
    """Create, list and delete the bootstrap tokens that clusters register with.

    \b
    Examples:
      karmadactl token create
      karmadactl token list
      karmadactl token delete abcdef
    """


@token.command("create")
@connect.connection_flags
@click.option("--print-register-command", is_flag=True, help="Print the command that registers a cluster.")
@click.option(
    "--ttl", type=connect.Duration(), default="24h0m0s", help="The lifetime of the token; 0: it does not expire."
)
@click.option("--usages", multiple=True, default=("signing", "authentication"), help="Usages of the token.")
@click.option(
    "--groups",
    multiple=True,
    default=("system:bootstrappers:karmada:default-cluster-token",),
    help="Groups of a client that authenticates with the token.",
)
@click.option("--description", default="", help="A description of the token.")
def create(
    way: connect.Way,
    print_register_command: bool,
    ttl: float,
    usages: tuple[str, ...],
    groups: tuple[str, ...],
    description: str,
) -> None:
    """Create a bootstrap token and print it.

    \b
    Examples:
      karmadactl token create
      karmadactl token create --ttl 1h --description "for member3"
      karmadactl token create --print-register-command
    """
    import time

    config = way.config()
    made = Token(
        *new_token(),
        usages=tuple(connect.commas(usages)),
        groups=tuple(connect.commas(groups)),
        description=description,
        expires=time.time() + ttl if ttl else None,
    )
    shown = register_command(config, str(made)) if print_register_command else str(made)
    connect.run(_store(config, made))
    click.echo(shown)


async def _store(config: RestConfig, token: Token, clock: Clock | None = None) -> None:
    """Try again while the server is overloaded; a token that is there then is the one of an earlier try."""
    from karmada.kube.objects.clock import SYSTEM
    from karmada.kube.objects.errors import AlreadyExists, ApiError
    from karmada.kube.objects.gvk import GVR

    async with connect.connected(config) as client:
        for attempt in range(_ATTEMPTS):
            try:
                await client.create(GVR("", "v1", "secrets"), to_secret(token))
                return
            except AlreadyExists as error:
                if attempt:
                    return
                raise connect.failure(f'a token with id "{token.id}" already exists') from error
            except ApiError as error:
                if error.http_code not in _OVERLOADED or attempt == _ATTEMPTS - 1:
                    raise
                pause = _FIRST_PAUSE * 2**attempt
                connect.progress(f"{error.message}; trying again in {pause:g}s")
                await (clock or SYSTEM).sleep(pause)


@token.command("list")
@connect.connection_flags
def list_(way: connect.Way) -> None:
    """List bootstrap tokens.

    \b
    Examples:
      karmadactl token list
    """
    import time

    from karmada.cli.output.columns import columns

    secrets = connect.run(_stored(way.config()))
    rows: list[tuple[str, ...]] = [_HEADER]
    for secret in secrets:
        try:
            rows.append(row(from_secret(secret), time.time()))
        except ValueError as error:
            click.echo(str(error), err=True)
    click.echo(columns(rows), nl=False)


async def _stored(config: RestConfig) -> list[dict[str, Any]]:
    from karmada.kube.objects.gvk import GVR

    async with connect.connected(config) as client:
        listed = await client.list_all(GVR("", "v1", "secrets"), NAMESPACE, field_selector=f"type={SECRET_TYPE}")
        return list(listed.items)


@token.command("delete")
@click.argument("words", nargs=-1, metavar="TOKEN_OR_ID...")
@connect.connection_flags
def delete(words: tuple[str, ...], way: connect.Way) -> None:
    """Delete bootstrap tokens, given by id or in full.

    \b
    Examples:
      karmadactl token delete abcdef
      karmadactl token delete abcdef.0123456789abcdef 012345
    """
    if not words:
        raise connect.failure(f"missing argument; 'token delete' is missing token of form \"{ID_PATTERN}\"")
    ids = [id_of(word) for word in words]
    connect.run(_delete(way.config(), ids))


async def _delete(config: RestConfig, ids: Sequence[str]) -> None:
    from karmada.kube.objects.errors import ApiError
    from karmada.kube.objects.gvk import GVR

    async with connect.connected(config) as client:
        for token_id in ids:
            name = f"{NAME_PREFIX}{token_id}"
            try:
                await client.delete(GVR("", "v1", "secrets"), name, NAMESPACE)
            except ApiError as error:
                if error.http_code in (401, 403):
                    raise
                raise connect.failure(f'failed to delete secret "{name}", err: {error.message}') from error
            click.echo(f'bootstrap token "{token_id}" deleted')
