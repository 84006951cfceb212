"""From a Cluster and its Secret to how its API server is reached.

Two sorts of Secrets: a token with the authority's certificate beside it, or a whole kubeconfig under the key
`kubeconfig`, whose credentials then count. What cannot be used is an error here, before the first request: a wrong
setting belongs into the Cluster's status, not into the retries of the controllers that use the cluster.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from karmada.kube.client.checking import ConfigError, check
from karmada.kube.client.config import Material, RestConfig
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

TOKEN, CA_BUNDLE, KUBECONFIG = "token", "caBundle", "kubeconfig"
TIMEOUT = 32.0
"""Seconds for one request; watches are cut and resumed by their own rules."""


class NoAccess(Exception):
    """A cluster that cannot be reached the way it is set up; the text is for people."""


def secret_key(cluster: Obj) -> tuple[str, str] | None:
    """(namespace, name) of the Secret with its credentials."""
    ref = (cluster.get("spec") or {}).get("secretRef")
    return (ref.get("namespace") or "", ref.get("name") or "") if ref else None


BY_SECRET = "secret with the credentials"
"""Clusters by the Secret with their credentials, as `namespace/name`."""


def secret_index(cluster: Obj) -> Iterable[str]:
    ref = secret_key(cluster)
    return () if ref is None else (str(Key(*ref)),)


def check_encrypted(name: str, server: str, *, allow_insecure: bool) -> None:
    """NoAccess where credentials would go over the network for everybody to read."""
    if not allow_insecure and server.lower().startswith("http://"):
        raise NoAccess(
            f"the credentials of cluster {name} would go to {server} unencrypted: "
            "use https, or start with --allow-insecure-members"
        )


def access_of(cluster: Obj, secret: Obj | None, *, allow_insecure: bool = False) -> RestConfig:
    """NoAccess when it cannot be reached that way; the text says why, and nothing that is secret."""
    name = cluster["metadata"]["name"]
    config = _settings(cluster, secret)
    check_encrypted(name, config.server, allow_insecure=allow_insecure)
    try:
        check(config)
    except ConfigError as error:
        raise NoAccess(f"cluster {name} cannot be reached as it is set up: {error}") from error
    return config


def _settings(cluster: Obj, secret: Obj | None) -> RestConfig:
    name, spec = cluster["metadata"]["name"], cluster.get("spec") or {}
    whole = _value(secret, KUBECONFIG) if secret is not None else b""
    if whole:
        return _with_proxy(_from_kubeconfig(name, spec, whole), spec)
    if not spec.get("apiEndpoint"):
        raise NoAccess(f"the api endpoint of cluster {name} is empty")
    if secret_key(cluster) is None:
        raise NoAccess(f"cluster {name} does not have a secret")
    if secret is None:
        raise NoAccess(f'secrets "{secret_key(cluster)[1]}" not found')  # type: ignore[index]
    token = _value(secret, TOKEN).decode(errors="replace").strip()
    if not token:
        raise NoAccess(f'the secret for cluster {name} is missing a non-empty value for "{TOKEN}"')
    way = way_to(cluster, secret)
    if not way.ca and not way.insecure:
        raise NoAccess(f'the secret for cluster {name} is missing the CA data key "{CA_BUNDLE}"')
    return replace(way, token=token)


def way_to(cluster: Obj, secret: Obj | None) -> RestConfig:
    """Return the address, whom to believe there, and the proxy on the way, for those who have credentials of their own.

    Nothing is checked beyond what it takes to read it.
    """
    name, spec = cluster["metadata"]["name"], cluster.get("spec") or {}
    whole = _value(secret, KUBECONFIG) if secret is not None else b""
    if whole:
        found = _from_kubeconfig(name, spec, whole)
        server, authority, insecure = found.server, found.ca, found.insecure
    else:
        found = RestConfig(server="")
        insecure = bool(spec.get("insecureSkipTLSVerification"))
        authority = Material(_value(secret, CA_BUNDLE) if secret is not None and not insecure else b"")
        server = with_scheme(spec["apiEndpoint"]) if spec.get("apiEndpoint") else ""
    way = RestConfig(
        server=server,
        ca=authority,
        insecure=insecure,
        tls_server_name=found.tls_server_name,
        proxy_url=found.proxy_url,
        timeout=TIMEOUT,
    )
    return _with_proxy(way, spec)


def with_scheme(endpoint: str) -> str:
    """Return an address with its scheme; HTTPS if it has none."""
    return endpoint if "://" in endpoint else f"https://{endpoint}"


@lru_cache(maxsize=256)
def _parsed(kubeconfig: bytes) -> RestConfig:
    return Kubeconfig.parse(kubeconfig).resolve()


def _from_kubeconfig(name: str, spec: Obj, text: bytes) -> RestConfig:
    try:
        config = _parsed(text)
    except KubeconfigError as error:
        why = str(error) if error.__cause__ is None else "it is not YAML"  # what a parser cites may be a secret
        raise NoAccess(f"the kubeconfig in the secret for cluster {name} cannot be used: {why}") from error
    if config.exec is not None or config.token_file or config.certificate.path or config.key.path or config.ca.path:
        raise NoAccess(f"the kubeconfig in the secret for cluster {name} must hold its credentials itself")
    server = with_scheme(spec["apiEndpoint"]) if spec.get("apiEndpoint") else config.server
    insecure = config.insecure or bool(spec.get("insecureSkipTLSVerification"))
    return replace(config, server=server, insecure=insecure, timeout=TIMEOUT)


def _with_proxy(config: RestConfig, spec: Obj) -> RestConfig:
    url = spec.get("proxyURL") or ""
    if not url:
        return config
    if url.partition("://")[0] not in ("http", "https", "socks5"):
        raise NoAccess(f"proxy {url}: only http, https and socks5 proxies are supported")
    headers = tuple(
        (name, value.strip())
        for name, values in (spec.get("proxyHeader") or {}).items()
        for value in str(values).split(",")
    )
    return replace(config, proxy_url=url, proxy_headers=headers)


def _value(secret: Obj, key: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key) or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
