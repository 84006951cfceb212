"""Commands whose work this version does not do yet: init, deinit, addons, register and unregister.

Their flags and help are in place, so that scripts can be written and read; running one says what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from karmada.cli.parsing import program
from karmada.cli.targeting import connect

_RELEASE = "v1.18.2"
"""Of the images and the CRDs that the flags name by default."""
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
_JOIN = "let the control plane push to the cluster: '{program} join'"


def _unavailable(command: str, instead: str) -> Callable[..., None]:
    def refuse(**_flags: Any) -> None:
        told = instead.format(program=program.command())
        raise connect.failure(f"{command} is not available yet in this version. {told}")

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
    image = "" if name in _OF_KUBERNETES else f"docker.io/karmada/{name}:{_RELEASE}"
    return [
        _text(f"--{name}-image", image, f"The image of {name}."),
        _text(f"--{name}-replicas", 1, f"How many pods of {name} run."),
        _text(f"--{name}-priority-class", _PRIORITY, f"The priority class of {name}'s pods."),
        _list(f"--{name}-extra-args", f"Further flags for {name}: --name=value, with commas."),
    ]


_CRDS = f"https://github.com/karmada-io/karmada/releases/download/{_RELEASE}/crds.tar.gz"
_INIT: list[click.Parameter] = [
    _text("--private-image-registry", "", "Take every image from this registry."),
    _text("--image-pull-policy", "IfNotPresent", "When images are pulled: Always, Never or IfNotPresent."),
    _list("--image-pull-secrets", "Secrets to pull images with, with commas."),
    _text("--kube-image-mirror-country", "", "Take Kubernetes' images from a mirror in this country: cn."),
    _text("--kube-image-registry", "", "The registry of Kubernetes' images."),
    _text("--kube-image-tag", "v1.35.2", "The version of Kubernetes' images."),
    _text("--cert-external-ip", "", "Further addresses in the server's certificate, with commas."),
    _text("--cert-external-dns", "", "Further names in the server's certificate, with commas."),
    _duration("--cert-validity-period", "8760h0m0s", "How long certificates are valid."),
    _text("--ca-cert-file", "", "The certificate of an authority to use rather than a new one."),
    _text("--ca-key-file", "", "The key of that authority."),
    _text("-n --namespace", "karmada-system", "The namespace to install into."),
    _text("--storage-classes-name", "", "The storage class of etcd's volumes, with --etcd-storage-mode=PVC."),
    _text("--kubeconfig", "", _KUBECONFIG.format("the cluster to install into")),
    _text("--context", "", _CONTEXT),
    _text("--host-cluster-domain", "cluster.local", "The DNS domain of the cluster to install into."),
    _text("--etcd-storage-mode", "hostPath", "Where etcd keeps its data: emptyDir, hostPath or PVC."),
    _text("--etcd-image", "", "The image of etcd."),
    _text("--etcd-replicas", 1, "How many pods of etcd run."),
    _text("--etcd-data", "/var/lib/karmada-etcd", "The folder of etcd on its node, with hostPath."),
    _text("--etcd-node-selector-labels", "", "Labels of the nodes for etcd, with hostPath."),
    _text("--etcd-pvc-size", "5Gi", "The size of etcd's volumes, with PVC."),
    _text("--etcd-priority-class", _PRIORITY, "The priority class of etcd's pods."),
    _list("--etcd-extra-args", "Further flags for etcd: --name=value, with commas."),
    _text("--external-etcd-ca-cert-path", "", "The authority of an etcd that is there already."),
    _text("--external-etcd-client-cert-path", "", "The certificate to show that etcd."),
    _text("--external-etcd-client-key-path", "", "The key of that certificate."),
    _text("--external-etcd-servers", "", "The addresses of that etcd."),
    _text("--external-etcd-key-prefix", "", "What keys in that etcd begin with."),
    _text("--crds", _CRDS, "Where the CustomResourceDefinitions are: a URL or a tar.gz file."),
    _text("--config", "", "A KarmadaInitConfig file; what it says comes before flags."),
    _text("--karmada-apiserver-advertise-address", "", "The address by which clients reach the server."),
    _text("-p --port", 32443, "The node port of the server."),
    _text("-d --karmada-data", "/etc/karmada", "The folder for kubeconfigs and certificates; it is made anew."),
    _text("--karmada-pki", "/etc/karmada/pki", "The folder for certificates."),
    _text("--wait-component-ready-timeout", 120, "For how many seconds each component is waited for; 0: for ever."),
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
        _switch("--dry-run", "Say what would be removed, and remove nothing."),
        _switch("-f --force", "Do not ask first."),
        _switch("--purge-namespace", "Remove the namespace as well."),
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
    _text("--pod-timeout", 120, "For how many seconds pods are waited for."),
    _text("--apiservice-timeout", 30, "For how many seconds APIServices are waited for."),
    _text("--member-kubeconfig", "", _KUBECONFIG.format("the member named by --cluster")),
    _text("--member-context", "", "The context in the kubeconfig of the member."),
    _text("--host-cluster-domain", "cluster.local", "The DNS domain of the cluster the control plane is in."),
    *(
        option
        for name, replicas, priority in _ADDONS
        for option in (
            _text(f"--{name}-image", f"docker.io/karmada/{name}:{_RELEASE}", f"The image of {name}."),
            _text(f"--{replicas}-replicas", 1, f"How many pods of {name} run."),
            _text(f"--{priority}-priority-class", _PRIORITY, f"The priority class of {name}'s pods."),
        )
    ),
]
_NAMES = click.Argument(["names"], nargs=-1, metavar="(ADDON... | all)")
_BUILT_IN = "The scheduler and the controllers run within the control plane; there is nothing to install for them"
_ADDONS_TOLD = "Addons: karmada-descheduler, karmada-metrics-adapter, karmada-scheduler-estimator, karmada-search."

addons = click.Group(
    "addons",
    help=f"""List, enable and disable the optional components of a control plane.

{_ADDONS_TOLD}

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

{_ADDONS_TOLD}

\b
Examples:
  karmadactl addons enable karmada-descheduler karmada-search
  karmadactl addons enable karmada-scheduler-estimator -C member1 --member-kubeconfig member1.config
""",
        ),
        click.Command(
            "disable",
            params=[_NAMES, *_ADDON_FLAGS, _switch("-f --force", "Do not ask first.")],
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


# clusters that pull

register = click.Command(
    "register",
    params=[
        click.Argument(["endpoint"], nargs=-1, metavar="KARMADA_APISERVER_ENDPOINT"),
        _text("--kubeconfig", "", _KUBECONFIG.format("the cluster that registers")),
        _text("--context", "", _CONTEXT),
        _text("-n --namespace", "karmada-system", "The namespace for the agent."),
        _text("--cluster-name", "", "What the cluster is called; by default as in its kubeconfig."),
        _text("--cluster-namespace", "karmada-cluster", "Where the control plane keeps its Secrets."),
        _text("--cluster-provider", "", "Who runs the machines of the cluster."),
        _text("--cluster-region", "", "The region the cluster is in."),
        _list("--cluster-zones", "The zones the cluster is in, with commas."),
        _switch("--enable-cert-rotation", "Have the agent renew its certificate."),
        _text("--token", "", "The token the cluster shows the control plane, from 'karmadactl token create'."),
        _list("--discovery-token-ca-cert-hash", "The control plane's authority must be one of these: sha256:HEX."),
        _switch("--discovery-token-unsafe-skip-ca-verification", "Trust whatever answers."),
        _duration("--discovery-timeout", "5m0s", "How long the control plane is tried."),
        _text("--karmada-agent-image", f"docker.io/karmada/karmada-agent:{_RELEASE}", "The image of the agent."),
        _text("--karmada-agent-replicas", 1, "How many pods of the agent run."),
        _text("--cert-expiration-seconds", 31536000, "How long the agent's certificate is valid."),
        _text("--proxy-server-address", "", "The proxy by which the control plane reaches the cluster."),
        _switch("--dry-run", "Look whether it could register, and change nothing."),
    ],
    callback=_unavailable("register", f"Instead, {_JOIN}"),
    help="""Register a cluster that pulls its resources from the control plane at KARMADA_APISERVER_ENDPOINT.

\b
Examples:
  karmadactl register 10.0.0.1:5443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1a2b...
  karmadactl register 10.0.0.1:5443 --cluster-name member3 --token abcdef.0123456789abcdef \\
    --discovery-token-unsafe-skip-ca-verification
""",
)

unregister = click.Command(
    "unregister",
    params=[
        click.Argument(["names"], nargs=-1, metavar="CLUSTER_NAME"),
        _text("--cluster-kubeconfig", "", _KUBECONFIG.format("the cluster")),
        _text("--cluster-context", "", _CONTEXT),
        _text("--karmada-config", "", _KUBECONFIG.format("the control plane")),
        _text("--karmada-context", "", "The context in the kubeconfig of the control plane."),
        _text("-n --namespace", "karmada-system", "The namespace the agent is in."),
        _text("--agent-name", "karmada-agent", "The Deployment of the agent."),
        _text("--cluster-namespace", "karmada-cluster", "Where the control plane keeps the cluster's Secrets."),
        _duration("--wait", "1m0s", "How long the cluster's resources are waited for."),
        _switch("--dry-run", "Look whether it could be done, and change nothing."),
    ],
    callback=_unavailable("unregister", "Clusters that were joined leave with '{program} unjoin'"),
    help="""Take CLUSTER_NAME, which pulls its resources, out of the control plane.

\b
Examples:
  karmadactl unregister member3 --cluster-kubeconfig member3.config
  karmadactl unregister member3 --cluster-kubeconfig member3.config --karmada-config karmada.config
""",
)
