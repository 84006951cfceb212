"""The release of Karmada whose images are used by default."""

from __future__ import annotations

RELEASE = "v1.18.2"


def image(component: str) -> str:
    return f"docker.io/karmada/{component}:{RELEASE}"
