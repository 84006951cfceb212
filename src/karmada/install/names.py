"""What the objects of an installation are called, how they are labelled, and where pods find their files."""

from __future__ import annotations

from typing import Final

from karmada.api import well_known

NAMESPACE: Final = well_known.NAMESPACE_SYSTEM
DOMAIN: Final = "cluster.local"
PROGRAMS: Final = "/bin"
"""Where our image has its programs."""

API_SERVER: Final = "karmada-apiserver"
AGGREGATED: Final = "karmada-aggregated-apiserver"
KUBE_CONTROLLER_MANAGER: Final = "kube-controller-manager"
CONTROLLER_MANAGER: Final = "karmada-controller-manager"
SCHEDULER: Final = "karmada-scheduler"
WEBHOOK: Final = "karmada-webhook"
ETCD: Final = "etcd"
COMPONENTS: Final = (
    API_SERVER,
    SCHEDULER,
    f"karmada-{KUBE_CONTROLLER_MANAGER}",
    CONTROLLER_MANAGER,
    WEBHOOK,
    AGGREGATED,
)
"""As the flags name them."""
CONFIGURED: Final = (
    AGGREGATED,
    CONTROLLER_MANAGER,
    KUBE_CONTROLLER_MANAGER,
    SCHEDULER,
    "karmada-descheduler",
    "karmada-metrics-adapter",
    "karmada-search",
    WEBHOOK,
)
"""Components that have a Secret with a kubeconfig of the control plane; addons among them."""

API_PORT: Final = 5443
SERVING_PORT: Final = 8443
"""Where a server listens in its pod that clients reach on 443: no port below 1024 needs a privilege."""

CONFIG_FOLDER: Final = "/etc/karmada/config"
CONFIG_KEY: Final = "karmada.config"
CONFIG_FILE: Final = f"{CONFIG_FOLDER}/{CONFIG_KEY}"
PKI_FOLDER: Final = "/etc/karmada/pki"
WEBHOOK_FOLDER: Final = "/var/serving-cert"
ETCD_FOLDER: Final = "/var/lib/karmada-etcd"
STATE_FOLDER: Final = "/var/lib/karmada"
"""Folder of servers that keep their state, or keys of their own, in files."""

CERTIFICATES: Final = "karmada-cert"
ETCD_CERTIFICATES: Final = "etcd-cert"
WEBHOOK_CERTIFICATE: Final = "karmada-webhook-cert"
OPTIONS: Final = "karmada-init-options"
"""The ConfigMap with the flags of the installation, for the next run."""

APPLICATION: Final = {well_known.BOOTSTRAPPING: "app-defaults"}
SERVICE: Final = {well_known.BOOTSTRAPPING: "service-defaults"}
SECRET: Final = {well_known.BOOTSTRAPPING: "secret-defaults"}
CLAIM: Final = {well_known.BOOTSTRAPPING: "pvc-defaults"}
SYSTEM: Final = {well_known.SYSTEM: well_known.TRUE}
ETCD_NODE: Final = "karmada.io/etcd"
"""The label of the node that keeps the state in a folder of its own."""


def config_secret(component: str) -> str:
    return f"{component}-config"


def service_host(service: str, namespace: str, domain: str) -> str:
    return f"{service}.{namespace}.svc.{domain}"


def api_server_url(namespace: str, domain: str) -> str:
    """Return the URL by which components reach the API server."""
    return f"https://{service_host(API_SERVER, namespace, domain)}:{API_PORT}"
