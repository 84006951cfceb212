"""`karmadactl init`: install a control plane into a cluster, repair or upgrade it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from karmada.cli.parsing import program
from karmada.cli.targeting import connect
from karmada.install.flags import FLAGS, Flag

if TYPE_CHECKING:
    from karmada.install.options import Options
    from karmada.install.phases import Installation

_DRY_RUN = "Print the manifests of the host cluster as YAML; change nothing. They contain private keys."
_PHASES = ("preflight", "certs", "kubeconfig", "host", "karmada-apiserver", "karmada-aggregated-apiserver",
           "control-plane", "components")  # fmt: skip


def _option(flag: Flag) -> click.Option:
    names = [*([f"-{flag.short}"] if flag.short else []), f"--{flag.name}"]
    if isinstance(flag.default, tuple):
        return click.Option(names, default=flag.default, multiple=True, help=flag.about)
    if flag.default is None:
        return click.Option(names, type=bool, is_flag=False, flag_value=True, default=None, help=flag.about)
    if isinstance(flag.default, float):
        return click.Option(names, default=_shown(flag.default), type=connect.Duration(), help=flag.about)
    kind: Any = click.Choice(flag.choices) if flag.choices else type(flag.default)
    return click.Option(names, default=flag.default if flag.default != "" else None, type=kind, help=flag.about)


def _shown(seconds: float) -> str:
    from karmada.kube.objects.times import format_duration

    return format_duration(seconds)


def _options() -> list[click.Parameter]:
    return [*map(_option, FLAGS.values()), click.Option(["--dry-run"], is_flag=True, default=False, help=_DRY_RUN)]


def _given() -> dict[str, Any]:
    """Return the flags of the command line, and of the file that it may name."""
    from karmada.install.config_file import with_config

    context = click.get_current_context()
    given = {
        name: context.params[name.replace("-", "_")]
        for name in FLAGS
        if context.get_parameter_source(name.replace("-", "_")) is ParameterSource.COMMANDLINE
    }
    with connect.refusals():
        return with_config(given, Path(given["config"]).expanduser()) if given.get("config") else given


def _install(names: tuple[str, ...], *, dry_run: bool) -> None:
    from karmada.install.options import check_flags

    given = _given()
    with connect.refusals():
        check_flags(given)
    config = connect.member_config(given.get("kubeconfig", ""), given.get("context", ""), flag="--kubeconfig")
    connect.run(_run(config, given, names, dry_run))


async def _run(config: Any, given: dict[str, Any], names: tuple[str, ...], dry_run: bool) -> None:
    from karmada.install.existing import with_earlier
    from karmada.install.phases import Installation
    from karmada.local.board import Board

    async with connect.connected(config) as host, Board(sys.stderr, changes=True) as board:
        options = await with_earlier(host, given)
        board.say(f"Host cluster {config.server}, namespace {options.namespace}: {_layout(options)}")
        if "crds" in given:
            board.say("--crds is without effect: the definitions of kinds are those of this version")
        installation = Installation(host, options, connect.connected, board)
        if dry_run:
            board.say("The manifests contain private keys: keep them from others")
            await _print_manifests(installation)
            return
        await installation.run(names)
        server, pin = installation.server, installation.pin
    if not names:
        from karmada.install.success import success

        click.echo(success(program.command(), installation.kubeconfig, server, pin))


def _layout(options: Options) -> str:
    if options.all_in_one:
        return f"everything in one Deployment, with SQLite on a volume ({options.why})"
    store = {"sqlite": "SQLite on volumes", "etcd": "etcd"}[options.store]
    return f"separate components, with {'an external ' if options.external_etcd else ''}{store} ({options.why})"


async def _print_manifests(installation: Installation) -> None:
    from karmada.kube.schema.yamlio import dump_yaml

    manifests = await installation.manifests()
    click.echo(b"---\n".join(map(dump_yaml, manifests)), nl=False)


def _init(**flags: Any) -> None:
    if click.get_current_context().invoked_subcommand is None:
        _install((), dry_run=flags["dry_run"])


def _phase(names: tuple[str, ...], **flags: Any) -> None:
    unknown = [name for name in names if name not in _PHASES]
    if unknown or not names:
        what = f'there is no phase "{unknown[0]}"' if unknown else "name at least one phase"
        raise connect.failure(f"{what} (phases: {', '.join(_PHASES)})")
    _install(names, dry_run=flags["dry_run"])


_phase_command = click.Command(
    "phase",
    params=[click.Argument(["names"], nargs=-1, metavar="PHASE..."), *_options()],
    callback=_phase,
    help=f"""Run single phases of an installation, in their usual order.

Phases: {", ".join(_PHASES)}.

\b
Examples:
  karmadactl init phase certs
  karmadactl init phase host karmada-apiserver --namespace karmada-system
""",
)

init = click.Group(
    "init",
    params=_options(),
    callback=_init,
    invoke_without_command=True,
    commands=[_phase_command],
    help="""Install a control plane into the cluster of a kubeconfig; run again, it repairs and upgrades.

Without flags about etcd or single components everything is one Deployment with SQLite on a volume: it starts in
seconds and needs no etcd. Such a flag, or --all-in-one=false, installs separate components.

\b
Examples:
  karmadactl init
  karmadactl init --kubeconfig ~/.kube/host.config --namespace karmada-system --port 32443
  karmadactl init --etcd-storage-mode PVC --storage-classes-name standard --etcd-replicas 3
  karmadactl init --dry-run > karmada.yaml
""",
)
