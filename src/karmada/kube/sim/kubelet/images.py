"""Images as a node's container runtime names them, and the ids of what it runs: made up, but always the same."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

_DEFAULT_REGISTRY = "docker.io"


@lru_cache(maxsize=8192)
def full_name(image: str) -> str:
    """`nginx` is docker.io/library/nginx:latest."""
    repository, tag = _split(image)
    return f"{repository}{tag or ':latest'}"


@lru_cache(maxsize=8192)
def image_id(image: str) -> str:
    """Return the repository with the digest the image has, or might have."""
    repository, tag = _split(image)
    if tag.startswith("@"):
        return repository + tag
    return f"{repository}@sha256:{sha256(full_name(image).encode()).hexdigest()}"


def image_size(image: str) -> int:
    """Bytes, between 5 and 120 million."""
    return 5_000_000 + int(sha256(full_name(image).encode()).hexdigest()[:8], 16) % 115_000_000


def container_id(pod_uid: str, container: str, restarts: int) -> str:
    return "containerd://" + sha256(f"{pod_uid}/{container}/{restarts}".encode()).hexdigest()


def _split(image: str) -> tuple[str, str]:
    """Return the full repository, and the tag (with its colon) or the digest (with its at sign)."""
    name, at, digest = image.partition("@")
    path, slash, last = name.rpartition("/")
    base, colon, tag = last.partition(":")
    repository = f"{path}{slash}{base}"
    registry = repository.split("/", 1)[0]
    if not slash:
        repository = f"{_DEFAULT_REGISTRY}/library/{repository}"
    elif "." not in registry and ":" not in registry and registry != "localhost":
        repository = f"{_DEFAULT_REGISTRY}/{repository}"
    return repository, at + digest if at else colon + tag
