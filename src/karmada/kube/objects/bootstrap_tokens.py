"""Bootstrap tokens as text: their two halves, the Secrets that hold them, and the signature made with one.

A token is `<id>.<secret>`. The id is public and names the Secret; the secret authenticates, and signs the public
ConfigMap kube-public/cluster-info, so that a client with the token can verify what an untrusted connection returned.
The signature is a JWS (HS256) without its content (detached).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final, NamedTuple

from karmada.kube.objects.base64url import b64url

NAMESPACE: Final = "kube-system"
SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"
NAME_PREFIX: Final = "bootstrap-token-"
USAGE_PREFIX: Final = "usage-bootstrap-"
ID_PATTERN: Final = "[a-z0-9]{6}"
SECRET_PATTERN: Final = "[a-z0-9]{16}"
INFO_NAMESPACE: Final = "kube-public"
INFO_NAME: Final = "cluster-info"
INFO_KEY: Final = "kubeconfig"
SIGNATURE_PREFIX: Final = "jws-kubeconfig-"
_TOKEN: Final = re.compile(rf"({ID_PATTERN})\.({SECRET_PATTERN})")


class BootstrapToken(NamedTuple):
    id: str
    secret: str

    def __str__(self) -> str:
        return f"{self.id}.{self.secret}"

    @classmethod
    def parse(cls, text: str) -> BootstrapToken | None:
        """Return None for a text of another form."""
        found = _TOKEN.fullmatch(text)
        return cls(found[1], found[2]) if found else None


def detached_signature(content: str, token: BootstrapToken) -> str:
    """JWS over the content, without the content: `<header>..<signature>`."""
    header = b64url(f'{{"alg":"HS256","kid":"{token.id}"}}'.encode())
    message = f"{header}.{b64url(content.encode())}".encode()
    return f"{header}..{b64url(hmac.new(token.secret.encode(), message, hashlib.sha256).digest())}"


def is_signed_by(content: str, signature: str, token: BootstrapToken) -> bool:
    return hmac.compare_digest(detached_signature(content, token).encode(), signature.encode())
