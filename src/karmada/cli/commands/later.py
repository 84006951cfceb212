"""Commands whose work this version does not do yet: addons.

Their flags and help are in place, so that scripts can be written and read; running one says what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from karmada.cli.parsing import program
from karmada.cli.parsing.releases import image
from karmada.cli.targeting import connect

_PRIORITY = "system-node-critical"


def _unavailable(command: str, instead: str) -> Callable[..., None]:
    def refuse(**_flags: Any) -> None:
        alternative = instead.format(program=program.command())
        raise connect.failure(f"{command} is not available yet in this version. {alternative}")

    return refuse


def _text(names: str, default: object, about: str) -> click.Option:
    return click.Option(names.split(), default=default, help=about, type=_type_of(default))


def _type_of(default: object) -> Any:
    return bool if isinstance(default, bool) else int if isinstance(default, int) else str


def _switch(names: str, about: str) -> click.Option:
    return click.Option(names.split(), is_flag=True, default=False, help=about)


_KUBECONFIG = "The kubeconfig of {}."
_CONTEXT = "The context in that kubeconfig."


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
