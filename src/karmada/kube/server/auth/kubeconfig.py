"""Writes the kubeconfig files that the server hands out (the admin's, a component's)."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

from karmada.kube.server.auth.files import read_optional, write_private


def kubeconfig(server_url: str, ca_pem: bytes, cert_pem: bytes, key_pem: bytes, context: str, *, user: str = "") -> str:
    """Return a kubeconfig with one cluster, one user with a client certificate, and one context.

    All are named alike unless the user has a name of its own.
    """

    def data(pem: bytes) -> str:
        return base64.b64encode(pem).decode("ascii")

    name, person = json.dumps(context), json.dumps(user or context)
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {json.dumps(server_url)}
    certificate-authority-data: {data(ca_pem)}
users:
- name: {person}
  user:
    client-certificate-data: {data(cert_pem)}
    client-key-data: {data(key_pem)}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {person}
current-context: {name}
"""


def write_kubeconfig(
    path: Path, server_url: str, ca_pem: bytes, cert_pem: bytes, key_pem: bytes, context: str = "karmada-apiserver"
) -> None:
    """Readable by the owner only; replaced in one step, and only if it changes, so that a full disk does not matter."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = kubeconfig(server_url, ca_pem, cert_pem, key_pem, context).encode()
    if read_optional(path) == content and stat.S_IMODE(path.stat().st_mode) == 0o600:
        return
    write_private(path, content)
