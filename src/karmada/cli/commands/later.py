"""Commands whose work this version does not do yet: init, deinit and addons.

Their flags and help are in place, so that scripts can be written and read; running one says what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from karmada.cli.parsing import program
from karmada.cli.parsing.releases import RELEASE, image
from karmada.cli.targeting import connect

_PRIORITY = "system-node-critical"
_COMPONENTS = (
    "karmada-apiserver",
    "karmada-scheduler",
    "karmada-kube-controller-manager",
    "karmada-controller-manager",
    "karmada-webhook",
    "karmada-aggregated-apiserver",
)
_OF_KUBERNETES = frozenset(("karmada-apiserver", "karmada-kube-controller-manager"))

_UP = "Start a control plane on this machine with '{program} local-up'"


def _unavailable(command: str, instead: str) -> Callable[..., None]:
    def refuse(**_flags: Any) -> None:
        alternative = instead.format(program=program.command())
        raise connect.failure(f"{command} is not available yet in this version. {alternative}")

    return refuse


def _text(names: str, default: object, about: str) -> click.Option:
    return click.Option(names.split(), default=default, help=about, type=_type_of(default))


def _type_of(default: object) -> Any:
    return bool if isinstance(default, bool) else int if isinstance(default, int) else str


def _list(name: str, about: str, default: Sequence[str] = ()) -> click.Option:
    return click.Option([name], default=tuple(default), multiple=True, help=about)


def _switch(names: str, about: str) -> click.Option:
    return click.Option(names.split(), is_flag=True, default=False, help=about)


def _duration(name: str, default: str, about: str) -> click.Option:
    return click.Option([name], default=default, type=connect.Duration(), help=about)


_KUBECONFIG = "The kubeconfig of {}."
_CONTEXT = "The context in that kubeconfig."


def _of_component(name: str) -> list[click.Option]:
    usual = "" if name in _OF_KUBERNETES else image(name)
    return [
        _text(f"--{name}-image", usual, f"The image of {name}."),
        _text(f"--{name}-replicas", 1, f"The number of {name} pods."),
        _text(f"--{name}-priority-class", _PRIORITY, f"The priority class of {name}'s pods."),
        _list(f"--{name}-extra-args", f"Further flags for {name}: --name=value, comma-separated."),
    ]


_CRDS = f"https://github.com/karmada-io/karmada/releases/download/{RELEASE}/crds.tar.gz"
_INIT: list[click.Parameter] = [
    _text("--private-image-registry", "", "Take every image from this registry."),
    _text("--image-pull-policy", "IfNotPresent", "When images are pulled: Always, Never or IfNotPresent."),
    _list("--image-pull-secrets", "Secrets to pull images with, comma-separated."),
    _text("--kube-image-mirror-country", "", "Take Kubernetes' images from a mirror in this country: cn."),
    _text("--kube-image-registry", "", "The registry of Kubernetes' images."),
    _text("--kube-image-tag", "v1.35.2", "The version of Kubernetes' images."),
    _text("--cert-external-ip", "", "Further IP addresses in the server's certificate, comma-separated."),
    _text("--cert-external-dns", "", "Further DNS names in the server's certificate, comma-separated."),
    _duration("--cert-validity-period", "8760h0m0s", "How long certificates are valid."),
    _text("--ca-cert-file", "", "The certificate of an existing CA [a new CA]."),
    _text("--ca-key-file", "", "The key of that CA."),
    _text("-n --namespace", "karmada-system", "The namespace to install into."),
    _text("--storage-classes-name", "", "The storage class of etcd's volumes, with --etcd-storage-mode=PVC."),
    _text("--kubeconfig", "", _KUBECONFIG.format("the cluster to install into")),
    _text("--context", "", _CONTEXT),
    _text("--host-cluster-domain", "cluster.local", "The DNS domain of the cluster to install into."),
    _text("--etcd-storage-mode", "hostPath", "Where etcd keeps its data: emptyDir, hostPath or PVC."),
    _text("--etcd-image", "", "The image of etcd."),
    _text("--etcd-replicas", 1, "The number of etcd pods."),
    _text("--etcd-data", "/var/lib/karmada-etcd", "The folder of etcd on its node, with hostPath."),
    _text("--etcd-node-selector-labels", "", "Labels of the nodes for etcd, with hostPath."),
    _text("--etcd-pvc-size", "5Gi", "The size of etcd's volumes, with PVC."),
    _text("--etcd-priority-class", _PRIORITY, "The priority class of etcd's pods."),
    _list("--etcd-extra-args", "Further flags for etcd: --name=value, comma-separated."),
    _text("--external-etcd-ca-cert-path", "", "The CA certificate of an external etcd."),
    _text("--external-etcd-client-cert-path", "", "The client certificate for the external etcd."),
    _text("--external-etcd-client-key-path", "", "The key of that client certificate."),
    _text("--external-etcd-servers", "", "The addresses of the external etcd."),
    _text("--external-etcd-key-prefix", "", "The key prefix in the external etcd."),
    _text("--crds", _CRDS, "Where the CustomResourceDefinitions are: a URL or a tar.gz file."),
    _text("--config", "", "A KarmadaInitConfig file; it takes precedence over flags."),
    _text("--karmada-apiserver-advertise-address", "", "The address by which clients reach the server."),
    _text("-p --port", 32443, "The node port of the server."),
    _text(
        "-d --karmada-data", "/etc/karmada", "The folder for kubeconfigs and certificates; an existing one is replaced."
    ),
    _text("--karmada-pki", "/etc/karmada/pki", "The folder for certificates."),
    _text(
        "--wait-component-ready-timeout", 120, "Seconds to wait until each component is ready; 0 waits without limit."
    ),
    *(option for name in _COMPONENTS for option in _of_component(name)),
]

init = click.Command(
    "init",
    params=_INIT,
    callback=_unavailable("init", f"{_UP}, or run 'karmada' as a server"),
    help="""Install a control plane into the cluster of a kubeconfig.

\b
Examples:
  karmadactl init
  karmadactl init --kubeconfig ~/.kube/host.config --namespace karmada-system --port 32443
  karmadactl init --etcd-storage-mode PVC --storage-classes-name standard --etcd-replicas 3
""",
)

deinit = click.Command(
    "deinit",
    params=[
        _text("-n --namespace", "karmada-system", "The namespace the control plane is in."),
        _text("--kubeconfig", "", _KUBECONFIG.format("the cluster it was installed into")),
        _text("--context", "", _CONTEXT),
        _switch("--dry-run", "Print what would be removed; remove nothing."),
        _switch("-f --force", "Do not ask for confirmation."),
        _switch("--purge-namespace", "Remove the namespace, too."),
    ],
    callback=_unavailable("deinit", "What '{program} local-up' started is stopped by '{program} local-down'"),
    help="""Remove a control plane from the cluster it was installed into. Data of etcd stays.

\b
Examples:
  karmadactl deinit --dry-run
  karmadactl deinit --force --purge-namespace
""",
)


# addons

_ADDON_FLAGS: list[click.Parameter] = [
    _text("-n --namespace", "karmada-system", "The namespace the control plane is in."),
    _text("--kubeconfig", "", _KUBECONFIG.format("the cluster it was installed into")),
    _text("--context", "", _CONTEXT),
    _text("--karmada-kubeconfig", "/etc/karmada/karmada-apiserver.config", _KUBECONFIG.format("the control plane")),
    _text("--karmada-context", "", "The context in the kubeconfig of the control plane."),
    _text("-C --cluster", "", "The member that karmada-scheduler-estimator is for."),
]
_ADDONS = (
    ("karmada-descheduler", "karmada-descheduler", "descheduler"),
    ("karmada-scheduler-estimator", "karmada-estimator", "estimator"),
    ("karmada-metrics-adapter", "karmada-metrics-adapter", "metrics-adapter"),
    ("karmada-search", "karmada-search", "search"),
)
_ENABLE: list[click.Parameter] = [
    *_ADDON_FLAGS,
    _text("--private-image-registry", "", "Take every image from this registry."),
    _text("--pod-timeout", 120, "Seconds to wait until pods are ready."),
    _text("--apiservice-timeout", 30, "Seconds to wait until APIServices are available."),
    _text("--member-kubeconfig", "", _KUBECONFIG.format("the member named by --cluster")),
    _text("--member-context", "", "The context in the kubeconfig of the member."),
    _text("--host-cluster-domain", "cluster.local", "The DNS domain of the cluster the control plane is in."),
    *(
        option
        for name, replicas, priority in _ADDONS
        for option in (
            _text(f"--{name}-image", image(name), f"The image of {name}."),
            _text(f"--{replicas}-replicas", 1, f"The number of {name} pods."),
            _text(f"--{priority}-priority-class", _PRIORITY, f"The priority class of {name}'s pods."),
        )
    ),
]
_NAMES = click.Argument(["names"], nargs=-1, metavar="(ADDON... | all)")
_BUILT_IN = "The scheduler and the controllers run inside the control plane and need no installation"
_ADDON_NAMES = "Addons: karmada-descheduler, karmada-metrics-adapter, karmada-scheduler-estimator, karmada-search."

addons = click.Group(
    "addons",
    help=f"""List, enable and disable the optional components of a control plane.

{_ADDON_NAMES}

\b
Examples:
  karmadactl addons list
  karmadactl addons enable karmada-search
""",
    commands=[
        click.Command(
            "list",
            params=_ADDON_FLAGS,
            callback=_unavailable("addons list", _BUILT_IN),
            help="""List the addons and whether they are enabled.

\b
Examples:
  karmadactl addons list
  karmadactl addons list -C member1
""",
        ),
        click.Command(
            "enable",
            params=[_NAMES, *_ENABLE],
            callback=_unavailable("addons enable", _BUILT_IN),
            help=f"""Install addons into the cluster the control plane is in.

{_ADDON_NAMES}

\b
Examples:
  karmadactl addons enable karmada-descheduler karmada-search
  karmadactl addons enable karmada-scheduler-estimator -C member1 --member-kubeconfig member1.config
""",
        ),
        click.Command(
            "disable",
            params=[_NAMES, *_ADDON_FLAGS, _switch("-f --force", "Do not ask for confirmation.")],
            callback=_unavailable("addons disable", _BUILT_IN),
            help="""Remove addons.

\b
Examples:
  karmadactl addons disable karmada-search
  karmadactl addons disable all --force
""",
        ),
    ],
)
