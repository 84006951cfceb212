"""The flags of `init`, as data: the command, the config file, and what a run saves for the next are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from karmada.install.images import IMAGE, KUBERNETES_PROGRAMS, KUBERNETES_TAG
from karmada.install.names import COMPONENTS, DOMAIN, ETCD_FOLDER, NAMESPACE

Given: TypeAlias = Mapping[str, Any]
"""Values by the names of their flags, without dashes in front; only those that were given."""
PRIORITY: Final = "system-node-critical"
YEAR: Final = 8760 * 3600.0
_CRDS: Final = "those of this version"


class Flag(NamedTuple):
    name: str
    default: Any
    """Its type is that of the flag: a tuple is a list with commas, a float a duration in seconds, None a switch that
    may be left open."""
    about: str
    short: str = ""
    choices: tuple[str, ...] = ()


def _of_component(name: str) -> list[Flag]:
    usual = "ours, or Kubernetes' own with --kube-image-*" if name in KUBERNETES_PROGRAMS else IMAGE
    return [
        Flag(f"{name}-image", "", f"The image of {name}.  [default: {usual}]"),
        Flag(f"{name}-replicas", 1, f"The number of {name} pods."),
        Flag(f"{name}-priority-class", PRIORITY, f"The priority class of {name}'s pods."),
        Flag(f"{name}-extra-args", (), f"Further flags for {name}: --name=value, comma-separated."),
    ]


WHERE: Final = (
    Flag("kubeconfig", "", "The kubeconfig of the cluster to install into."),
    Flag("context", "", "The context in that kubeconfig."),
    Flag("config", "", "A KarmadaInitConfig file; it takes precedence over flags."),
    Flag("karmada-data", "/etc/karmada", "The folder for the kubeconfig; what is in it is kept.", "d"),
    Flag("karmada-pki", "/etc/karmada/pki", "The folder for certificates; those in it are used, and renewed in time."),
    Flag("wait-component-ready-timeout", 120, "Seconds to wait until each component is ready; 0 waits without limit."),
    Flag("ca-cert-file", "", "The certificate of an existing CA [a new CA]."),
    Flag("ca-key-file", "", "The key of that CA."),
    Flag("namespace", NAMESPACE, "The namespace to install into.", "n"),
    Flag("crds", "", f"Without effect: the definitions are {_CRDS}."),
)
"""Flags of one run: files of the machine it is on, and where to install. They are not saved."""
WHAT: Final = (
    Flag(
        "all-in-one",
        None,
        "One Deployment that runs everything, with SQLite on a volume.  [default: unless another flag needs separate "
        "components]",
    ),
    Flag("store", "", "Where the state is stored: sqlite or etcd.  [default: as the layout]", "", ("sqlite", "etcd")),
    Flag(
        "store-volume", "PVC", "The volume of SQLite: PVC, hostPath or emptyDir.", "", ("PVC", "hostPath", "emptyDir")
    ),
    Flag("store-size", "5Gi", "The size of SQLite's volume, with PVC."),
    Flag("private-image-registry", "", "Take every image from this registry."),
    Flag("image-pull-policy", "IfNotPresent", "When images are pulled: Always, Never or IfNotPresent."),
    Flag("image-pull-secrets", (), "Secrets to pull images with, comma-separated."),
    Flag("kube-image-mirror-country", "", "Take Kubernetes' images from a mirror in this country: cn."),
    Flag("kube-image-registry", "", "The registry of Kubernetes' images."),
    Flag("kube-image-tag", "", f"The version of Kubernetes' images.  [default: {KUBERNETES_TAG}]"),
    Flag("cert-external-ip", "", "Further IP addresses in the server's certificate, comma-separated."),
    Flag("cert-external-dns", "", "Further DNS names in the server's certificate, comma-separated."),
    Flag("cert-validity-period", YEAR, "How long certificates are valid."),
    Flag("storage-classes-name", "", "The storage class of volumes, with PVC.  [default: the cluster's default class]"),
    Flag("host-cluster-domain", DOMAIN, "The DNS domain of the cluster to install into."),
    Flag("etcd-storage-mode", "hostPath", "Where etcd keeps its data: emptyDir, hostPath or PVC."),
    Flag("etcd-image", "", "The image of etcd."),
    Flag("etcd-replicas", 1, "The number of etcd pods."),
    Flag("etcd-data", ETCD_FOLDER, "The folder of etcd on its node, with hostPath."),
    Flag("etcd-node-selector-labels", "", "Labels of the nodes for etcd, with hostPath."),
    Flag("etcd-pvc-size", "5Gi", "The size of etcd's volumes, with PVC."),
    Flag("etcd-priority-class", PRIORITY, "The priority class of etcd's pods."),
    Flag("etcd-extra-args", (), "Further flags for etcd: --name=value, comma-separated."),
    Flag("external-etcd-servers", "", "The addresses of the external etcd, comma-separated."),
    Flag("external-etcd-ca-cert-path", "", "The CA certificate of an external etcd."),
    Flag("external-etcd-client-cert-path", "", "The client certificate for the external etcd."),
    Flag("external-etcd-client-key-path", "", "The key of that client certificate."),
    Flag("external-etcd-key-prefix", "", "The key prefix in the external etcd."),
    Flag("karmada-apiserver-advertise-address", "", "The IP address by which clients reach the server."),
    Flag("port", 32443, "The node port of the server.", "p"),
    *(flag for name in COMPONENTS for flag in _of_component(name)),
)
"""Flags that say what is installed. The next run starts from those of this one."""
FLAGS: Final[Mapping[str, Flag]] = {flag.name: flag for flag in (*WHERE, *WHAT)}
SAVED: Final = frozenset(flag.name for flag in WHAT)


def value(given: Given, name: str) -> Any:
    return given.get(name, FLAGS[name].default)


def to_save(given: Given) -> dict[str, Any]:
    """Return what the next run starts from, as plain JSON."""
    return {
        name: list(found) if isinstance(found, tuple) else found
        for name, found in sorted(given.items())
        if name in SAVED
    }


def restored(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an earlier run saved; flags that this version does not have are left out."""
    return {name: tuple(found) if isinstance(found, list) else found for name, found in _known(saved)}


def _known(saved: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return ((name, found) for name, found in saved.items() if name in SAVED)
