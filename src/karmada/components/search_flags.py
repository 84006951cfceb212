"""The flags of search, which the all-in-one and karmada-search have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.components.flags import Given, switch, together

if TYPE_CHECKING:
    from karmada.search.service import Options

search_flags = together(
    switch("--disable-search", False, "Do not serve search/… of search.karmada.io, and keep no full-text index."),
    switch("--disable-proxy", False, "Do not serve proxying/… of search.karmada.io."),
    switch(
        "--member-authorization",
        True,
        "Show of a cluster only what the caller may read there; without it, the right in the control plane is enough.",
    ),
)


def search_options_from(given: Given) -> Options | None:
    """Return None where nothing of it is served."""
    from karmada.search.service import Options

    if given["disable_search"] and given["disable_proxy"]:
        return None
    return Options(
        search=not given["disable_search"],
        proxy=not given["disable_proxy"],
        member_authorization=given["member_authorization"],
        allow_insecure=given["allow_insecure_members"],
    )
