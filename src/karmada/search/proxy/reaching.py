"""Which namespaces of a member a read may reach: those that are cached, and of them what is requested."""

from __future__ import annotations

from karmada.search.registries import Namespaces, Upstream, covers, upstream


def reach(cached: Namespaces, requested: str) -> Upstream | None:
    """Return the request to the member for a namespace ("" is all); None when nothing of it is cached."""
    if not requested:
        return upstream(cached)
    return Upstream(requested, False) if covers(cached, requested) else None
