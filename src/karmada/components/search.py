"""`karmada-search`: objects of all members from one place, for a control plane of several processes.

It serves search.karmada.io behind an APIService of the control plane: ResourceRegistries, which are stored here, the
search over what they select, and the proxy of all clusters. The all-in-one `karmada` has it built in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from karmada.components.extension import (
    Extension,
    access_from,
    delegation_flags,
    extension_from,
    run_extension,
    serving_flags,
)
from karmada.components.flags import Given, duration, ignored, insecure_members_flag, logging_flags, together
from karmada.components.program import CONTEXT, Program
from karmada.components.search_flags import search_flags, search_options_from
from karmada.components.server_flags import audit_flags, stored_flags

if TYPE_CHECKING:
    from karmada.kube.server.config import ServerConfig
    from karmada.search.service import Search

SERVICE: Final = "karmada-search.karmada-system"
GROUP: Final = "search.karmada.io"

flags = together(
    delegation_flags,
    stored_flags("registries"),
    serving_flags,
    audit_flags,
    search_flags,
    duration(
        "--storage-initialization-timeout",
        "1m",
        "How long to wait for the first lists of all clusters before it is ready without them.",
    ),
    insecure_members_flag,
    ignored(
        "--kube-api-qps --kube-api-burst --cluster-api-qps --cluster-api-burst",
        "the rate of requests adapts to the API servers.",
    ),
    logging_flags,
)


@click.command("karmada-search", cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Serve search.karmada.io behind the API server of a control plane, until interrupted.

    The control plane sends requests here once it has an APIService for it: docs/components/karmada-search.md.
    """
    run_extension(given, lambda config: search_server(config, given), GROUP, f"{GROUP}/")


def search_server(config: ServerConfig, given: Given) -> Extension:
    from karmada.apiserver.mount import mount_registries

    extension = extension_from(given, config, SERVICE)
    mount_registries(extension.server)
    options = search_options_from(given)
    if options is not None:
        from karmada.search.caches import USER_AGENT
        from karmada.search.proxy.control_plane import RemoteControlPlane
        from karmada.search.service import Search

        server = extension.server
        fallback = RemoteControlPlane(access_from(given).objects, server.clock)
        client = server.client(user_agent=USER_AGENT)
        search = Search(server, client, extension.control_plane, fallback, options)
        _follow(extension, search, given["storage_initialization_timeout"])
        server.closing += [search.close, fallback.close]
    return extension


def _follow(extension: Extension, search: Search, patience: float) -> None:
    """Ready once everything is cached, or after some time without what is not."""
    began = extension.clock.monotonic()
    extension.started.append(search.start)
    extension.server.health.add(
        "search-caches",
        lambda: search.caches.synced or extension.clock.monotonic() - began > patience,
        pages=("readyz",),
    )


if __name__ == "__main__":
    main()
