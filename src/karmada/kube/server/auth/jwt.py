"""JSON Web Tokens as the service-account issuer needs them: signed and verified with ES256 or RS256.

A key is known by its id, the hash of its public part, so that several servers (or a rotated key) agree on ids without
sharing anything else. The algorithm is taken from the key, never from the token: a token that names another algorithm
than its key has is refused. Parsing of keys, and with it the import of the cryptography package, waits for first use.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from karmada.kube.objects.base64url import b64url, b64url_decode

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

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

    def verifies(self, message: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        try:
            if isinstance(self._key, RSAPublicKey):
                self._key.verify(signature, message, PKCS1v15(), SHA256())
            else:
                if len(signature) != 64:
                    return False
                r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
                self._key.verify(encode_dss_signature(r, s), message, ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    def jwk(self) -> dict[str, str]:
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

        jwk = {"use": "sig", "kid": self.kid, "alg": self.alg}
        if isinstance(self._key, RSAPublicKey):
            numbers = self._key.public_numbers()
            jwk |= {"kty": "RSA", "n": b64url(_unsigned(numbers.n)), "e": b64url(_unsigned(numbers.e))}
        else:
            point = self._key.public_numbers()
            x, y = point.x.to_bytes(32, "big"), point.y.to_bytes(32, "big")
            jwk |= {"kty": "EC", "crv": "P-256", "x": b64url(x), "y": b64url(y)}
        return jwk


def _unsigned(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def public_keys(pem: bytes) -> list[PublicKey]:
    """All keys of a file, public or private ones; ValueError if there is none, or one that cannot be used."""
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
        header = b64url(orjson.dumps({"alg": self.public.alg, "kid": self.public.kid}))
        message = f"{header}.{b64url(orjson.dumps(claims))}"
        return f"{message}.{b64url(self._signature(message.encode('ascii')))}"

    def _signature(self, message: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        if isinstance(self._key, RSAPrivateKey):
            return self._key.sign(message, PKCS1v15(), SHA256())
        r, s = decode_dss_signature(self._key.sign(message, ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class KeySet:
    """The public keys whose tokens are accepted."""

    def __init__(self, keys: Iterable[PublicKey]) -> None:
        self.keys = tuple(keys)

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token with a good signature; TokenError otherwise. Says nothing about time or audience."""
        header, claims, message, signature = split_token(token)
        kid, alg = header.get("kid"), header.get("alg")
        named = [key for key in self.keys if key.kid == kid]
        for key in named or self.keys:
            if key.alg == alg and key.verifies(message, signature):
                return claims
        raise TokenError("invalid signature")

    def jwks(self) -> dict[str, Any]:
        return {"keys": [key.jwk() for key in self.keys]}


def split_token(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Header, claims, what is signed, and the signature; nothing of it is verified."""
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenError("not a JSON web token")
    try:
        header, claims = orjson.loads(b64url_decode(parts[0])), orjson.loads(b64url_decode(parts[1]))
        signature = b64url_decode(parts[2])
    except ValueError as error:
        raise TokenError("malformed JSON web token") from error
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise TokenError("malformed JSON web token")
    return header, claims, f"{parts[0]}.{parts[1]}".encode("ascii"), signature


def unverified_claims(token: str) -> dict[str, Any]:
    """What a token says about itself, to find out who would have to verify it; TokenError if it is not a JWT."""
    return split_token(token)[1]
