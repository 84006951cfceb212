"""`karmadactl addons`: list, enable and disable the optional components of an installed control plane."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.parsing.confirming import confirmed
from karmada.cli.targeting import connect
from karmada.install.images import IMAGE
from karmada.install.names import DOMAIN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from karmada.install.addons.catalog import Addon
    from karmada.install.addons.lifecycle import Addons
    from karmada.install.addons.settings import Settings
    from karmada.kube.client.config import RestConfig

_PRIORITY = "system-node-critical"
_NAMES = (
    "Addons: karmada-dashboard, karmada-descheduler, karmada-metrics-adapter, karmada-scheduler-estimator, "
    "karmada-search."
)
_OPTIONS = {
    "karmada-dashboard": ("karmada-dashboard", "dashboard"),
    "karmada-descheduler": ("karmada-descheduler", "descheduler"),
    "karmada-scheduler-estimator": ("karmada-estimator", "estimator"),
    "karmada-metrics-adapter": ("karmada-metrics-adapter", "metrics-adapter"),
    "karmada-search": ("karmada-search", "search"),
}
"""Name of each addon in the flags for its replicas and priority class."""


def _text(names: str, default: object, about: str) -> click.Option:
    kind = int if isinstance(default, int) else str
    return click.Option(names.split(), default=default, type=kind, help=about)


_COMMON: list[click.Parameter] = [
    _text("-n --namespace", "karmada-system", "The namespace the control plane is in."),
    _text("--kubeconfig", "", "The kubeconfig of the cluster it was installed into."),
    _text("--context", "", "The context in that kubeconfig."),
    _text("--karmada-kubeconfig", "/etc/karmada/karmada-apiserver.config", "The kubeconfig of the control plane."),
    _text("--karmada-context", "", "The context in the kubeconfig of the control plane."),
    _text("-C --cluster", "", "The member that karmada-scheduler-estimator is for."),
]
_ENABLE: list[click.Parameter] = [
    _text("--private-image-registry", "", "Take every image from this registry."),
    _text("--pod-timeout", 120, "Seconds to wait until pods are ready."),
    _text("--apiservice-timeout", 30, "Seconds to wait until APIServices are available."),
    _text("--member-kubeconfig", "", "The kubeconfig of the member named by --cluster."),
    _text("--member-context", "", "The context in the kubeconfig of the member."),
    _text("--host-cluster-domain", "cluster.local", "The DNS domain of the cluster the control plane is in."),
    click.Option(
        ["--karmada-dashboard-host"],
        multiple=True,
        help="A name by which browsers reach karmada-dashboard, besides localhost and addresses; repeatable.",
    ),
    _text(
        "--karmada-dashboard-tls-secret",
        "",
        "The Secret (kubernetes.io/tls) with the certificate of karmada-dashboard.  [default: each pod makes its own]",
    ),
    *(
        option
        for name, (replicas, priority) in _OPTIONS.items()
        for option in (
            _text(f"--{name}-image", "", f"The image of {name} [{IMAGE}]."),
            _text(f"--{replicas}-replicas", 1, f"The number of {name} pods."),
            _text(f"--{priority}-priority-class", _PRIORITY, f"The priority class of {name}'s pods."),
        )
    ),
]
_ARGUMENT = click.Argument(["names"], nargs=-1, metavar="(ADDON... | all)")


def _list(**flags: Any) -> None:
    from karmada.install.addons.states import table

    rows: list[tuple[str, str]] = []

    async def look(addons: Addons) -> None:
        await addons.look(lambda name, state: rows.append((name, state)))

    try:
        connect.run(_with_addons(flags, look))
    finally:
        if rows:
            click.echo(table(rows))


def _enable(names: Sequence[str], **flags: Any) -> None:
    from karmada.local.board import Board

    chosen = _chosen(names, flags["cluster"])
    if any(addon.per_cluster for addon in chosen):
        connect.run(_check_member(_member(flags)))

    async def enable(addons: Addons) -> None:
        async with Board(sys.stderr) as board:
            await addons.enable(chosen, board)

    connect.run(_with_addons(flags, enable))


def _disable(names: Sequence[str], **flags: Any) -> None:
    chosen = _chosen(names, flags["cluster"])
    click.echo(f"Disable Karmada addon [{' '.join(addon.name for addon in chosen)}]")
    if not flags["force"] and not confirmed("Are you sure you want to disable the addons?"):
        return

    async def disable(addons: Addons) -> None:
        await addons.disable(chosen, click.echo)

    connect.run(_with_addons(flags, disable))


def _chosen(names: Sequence[str], cluster: str) -> list[Addon]:
    from karmada.install.addons.catalog import chosen
    from karmada.install.options import InstallError

    try:
        found, warnings = chosen(names, cluster)
    except InstallError as error:
        raise connect.usage(str(error)) from error
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)
    return found


# connecting


async def _with_addons(flags: dict[str, Any], work: Any) -> None:
    async with _opened(flags) as addons:
        await work(addons)


@asynccontextmanager
async def _opened(flags: dict[str, Any]) -> AsyncIterator[Addons]:
    from karmada.install.addons.lifecycle import Addons

    host = connect.member_config(flags["kubeconfig"], flags["context"], flag="--kubeconfig")
    karmada = connect.control_config(flags["karmada_kubeconfig"], flags["karmada_context"])
    async with connect.connected(host) as at_host, connect.connected(karmada) as at_karmada:
        yield Addons(
            host=at_host,
            karmada=at_karmada,
            settings=_settings(flags),
            pod_seconds=float(flags.get("pod_timeout", 0)),
            api_seconds=float(flags.get("apiservice_timeout", 0)),
        )


def _settings(flags: dict[str, Any]) -> Settings:
    from karmada.install.addons.member_access import self_contained
    from karmada.install.addons.settings import Settings
    from karmada.install.images import ImageSource

    member = flags.get("member_kubeconfig", "")
    return Settings(
        namespace=flags["namespace"],
        domain=flags.get("host_cluster_domain", DOMAIN),
        images=ImageSource(private_registry=flags.get("private_image_registry", "")),
        components=_components(flags) if "pod_timeout" in flags else {},
        cluster=flags["cluster"],
        member_kubeconfig=self_contained(Path(member).expanduser(), flags["member_context"]) if member else b"",
        hosts=flags.get("karmada_dashboard_host", ()),
        serving_secret=flags.get("karmada_dashboard_tls_secret", ""),
    )


def _components(flags: dict[str, Any]) -> dict[str, Any]:
    from karmada.install.options import Component, InstallError

    found = {}
    for name, (replicas, priority) in _OPTIONS.items():
        count = flags[f"{replicas.replace('-', '_')}_replicas"]
        if count < 1:
            raise InstallError(f"--{replicas}-replicas must be at least 1")
        found[name] = Component(
            image=flags[f"{name.replace('-', '_')}_image"],
            replicas=count,
            priority_class=flags[f"{priority.replace('-', '_')}_priority_class"],
            extra_args=(),
        )
    return found


def _member(flags: dict[str, Any]) -> RestConfig:
    if not flags["member_kubeconfig"]:
        raise connect.failure(f"the estimator of {flags['cluster']} needs the kubeconfig of it: --member-kubeconfig")
    return connect.control_config(flags["member_kubeconfig"], flags["member_context"])


async def _check_member(config: RestConfig) -> None:
    """Failure unless the estimator will be able to count there."""
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError
    from karmada.kube.objects.gvk import GVR

    async with connect.connected(config) as member:
        for resource in ("nodes", "pods"):
            try:
                await member.list(GVR("", "v1", resource), limit=1)
            except (ApiError, ConnectionFailed) as error:
                raise connect.failure(
                    f"--member-kubeconfig: an estimator must list the {resource} of the member: {connect.reason(error)}"
                ) from error


addons = click.Group(
    "addons",
    help=f"""List, enable and disable the optional components of a control plane.

{_NAMES}

\b
Examples:
  karmadactl addons list
  karmadactl addons enable karmada-search
""",
    commands=[
        click.Command(
            "list",
            params=_COMMON,
            callback=_list,
            help="""List the addons and whether they are enabled.

\b
Examples:
  karmadactl addons list
  karmadactl addons list -C member1
""",
        ),
        click.Command(
            "enable",
            params=[_ARGUMENT, *_COMMON, *_ENABLE],
            callback=_enable,
            help=f"""Install addons into the cluster the control plane is in; enabled again, they are repaired.

{_NAMES}

\b
Examples:
  karmadactl addons enable karmada-descheduler karmada-search
  karmadactl addons enable karmada-scheduler-estimator -C member1 --member-kubeconfig member1.config
""",
        ),
        click.Command(
            "disable",
            params=[
                _ARGUMENT,
                *_COMMON,
                click.Option(["-f", "--force"], is_flag=True, default=False, help="Skip the confirmation."),
            ],
            callback=_disable,
            help="""Remove addons.

\b
Examples:
  karmadactl addons disable karmada-search
  karmadactl addons disable all --force
""",
        ),
    ],
)
