"""Public keys of other issuers, from their JSON Web Keys.

A key verifies only algorithms of its own type, and only the one it names if it names any; which algorithms are
acceptable at all is the caller's decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from karmada.kube.server.auth.token_sources import SIGNING_ALGS

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

_RSA = frozenset(alg for alg in SIGNING_ALGS if alg[:2] in ("RS", "PS"))
_OF_CURVE = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_PUBLIC = frozenset({"kty", "n", "e", "crv", "x", "y"})


class Jwk(NamedTuple):
    kid: str
    algorithms: frozenset[str]
    key: AllowedPublicKeys


def parse_jwk(jwk: Any) -> Jwk | None:
    """Return None for a key that signs nothing we know; ValueError for a damaged one."""
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
        return None
    algorithms = _algorithms(jwk)
    if not algorithms:
        return None
    from jwt.algorithms import ECAlgorithm, RSAAlgorithm
    from jwt.exceptions import InvalidKeyError

    kind = RSAAlgorithm if jwk["kty"] == "RSA" else ECAlgorithm
    public = {name: value for name, value in jwk.items() if name in _PUBLIC}
    try:
        key = cast("AllowedPublicKeys", kind.from_jwk(public))
    except (InvalidKeyError, TypeError) as error:
        raise ValueError("a key lacks a part") from error
    named = str(jwk.get("alg") or "")
    return Jwk(str(jwk.get("kid") or ""), algorithms & {named} if named else algorithms, key)


def _algorithms(jwk: dict[str, Any]) -> frozenset[str]:
    if jwk.get("kty") == "RSA":
        return _RSA
    alg = _OF_CURVE.get(str(jwk.get("crv"))) if jwk.get("kty") == "EC" else None
    return frozenset({alg}) if alg is not None else frozenset()
