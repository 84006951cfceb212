"""Base64 for URLs, without padding, as JSON Web Tokens use it."""

from __future__ import annotations

import base64
import binascii


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def b64url_decode(text: str) -> bytes:
    """Canonical unpadded base64url; ValueError for anything else, so that no two texts mean the same token."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("not unpadded base64url") from error
    if b64url(data) != text:
        raise ValueError("not unpadded base64url")
    return data
