"""Tokens, made, listed and deleted."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from karmada.cli.commands import token as tokens
from karmada.cli.karmadactl import main
from karmada.joining.pull.tokens import Malformed, Token, from_secret, to_secret
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import SECRETS
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.objects import kube_object

GROUP = "system:bootstrappers:karmada:default-cluster-token"


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[ControlPlane]:
    async with running(folder / "plane", clock=RealClock()) as plane:
        yield plane


async def run(plane: ControlPlane, *args: str) -> Result:
    words = [*args, "--kubeconfig", str(plane.server.kubeconfig)]
    return await asyncio.to_thread(CliRunner().invoke, main, words)


async def said(plane: ControlPlane, *args: str) -> tuple[int, str, str]:
    result = await run(plane, *args)
    return result.exit_code, result.stdout, result.stderr


async def stored(plane: ControlPlane, token_id: str) -> dict[str, str]:
    secret = await plane.client.get(SECRETS, f"bootstrap-token-{token_id}", "kube-system")
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


async def test_a_token_is_a_secret_of_kube_system(plane: ControlPlane) -> None:
    code, out, err = await said(plane, "token", "create", "--description", "for m3")
    assert (code, err) == (0, "")
    found = re.fullmatch(r"([a-z0-9]{6})\.([a-z0-9]{16})\n", out)
    assert found
    data = await stored(plane, found[1])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", data.pop("expiration"))
    assert data == {
        "token-id": found[1],
        "token-secret": found[2],
        "description": "for m3",
        "usage-bootstrap-signing": "true",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": GROUP,
    }
    code, out, err = await said(plane, "token", "list")
    assert (code, err) == (0, "")
    header, line = out.splitlines()
    assert re.split(r"\s{2,}", header) == ["TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS"]
    cells = re.split(r"\s{2,}", line)
    assert cells[0] == found[0].strip()
    assert cells[1] in ("23h", "24h", "1d")
    assert cells[3:] == ["authentication,signing", "for m3", GROUP]


async def test_what_a_token_is_for_and_how_long(plane: ControlPlane) -> None:
    words = ["--ttl=0", "--usages=signing", "--groups", "system:bootstrappers:a,system:bootstrappers:b"]
    _, out, _ = await said(plane, "token", "create", *words)
    data = await stored(plane, out[:6])
    assert "expiration" not in data
    assert "usage-bootstrap-authentication" not in data
    assert data["auth-extra-groups"] == "system:bootstrappers:a,system:bootstrappers:b"


async def test_the_command_that_registers_a_cluster(plane: ControlPlane) -> None:
    code, out, err = await said(plane, "token", "create", "--print-register-command")
    assert (code, err) == (0, "")
    cluster = yaml.safe_load(plane.server.kubeconfig.read_text())["clusters"][0]["cluster"]
    pem = base64.b64decode(cluster["certificate-authority-data"])
    key = x509.load_pem_x509_certificate(pem).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    host = cluster["server"].removeprefix("https://")
    pattern = rf"karmadactl register {host} --token [a-z0-9.]{{23}} --discovery-token-ca-cert-hash sha256:{digest}\n"
    assert re.fullmatch(pattern, out)


async def test_tokens_are_deleted_whole_or_by_their_id(plane: ControlPlane) -> None:
    one, two = [(await said(plane, "token", "create"))[1].strip() for _ in "ab"]
    refusal = f'bootstrap token "{one[:6]}" deleted\nbootstrap token "{two[:6]}" deleted\n'
    assert await said(plane, "token", "delete", one, two[:6]) == (0, refusal, "")
    name = f"bootstrap-token-{one[:6]}"
    missing = f'error: failed to delete secret "{name}", err: secrets "{name}" not found\n'
    assert await said(plane, "token", "delete", one) == (1, "", missing)
    assert len((await said(plane, "token", "list"))[1].splitlines()) == 1


async def test_a_secret_that_holds_no_token_is_reported_and_left_out(plane: ControlPlane) -> None:
    await said(plane, "token", "create")
    secret = kube_object("v1", "Secret", "bootstrap-token-broken", "kube-system") | {
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {"token-id": "abcdef"},
    }
    await plane.client.create(SECRETS, secret)
    code, out, err = await said(plane, "token", "list")
    assert (code, len(out.splitlines())) == (0, 2)
    assert err == 'bootstrap token name is not of the form "bootstrap-token-(token-id)": bootstrap-token-broken\n'


@cases(
    ([], "missing argument; 'token delete' is missing token of form \"[a-z0-9]{6}\""),
    (["Nonsense"], 'given token didn\'t match pattern "[a-z0-9]{6}" or "[a-z0-9]{6}.[a-z0-9]{16}"'),
)
def test_what_is_no_token_is_refused(words: list[str], problem: str) -> None:
    result = CliRunner().invoke(main, ["token", "delete", *words])
    assert (result.exit_code, result.stderr) == (1, f"error: {problem}\n")


@cases(
    ({}, "has no token-id data"),
    ({"token-id": "abcdef"}, "has no token-secret data"),
    ({"token-id": "abcdef", "token-secret": "x", "expiration": "soon"}, "can't parse expiration time"),
    ({"token-id": "other", "token-secret": "x"}, "is not of the form"),
)
def test_secrets_without_a_token(data: dict[str, str], problem: str) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    with pytest.raises(Malformed, match=problem):
        from_secret({"metadata": {"name": "bootstrap-token-abcdef"}, "data": encoded})


def test_a_token_is_read_back_as_it_was_written() -> None:
    token = Token("abcdef", "0123456789abcdef", ("authentication", "signing"), ("a", "b"), "why", 1e9)
    assert from_secret(to_secret(token)) == token
    assert tokens.row(token, 1e9 - 3600) == (
        "abcdef.0123456789abcdef", "1h", "2001-09-09T01:46:40Z", "authentication,signing", "why", "a,b",
    )  # fmt: skip
    assert tokens.row(Token("abcdef", "s"), 0)[1:] == ("<forever>", "<never>", "<none>", "<none>", "<none>")


@cases((-5, "<invalid>"), (-1, "0s"), (59, "59s"), (61, "1m"), (7200, "2h"), (86400 * 3, "3d"), (86400 * 800, "2y"))
def test_time_left(seconds: float, shown: str) -> None:
    assert tokens.time_left(seconds) == shown
