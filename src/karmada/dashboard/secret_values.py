"""Secrets are shown without what they hold: a screen is seen by more people than have the right to read them.

In place of a value stands its size and a fingerprint, by which two of them can be compared: it is keyed with a random
number of this process, so that no value can be guessed from it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any, Final

_KEY: Final = secrets.token_bytes(32)
_HELD: Final = ("data", "stringData")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def without_secret_values(value: Any) -> Any:
    """Return JSON data in which every Secret, also one inside of a Work, has fingerprints for values."""
    if isinstance(value, list):
        return [without_secret_values(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "Secret" and value.get("apiVersion") == "v1":
        return _covered(value)
    return {key: without_secret_values(inner) for key, inner in value.items()}


def _covered(secret: dict[str, Any]) -> dict[str, Any]:
    held = {key: _each(secret[key]) for key in _HELD if secret.get(key)}
    metadata = secret.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if _LAST_APPLIED in annotations:
        covered = {**annotations, _LAST_APPLIED: fingerprint(annotations[_LAST_APPLIED])}
        held["metadata"] = {**metadata, "annotations": covered}
    return {**secret, **held}


def _each(values: Any) -> Any:
    return (
        {key: fingerprint(value) for key, value in values.items()} if isinstance(values, dict) else fingerprint(values)
    )


def fingerprint(value: Any) -> str:
    text = str(value).encode()
    return f"(hidden: {len(text)} characters, {hmac.new(_KEY, text, hashlib.sha256).hexdigest()[:8]})"
