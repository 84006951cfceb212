from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from jwt.algorithms import get_default_algorithms

from karmada.kube.objects.base64url import b64url, b64url_decode
from karmada.kube.server.auth.jwk import parse_jwk
from karmada.kube.server.auth.jwt import KeySet, PublicKey, SigningKey, TokenError, is_signed
from karmada.kube.server.auth.pki import generate_key_pem
from tests.support.cases import cases

EC = SigningKey(generate_key_pem())
OTHER = SigningKey(generate_key_pem())
_RSA = rsa.generate_private_key(65537, 2048)
RSA = SigningKey(_RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@cases((EC, "ES256"), (RSA, "RS256"))
def test_a_signed_token_verifies_with_its_public_key(key: SigningKey, alg: str) -> None:
    assert key.public.alg == alg
    assert KeySet([OTHER.public, key.public]).verify(key.sign({"sub": "x"})) == {"sub": "x"}


def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(TokenError, match="signature"):
        KeySet([EC.public]).verify(OTHER.sign({"sub": "x"}))


TOKEN = EC.sign({"sub": "x", "n": 1})


@settings(max_examples=60)
@given(st.integers(0, len(TOKEN) - 1), st.characters(min_codepoint=33, max_codepoint=126))
def test_no_character_of_a_token_can_be_changed(position: int, character: str) -> None:
    tampered = TOKEN[:position] + character + TOKEN[position + 1 :]
    keys = KeySet([EC.public])
    if tampered == TOKEN:
        assert keys.verify(tampered)
        return
    with pytest.raises(TokenError):
        keys.verify(tampered)


def _forged(header: bytes, signature: bytes = b"") -> str:
    return f"{b64url(header)}.{TOKEN.split('.')[1]}.{b64url(signature)}"


@cases(
    "",
    "a.b",
    "a.b.c.d",
    "é.é.é",
    _forged(b'{"alg":"none"}'),
    _forged(b'{"alg":"ES256"}', b"\0" * 64),
    _forged(b'{"alg":"ES256"}', b"short"),
    _forged(b'{"alg":"RS256"}', b"\0" * 64),
    _forged(b"[]", b"\0" * 64),
    _forged(b"not json", b"\0" * 64),
    TOKEN + "=",
    TOKEN + "==",
    f"{b64url(b'{}')}.{b64url(b'[1]')}.{b64url(b'x')}",
)
def test_malformed_and_forged_tokens_are_refused(token: str) -> None:
    with pytest.raises(TokenError):
        KeySet([EC.public]).verify(token)


def test_an_hmac_made_with_the_public_key_is_no_signature() -> None:
    head = b64url(b'{"alg":"HS256"}')
    message = f"{head}.{TOKEN.split('.')[1]}"
    mac = hmac.new(RSA.public.pem, message.encode(), hashlib.sha256).digest()
    with pytest.raises(TokenError):
        KeySet([RSA.public, EC.public]).verify(f"{message}.{b64url(mac)}")


@cases((EC, "RS256"), (EC, "HS256"), (EC, "none"), (RSA, "ES256"))
def test_the_algorithm_is_the_keys_and_not_the_tokens(key: SigningKey, alg: str) -> None:
    head = b64url(f'{{"alg":"{alg}","kid":"{key.public.kid}"}}'.encode())
    message = f"{head}.{TOKEN.split('.')[1]}"
    signature = get_default_algorithms()[key.public.alg].sign(message.encode(), key._key)
    with pytest.raises(TokenError, match="signature"):
        KeySet([key.public]).verify(f"{message}.{b64url(signature)}")


def test_the_key_set_document_has_the_public_parts_only() -> None:
    document = KeySet([EC.public, RSA.public]).jwks()
    ec_key, rsa_key = document["keys"]
    assert set(ec_key) == {"use", "kty", "kid", "alg", "crv", "x", "y"}
    assert set(rsa_key) == {"use", "kty", "kid", "alg", "n", "e"}
    assert rsa_key["e"] == "AQAB"
    numbers = ec.EllipticCurvePublicNumbers(
        int.from_bytes(b64url_decode(ec_key["x"]), "big"),
        int.from_bytes(b64url_decode(ec_key["y"]), "big"),
        ec.SECP256R1(),
    )
    pem = numbers.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert PublicKey(pem).kid == ec_key["kid"]


@cases(
    (RSA.public.jwk(), {"RS256"}),
    ({**RSA.public.jwk(), "alg": ""}, {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    ({**RSA.public.jwk(), "alg": "HS256"}, set()),
    ({**EC.public.jwk(), "alg": None}, {"ES256"}),
    ({**EC.public.jwk(), "alg": "ES384"}, set()),
    ({**EC.public.jwk(), "use": "enc"}, None),
    ({**EC.public.jwk(), "crv": "secp256k1"}, None),
    ({"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}, None),
    ({"kty": "OKP", "crv": "Ed25519", "x": "AA"}, None),
    ([], None),
)
def test_a_key_of_an_issuer_verifies_algorithms_of_its_own_type(jwk: Any, algorithms: set[str] | None) -> None:
    parsed = parse_jwk(jwk)
    assert (None if parsed is None else parsed.algorithms) == algorithms


@cases({"n": None}, {"n": 1}, {"n": "!"}, {"e": "AA"}, {"n": "AA"})
def test_a_damaged_key_of_an_issuer_is_an_error(damage: Any) -> None:
    with pytest.raises(ValueError):
        parse_jwk({**RSA.public.jwk(), **damage})


def test_a_private_part_that_an_issuer_publishes_is_not_used() -> None:
    private = get_default_algorithms()["ES256"].to_jwk(EC._key, as_dict=True)
    parsed = parse_jwk(private)
    assert parsed is not None
    assert is_signed(TOKEN, parsed.key, "ES256")
    assert not hasattr(parsed.key, "private_numbers")


def test_keys_of_other_kinds_are_refused() -> None:
    pem = ec.generate_private_key(ec.SECP384R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(ValueError, match="P-256"):
        SigningKey(pem).sign({})


@given(st.binary(max_size=40))
def test_base64url_round_trips(data: bytes) -> None:
    assert b64url_decode(b64url(data)) == data
