"""Validation of connection settings before they are used, for settings that people write.

Neither the network nor files are accessed. The texts name the setting and the error, and never show its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from yarl import URL

from karmada.kube.client.config import RestConfig
from karmada.kube.client.proxies import SCHEMES
from karmada.kube.client.tls import client_context

_TOKEN = re.compile(r"[\x21-\x7e]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\uffff]*")


class ConfigError(ValueError):
    """Settings with which no server can be reached; the text is for people."""


def check(config: RestConfig) -> None:
    """ConfigError for what would make every request fail."""
    check_address("the server's address", config.server)
    if config.proxy_url:
        check_address("the proxy's address", config.proxy_url, SCHEMES)
    if not _TOKEN.fullmatch(config.token):
        raise ConfigError("the token has characters that no token can have")
    _check_headers("impersonation", config.impersonate.headers())
    _check_headers("the proxy's headers", config.proxy_headers)
    if config.server.lower().startswith("https:"):
        _check_certificates(config)


def check_address(what: str, url: str, schemes: Iterable[str] = ("https", "http")) -> None:
    """ConfigError when it is none; `what` it is, for people."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        URL(url, encoded=True)
    except ValueError:
        raise ConfigError(f"{what} cannot be understood") from None
    if parts.scheme not in schemes:
        raise ConfigError(f"{what} must begin with one of {', '.join(f'{scheme}://' for scheme in schemes)}")
    if not host:
        raise ConfigError(f"{what} has no host")
    if not url.isprintable() or " " in url:
        raise ConfigError(f"{what} has characters that no address can have")


def _check_headers(what: str, headers: Iterable[tuple[str, str]]) -> None:
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ConfigError(f"{what} cannot be sent as HTTP headers")


def _check_certificates(config: RestConfig) -> None:
    ca = b"" if config.insecure else config.ca.data
    certificate, key = config.certificate.data, config.key.data
    try:
        client_context(ca, certificate, key, config.insecure)
        return
    except (ValueError, OSError):
        pass  # reported below, with the setting that is wrong
    try:
        client_context(ca, b"", b"", config.insecure)
    except (ValueError, OSError):
        raise ConfigError("the CA bundle holds no certificates in PEM") from None
    raise ConfigError("the client certificate and its key are not PEM, or do not belong together")
