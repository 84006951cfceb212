"""The flags of front proxies: servers that vouch for users in the headers of requests, by their client certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from karmada.components.flags import F, Given, file, together, words

if TYPE_CHECKING:
    from karmada.kube.server.auth.frontproxy import FrontProxy


def _header_flag(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(name, default=default, callback=lambda _ctx, _param, value: words(value), help=text)


request_header_flags = together(
    file("--requestheader-client-ca-file", "Certificates (PEM) of the authority of front proxies."),
    _header_flag("--requestheader-allowed-names", "", "Common names of the front proxies.  [default: any]"),
    _header_flag("--requestheader-username-headers", "x-remote-user", "Headers with the name of the user."),
    _header_flag("--requestheader-uid-headers", "x-remote-uid", "Headers with the uid of the user."),
    _header_flag("--requestheader-group-headers", "x-remote-group", "Headers with the groups of the user."),
    _header_flag("--requestheader-extra-headers-prefix", "x-remote-extra-", "Prefixes of headers with more."),
)


def front_proxy_from(given: Given, ca_pem: bytes = b"") -> FrontProxy:
    """Return the names and headers of the flags, with this authority."""
    from karmada.kube.server.auth.frontproxy import FrontProxy

    return FrontProxy(
        ca_pem=ca_pem,
        allowed_names=given["requestheader_allowed_names"],
        user_headers=given["requestheader_username_headers"],
        uid_headers=given["requestheader_uid_headers"],
        group_headers=given["requestheader_group_headers"],
        extra_prefixes=given["requestheader_extra_headers_prefix"],
    )
