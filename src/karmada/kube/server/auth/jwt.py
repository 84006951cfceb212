"""JSON Web Tokens as the service-account issuer needs them: signed and verified with ES256 or RS256, by PyJWT.

A key is known by its id, the hash of its public part, so that several servers (or a rotated key) agree on ids without
sharing anything else. The algorithm is taken from the key, never from the token: a token that names another algorithm
than its key has is refused. Parsing of keys, and with it the import of PyJWT and the cryptography package, waits for
first use.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from karmada.kube.objects.base64url import b64url

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
    from jwt.algorithms import AllowedPublicKeys

_PEM_KEY = re.compile(rb"-----BEGIN ([A-Z ]*KEY)-----.+?-----END \1-----", re.DOTALL)


class TokenError(Exception):
    """A token that is not accepted, and why; the message never holds the token."""


class PublicKey:
    """Verifies signatures made with one private key."""

    def __init__(self, pem: bytes) -> None:
        self.pem = pem

    @cached_property
    def _key(self) -> EllipticCurvePublicKey | RSAPublicKey:
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        key = load_pem_public_key(self.pem)
        if isinstance(key, RSAPublicKey) or (isinstance(key, EllipticCurvePublicKey) and key.curve.name == "secp256r1"):
            return key
        raise ValueError("token keys must be RSA or EC P-256")

    @cached_property
    def alg(self) -> str:
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

        return "RS256" if isinstance(self._key, RSAPublicKey) else "ES256"

    @cached_property
    def kid(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        der = self._key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return b64url(hashlib.sha256(der).digest())

    def verifies(self, token: str) -> bool:
        return is_signed(token, self._key, self.alg)

    def jwk(self) -> dict[str, str]:
        from jwt.algorithms import get_default_algorithms

        parts = get_default_algorithms()[self.alg].to_jwk(self._key, as_dict=True)
        return {"use": "sig", "kid": self.kid, "alg": self.alg, **{k: v for k, v in parts.items() if k != "key_ops"}}


def public_keys(pem: bytes) -> list[PublicKey]:
    """Return all keys of a file, public or private ones; ValueError if there is none, or one that cannot be used."""
    keys = [
        SigningKey(block[0]).public if block[1].endswith(b"PRIVATE KEY") else PublicKey(block[0])
        for block in _PEM_KEY.finditer(pem)
    ]
    if not keys:
        raise ValueError("no PEM key is in it")
    return [key for key in keys if key.kid]  # reads each of them


class SigningKey:
    """An EC P-256 or RSA private key that signs tokens."""

    def __init__(self, pem: bytes) -> None:
        self._pem = pem

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey | RSAPrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self._pem, None)
        if not isinstance(key, EllipticCurvePrivateKey | RSAPrivateKey):
            raise ValueError("token keys must be RSA or EC P-256")
        return key

    @cached_property
    def public(self) -> PublicKey:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return PublicKey(self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    def sign(self, claims: dict[str, Any]) -> str:
        from jwt import api_jws

        return api_jws.encode(orjson.dumps(claims), self._key, self.public.alg, {"kid": self.public.kid, "typ": None})


class KeySet:
    """The public keys whose tokens are accepted."""

    def __init__(self, keys: Iterable[PublicKey]) -> None:
        self.keys = tuple(keys)

    def verify(self, token: str) -> dict[str, Any]:
        """Return the claims of a token with a good signature; TokenError otherwise.

        Says nothing about time or audience.
        """
        header, claims = read_token(token)
        named = [key for key in self.keys if key.kid == header.get("kid")]
        if not any(key.verifies(token) for key in named or self.keys):
            raise TokenError("invalid signature")
        return claims

    def jwks(self) -> dict[str, Any]:
        return {"keys": [key.jwk() for key in self.keys]}


def read_token(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of a token, nothing of which is verified; TokenError if it is not a JWT."""
    from jwt import api_jws
    from jwt.exceptions import InvalidTokenError

    if token.count(".") != 2:
        raise TokenError("not a JSON web token")
    try:
        read = api_jws.decode_complete(token, options={"verify_signature": False})
        claims = orjson.loads(read["payload"])
    except (InvalidTokenError, ValueError) as error:
        raise TokenError("malformed JSON web token") from error
    if "=" in token or not isinstance(claims, dict):  # no two texts mean the same token
        raise TokenError("malformed JSON web token")
    return read["header"], claims


def is_signed(token: str, key: AllowedPublicKeys, alg: str) -> bool:
    """Return whether a token has a good signature by this key with this algorithm, which must be one for such keys."""
    from jwt import api_jws
    from jwt.exceptions import PyJWTError

    try:
        api_jws.decode_complete(token, key, [alg])
    except PyJWTError:
        return False
    return True
