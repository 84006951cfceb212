"""Image references, as far as defaults depend on them: which tag does an image name?"""

from __future__ import annotations

from functools import lru_cache


def image_tag(image: str) -> str:
    """Return the tag of a reference; `latest` when it names neither a tag nor a digest, "" when only a digest."""
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    if colon:
        return tag
    return "" if digest or not name else "latest"


@lru_cache(maxsize=8192)
def default_pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"
