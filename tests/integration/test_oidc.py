"""Tokens of an OpenID Connect issuer, which is a process of its own, at a server on the wire."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.issuer_keys import AGAIN_SECONDS, FRESH_SECONDS
from karmada.kube.server.auth.single_flight import REMEMBER_SECONDS
from karmada.kube.server.auth.token_sources import OidcConfig
from karmada.kube.server.config import DEFAULT_ISSUER
from tests.support.callers import Caller, status_with
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.oidc_issuer import IssuerKey, IssuerProcess, b64
from tests.support.running import api_server
from tests.support.tls_backend import authority

FIRST, SECOND, FOREIGN = IssuerKey("one"), IssuerKey("two"), IssuerKey("one")
ELLIPTIC = IssuerKey("ec", elliptic=True)


@pytest.fixture(scope="module")
def issuer_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IssuerProcess]:
    process = IssuerProcess(tmp_path_factory.mktemp("issuer"))
    yield process
    process.stop()


@pytest.fixture
def issuer(issuer_process: IssuerProcess) -> IssuerProcess:
    issuer_process.restart()
    issuer_process.publish(FIRST, ELLIPTIC)
    return issuer_process


@asynccontextmanager
async def accepting(
    certificates: Path, tmp_path: Path, issuer: IssuerProcess, **settings: Any
) -> AsyncIterator[tuple[ApiServer, FakeClock]]:
    ca = tmp_path / "issuer-ca.crt"
    ca.write_bytes(authority().cert_pem)
    oidc = OidcConfig(**{"issuer_url": issuer.url, "client_id": "karmada", "ca_file": ca, **settings})
    clock = FakeClock(start=time.time())
    async with api_server(certificates, clock, controllers=False, oidc=oidc) as server:
        yield server, clock


def claims(issuer: IssuerProcess, **more: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"iss": issuer.url, "aud": "karmada", "sub": "jane", "exp": now + 86400, "iat": now, **more}


def hmac_signed(content: dict[str, Any], key: IssuerKey) -> str:
    public = key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    message = ".".join(b64(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": key.kid}, content))
    return f"{message}.{b64(hmac.digest(public, message.encode(), 'sha256'))}"


async def who(server: ApiServer, token: str) -> Obj:
    async with Caller(server, token=token) as caller:
        return await caller.who()


async def test_claims_name_the_user_and_the_groups(certificates: Path, tmp_path: Path, issuer: IssuerProcess) -> None:
    settings = {"groups_claim": "groups", "groups_prefix": "oidc:", "required_claims": {"hd": "example.com"}}
    async with accepting(certificates, tmp_path, issuer, **settings) as (server, _):
        token = FIRST.sign(claims(issuer, groups=["dev", "ops"], hd="example.com", jti="t-1"))
        assert await who(server, token) == {
            "username": f"{issuer.url}#jane",
            "groups": ["oidc:dev", "oidc:ops", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=t-1"]},
        }
        assert await status_with(server, FIRST.sign(claims(issuer))) == 401, "a required claim is missing"


async def test_bad_tokens_are_refused(certificates: Path, tmp_path: Path, issuer: IssuerProcess) -> None:
    now = int(time.time())
    bad = {
        "another issuer": FIRST.sign(claims(issuer, iss="https://evil.example.com")),
        "another audience": FIRST.sign(claims(issuer, aud=["other", "more"])),
        "no audience": FIRST.sign(claims(issuer, aud=None)),
        "expired": FIRST.sign(claims(issuer, exp=now - 1)),
        "without an end": FIRST.sign({k: v for k, v in claims(issuer).items() if k != "exp"}),
        "not valid yet": FIRST.sign(claims(issuer, nbf=now + 3600)),
        "no user": FIRST.sign(claims(issuer, sub="")),
        "another key under a known id": FOREIGN.sign(claims(issuer)),
        "an algorithm that is not accepted": ELLIPTIC.sign(claims(issuer)),
        "no signature": FIRST.sign(claims(issuer), alg="none").rpartition(".")[0] + ".",
        "a secret that is the public key": hmac_signed(claims(issuer), FIRST),
        "not text": "a.b.c",
    }
    async with accepting(certificates, tmp_path, issuer) as (server, _):
        assert await status_with(server, FIRST.sign(claims(issuer))) == 200
        assert {why: await status_with(server, token) for why, token in bad.items()} == dict.fromkeys(bad, 401)


@cases(
    ({"username_claim": "name", "username_prefix": "-"}, {"name": "system:admin"}),
    ({"groups_claim": "groups"}, {"groups": ["system:masters"]}),
    ({"groups_claim": "groups"}, {"groups": "system:masters"}),
    ({"groups_claim": "groups"}, {"groups": [1]}),
    ({"username_claim": "email"}, {"email": "jane@example.com", "email_verified": False}),
)
async def test_an_issuer_cannot_name_what_is_the_servers_own(
    settings: Any, more: Any, certificates: Path, tmp_path: Path, issuer: IssuerProcess
) -> None:
    async with accepting(certificates, tmp_path, issuer, **settings) as (server, _):
        assert await status_with(server, FIRST.sign(claims(issuer, **more))) == 401


async def test_an_email_address_needs_no_prefix_and_other_algorithms_can_be_accepted(
    certificates: Path, tmp_path: Path, issuer: IssuerProcess
) -> None:
    settings = {"username_claim": "email", "signing_algs": ("RS256", "ES256")}
    async with accepting(certificates, tmp_path, issuer, **settings) as (server, _):
        token = ELLIPTIC.sign(claims(issuer, email="jane@example.com", email_verified=True))
        assert (await who(server, token))["username"] == "jane@example.com"


async def test_a_token_ends_when_it_says_although_it_is_known(
    certificates: Path, tmp_path: Path, issuer: IssuerProcess
) -> None:
    async with accepting(certificates, tmp_path, issuer) as (server, clock):
        token = FIRST.sign(claims(issuer, exp=int(clock.now()) + 5))
        assert await status_with(server, token) == 200
        await clock.advance(6)
        assert await status_with(server, token) == 401


async def test_a_rotated_key_is_fetched_when_a_token_names_it(
    certificates: Path, tmp_path: Path, issuer: IssuerProcess
) -> None:
    async with accepting(certificates, tmp_path, issuer) as (server, clock):
        assert await status_with(server, FIRST.sign(claims(issuer))) == 200
        assert await status_with(server, FIRST.sign(claims(issuer, sub="joe"))) == 200
        assert issuer.requests() == 1, "keys are kept"
        for number in range(3):
            assert await status_with(server, SECOND.sign(claims(issuer, sub=str(number)))) == 401
        assert issuer.requests() == 1, "unknown ids do not make a request each"
        issuer.publish(SECOND)
        await clock.advance(AGAIN_SECONDS)
        assert await status_with(server, SECOND.sign(claims(issuer))) == 200
        assert issuer.requests() == 2
        await clock.advance(REMEMBER_SECONDS)
        assert await status_with(server, FIRST.sign(claims(issuer))) == 401, "the former key is withdrawn"


async def test_a_withdrawn_key_is_forgotten_after_a_while(
    certificates: Path, tmp_path: Path, issuer: IssuerProcess
) -> None:
    async with accepting(certificates, tmp_path, issuer) as (server, clock):
        assert await status_with(server, FIRST.sign(claims(issuer))) == 200
        issuer.publish(SECOND)
        await clock.advance(FRESH_SECONDS)
        assert await status_with(server, FIRST.sign(claims(issuer))) == 200, "nobody waits for the refresh"
        await eventually(lambda: issuer.requests() == 2)
        await clock.advance(REMEMBER_SECONDS + AGAIN_SECONDS)
        assert await status_with(server, FIRST.sign(claims(issuer))) == 401


async def test_known_keys_are_good_while_the_issuer_is_down(
    certificates: Path, tmp_path: Path, issuer: IssuerProcess
) -> None:
    async with accepting(certificates, tmp_path, issuer) as (server, clock):
        assert await status_with(server, FIRST.sign(claims(issuer))) == 200
        issuer.stop()
        await clock.advance(FRESH_SECONDS)
        for name in ("a", "b"):
            assert await status_with(server, FIRST.sign(claims(issuer, sub=name))) == 200
        assert await status_with(server, SECOND.sign(claims(issuer))) == 401


async def test_an_issuer_that_is_down_at_first_is_tried_again(
    certificates: Path, tmp_path: Path, issuer: IssuerProcess
) -> None:
    issuer.publish(FIRST, issuer="https://somebody.else")
    async with accepting(certificates, tmp_path, issuer) as (server, clock):
        token = FIRST.sign(claims(issuer))
        assert await status_with(server, token) == 401, "a document of another issuer is not believed"
        issuer.publish(FIRST)
        assert await status_with(server, token) == 401
        await clock.advance(AGAIN_SECONDS)
        assert await status_with(server, token) == 200


async def test_an_issuer_with_an_unknown_certificate_is_not_believed(
    certificates: Path, tmp_path: Path, issuer: IssuerProcess
) -> None:
    other = tmp_path / "other.crt"
    other.write_bytes(authority("others").cert_pem)
    async with accepting(certificates, tmp_path, issuer, ca_file=other) as (server, _):
        assert await status_with(server, FIRST.sign(claims(issuer))) == 401
        assert issuer.requests() == 0


async def test_a_token_review_knows_these_tokens(certificates: Path, tmp_path: Path, issuer: IssuerProcess) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"

    async def review(server: ApiServer, token: str, *audiences: str) -> Obj:
        admin = server.pki.admin
        async with Caller(server, cert=admin.cert_pem, key=admin.key_pem) as caller:
            spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
            status: Obj = (await caller("POST", path, {"spec": spec})).json()["status"]
            return status

    async with accepting(certificates, tmp_path, issuer) as (server, _):
        token = FIRST.sign(claims(issuer))
        status = await review(server, token)
        assert (status["authenticated"], status["audiences"]) == (True, [DEFAULT_ISSUER])
        assert "audiences" in (await review(server, token, "vault"))["error"]
        assert (await review(server, FIRST.sign(claims(issuer, aud="x"))))["error"] == (
            '[invalid bearer token, oidc: the token is not for the client "karmada"]'
        )


@cases(
    ({"issuer_url": "http://a.example.com"}, "--oidc-issuer-url"),
    ({"issuer_url": "https://a.example.com?x=1"}, "--oidc-issuer-url"),
    ({"client_id": ""}, "--oidc-client-id"),
    ({"signing_algs": ("HS256",)}, "--oidc-signing-algs"),
    ({"signing_algs": ("none",)}, "--oidc-signing-algs"),
)
def test_a_setting_that_makes_no_sense_is_named(settings: Any, flag: str) -> None:
    with pytest.raises(ValueError, match=flag):
        OidcConfig(**{"issuer_url": "https://a.example.com", "client_id": "x", **settings})
