"""The way to the API server from inside a pod: the service account's files and two environment variables."""

from __future__ import annotations

import os
from pathlib import Path

from karmada.kube.client.cluster_names import POD_ROOT
from karmada.kube.client.config import Material, RestConfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def mounted(path: Path) -> Path:
    """Return where a mount path of the pod is: below the container's folder in a simulated cluster's process."""
    root = os.environ.get(POD_ROOT)
    return Path(root) / path.relative_to("/") if root else path


class NotInCluster(RuntimeError):
    """The process does not run in a pod with a service account."""


def in_cluster_config(directory: Path | None = None) -> RestConfig:
    directory = directory or mounted(SERVICE_ACCOUNT)
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    token = directory / "token"
    if not host or not port or not token.exists():
        raise NotInCluster(
            "not in a cluster: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and a service account token are needed"
        )
    ca, namespace = directory / "ca.crt", directory / "namespace"
    return RestConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=Material(path=str(ca)) if ca.exists() else Material(),
        token_file=str(token),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )
