"""From a Cluster and its Secret to how its API server is reached.

Two sorts of Secrets: a token with the authority's certificate beside it, or a whole kubeconfig under the key
`kubeconfig`, whose credentials then count.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from urllib.parse import urlsplit

from karmada.kube.client.config import Material, RestConfig
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError
from karmada.kube.objects.types import Obj

TOKEN, CA_BUNDLE, KUBECONFIG = "token", "caBundle", "kubeconfig"
TIMEOUT = 32.0
"""Seconds for one request; watches are cut and resumed by their own rules."""


class NoAccess(Exception):
    """A cluster that cannot be reached the way it is set up; the text is for people."""


def secret_key(cluster: Obj) -> tuple[str, str] | None:
    """(namespace, name) of the Secret with its credentials."""
    ref = (cluster.get("spec") or {}).get("secretRef")
    return (ref.get("namespace") or "", ref.get("name") or "") if ref else None


def access_of(cluster: Obj, secret: Obj | None) -> RestConfig:
    name, spec = cluster["metadata"]["name"], cluster.get("spec") or {}
    if secret is not None and (secret.get("data") or {}).get(KUBECONFIG):
        return _with_proxy(_from_kubeconfig(name, spec, _value(secret, KUBECONFIG)), spec)
    if not spec.get("apiEndpoint"):
        raise NoAccess(f"the api endpoint of cluster {name} is empty")
    if secret_key(cluster) is None:
        raise NoAccess(f"cluster {name} does not have a secret")
    if secret is None:
        raise NoAccess(f'secrets "{secret_key(cluster)[1]}" not found')  # type: ignore[index]
    token = _value(secret, TOKEN).decode(errors="replace").strip()
    if not token:
        raise NoAccess(f'the secret for cluster {name} is missing a non-empty value for "{TOKEN}"')
    insecure = bool(spec.get("insecureSkipTLSVerification"))
    authority = _value(secret, CA_BUNDLE)
    if not authority and not insecure:
        raise NoAccess(f'the secret for cluster {name} is missing the CA data key "{CA_BUNDLE}"')
    config = RestConfig(
        server=spec["apiEndpoint"],
        ca=Material(b"" if insecure else authority),
        insecure=insecure,
        token=token,
        timeout=TIMEOUT,
    )
    return _with_proxy(config, spec)


def _from_kubeconfig(name: str, spec: Obj, text: bytes) -> RestConfig:
    try:
        config = Kubeconfig.parse(text).resolve()
    except (KubeconfigError, ValueError) as error:
        raise NoAccess(f"the kubeconfig in the secret for cluster {name} cannot be used: {error}") from error
    if config.exec is not None or config.token_file or config.certificate.path or config.key.path or config.ca.path:
        raise NoAccess(f"the kubeconfig in the secret for cluster {name} must hold its credentials itself")
    server = spec.get("apiEndpoint") or config.server
    insecure = config.insecure or bool(spec.get("insecureSkipTLSVerification"))
    return replace(config, server=server, insecure=insecure, timeout=TIMEOUT)


def _with_proxy(config: RestConfig, spec: Obj) -> RestConfig:
    url = spec.get("proxyURL") or ""
    if not url:
        return config
    if urlsplit(url).scheme not in ("http", "https", "socks5"):
        raise NoAccess(f"proxy {url}: only http, https and socks5 proxies are supported")
    headers = tuple(
        (name, value.strip()) for name, values in (spec.get("proxyHeader") or {}).items() for value in values.split(",")
    )
    return replace(config, proxy_url=url, proxy_headers=headers)


def _value(secret: Obj, key: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key) or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
