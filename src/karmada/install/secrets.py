"""The Secrets of an installation in the host cluster, and the administrator's kubeconfig."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from karmada.install.certificates import ADMIN, CA, ETCD_CA, ETCD_SERVER, NAMES, Certificates
from karmada.install.names import (
    API_SERVER,
    CERTIFICATES,
    CONFIG_KEY,
    CONFIGURED,
    ETCD_CERTIFICATES,
    SECRET,
    WEBHOOK_CERTIFICATE,
    api_server_url,
    config_secret,
)
from karmada.install.options import Options
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.kubeconfig import kubeconfig
from karmada.kube.server.auth.pki import KeyPair

ADMIN_USER: Final = "karmada-admin"


def secrets(options: Options, certificates: Certificates) -> list[Obj]:
    """In all layouts the same, except for etcd's: addons find what they need, whatever the layout."""
    admin = certificates[ADMIN]
    config = component_kubeconfig(options, certificates)
    found = [_secret(options, config_secret(name), {CONFIG_KEY: config}) for name in CONFIGURED]
    if options.local_etcd:
        found.append(_secret(options, ETCD_CERTIFICATES, files(certificates, (ETCD_CA, ETCD_SERVER))))
    found.append(_secret(options, CERTIFICATES, files(certificates)))
    found.append(_secret(options, WEBHOOK_CERTIFICATE, {"tls.crt": admin.cert_pem, "tls.key": admin.key_pem}))
    return found


def component_kubeconfig(options: Options, certificates: Certificates) -> bytes:
    """For components in the host cluster."""
    return _kubeconfig(api_server_url(options.namespace, options.domain), certificates, ADMIN_USER)


def admin_kubeconfig(server: str, certificates: Certificates) -> bytes:
    """For whoever administrates the control plane."""
    return _kubeconfig(server, certificates, API_SERVER)


def _kubeconfig(server: str, certificates: Certificates, context: str) -> bytes:
    admin = certificates[ADMIN]
    text = kubeconfig(server, certificates[CA].cert_pem, admin.cert_pem, admin.key_pem, context, user=ADMIN_USER)
    return text.encode()


def files(certificates: Certificates, names: tuple[str, ...] = NAMES) -> dict[str, bytes]:
    """Certificates and keys by the names of their files."""
    return {
        f"{name}.{suffix}": content
        for name in names
        if name in certificates
        for suffix, content in (("crt", certificates[name].cert_pem), ("key", certificates[name].key_pem))
        if content
    }


def _secret(options: Options, name: str, files: Mapping[str, bytes]) -> Obj:
    data = {file: base64.b64encode(content).decode() for file, content in files.items()}
    metadata = {"name": name, "namespace": options.namespace, "labels": SECRET}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}


def certificates_in(secret: Obj | None) -> dict[str, KeyPair]:
    """Return what an earlier run put into the cluster; what cannot be read counts as missing."""
    data = (secret or {}).get("data") or {}
    found = {}
    for name in NAMES:
        try:
            certificate, key = (base64.b64decode(data.get(f"{name}.{suffix}") or "") for suffix in ("crt", "key"))
        except binascii.Error:
            continue
        if certificate:
            found[name] = KeyPair(certificate, key)
    return found
