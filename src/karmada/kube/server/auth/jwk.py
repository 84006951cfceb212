"""JSON Web Keys of other issuers, and the signatures that they verify.

A key verifies only algorithms of its own type, and only the one it names if it names any; which algorithms are
acceptable at all is the caller's decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karmada.kube.objects.base64url import b64url_decode

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

_CURVES = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}


class Jwk:
    def __init__(self, kid: str, alg: str, key: EllipticCurvePublicKey | RSAPublicKey) -> None:
        self.kid = kid
        self._alg = alg
        self._key = key

    @classmethod
    def parse(cls, jwk: Any) -> Jwk | None:
        """None for a key that signs nothing we know; ValueError for a damaged one."""
        if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
            return None
        try:
            key = _rsa(jwk) if jwk.get("kty") == "RSA" else _elliptic(jwk) if jwk.get("kty") == "EC" else None
        except (KeyError, TypeError) as error:
            raise ValueError("a key lacks a part") from error
        return cls(str(jwk.get("kid") or ""), str(jwk.get("alg") or ""), key) if key is not None else None

    def verifies(self, alg: str, message: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

        if self._alg and self._alg != alg:
            return False
        try:
            if isinstance(self._key, RSAPublicKey):
                return _verify_rsa(self._key, alg, message, signature)
            return _verify_elliptic(self._key, alg, message, signature)
        except InvalidSignature:
            return False


def _hash(alg: str) -> HashAlgorithm:
    from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512

    return {"256": SHA256(), "384": SHA384(), "512": SHA512()}[alg[2:]]


def _verify_rsa(key: RSAPublicKey, alg: str, message: bytes, signature: bytes) -> bool:
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15

    digest = _hash(alg)
    if alg.startswith("RS"):
        key.verify(signature, message, PKCS1v15(), digest)
    elif alg.startswith("PS"):
        key.verify(signature, message, PSS(MGF1(digest), digest.digest_size), digest)
    else:
        return False
    return True


def _verify_elliptic(key: EllipticCurvePublicKey, alg: str, message: bytes, signature: bytes) -> bool:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    size = (key.curve.key_size + 7) // 8
    if _CURVES.get(alg) != key.curve.name or len(signature) != 2 * size:
        return False
    r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
    key.verify(encode_dss_signature(r, s), message, ECDSA(_hash(alg)))
    return True


def _number(text: str) -> int:
    return int.from_bytes(b64url_decode(text), "big")


def _rsa(jwk: dict[str, Any]) -> RSAPublicKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    return RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key()


def _elliptic(jwk: dict[str, Any]) -> EllipticCurvePublicKey | None:
    from cryptography.hazmat.primitives.asymmetric import ec

    curve = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}.get(jwk["crv"])
    return ec.EllipticCurvePublicNumbers(_number(jwk["x"]), _number(jwk["y"]), curve).public_key() if curve else None
