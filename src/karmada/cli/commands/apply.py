"""`karmadactl apply`: client-side or server-side apply; with --cluster or --all-clusters, with policies."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import click

from karmada.cli.changing import writing
from karmada.cli.output.printing import print_flags
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import file_flags, read_files, require_files

F = TypeVar("F", bound=Callable[..., Any])
CLIENT_SIDE, SERVER_SIDE = "kubectl-client-side-apply", "kubectl"
_SUBCOMMANDS = {
    "view-last-applied": "view_last_applied",
    "set-last-applied": "set_last_applied",
    "edit-last-applied": "edit_last_applied",
}


class _Apply(click.Group):
    """The command and its subcommands on the last-applied annotation, which are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _SUBCOMMANDS:
            return None
        command: click.Command = getattr(
            import_module("karmada.cli.changing.applying.last_applied"), _SUBCOMMANDS[cmd_name]
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _SUBCOMMANDS:
            with ctx:
                raise connect.usage(f"Unexpected args: [{' '.join(args)}]")
        return super().resolve_command(ctx, args)


def _deletion_flags(command: F) -> F:
    for option in (
        click.option("--wait", is_flag=True, help="Wait until deleted objects are gone."),
        click.option(
            "--timeout", type=connect.Duration(), default=0.0, help="How long to wait; 0 waits without limit."
        ),
        click.option("--grace-period", type=int, default=-1, help="Grace period of deleted objects, in seconds."),
        click.option("--force", is_flag=True, help="Delete and recreate objects that cannot be updated."),
        click.option(
            "--cascade",
            default="background",
            show_default=True,
            help="How dependents of deleted objects are deleted: background, foreground or orphan.",
        ),
    ):
        command = option(command)
    return command


def _prune_flags(command: F) -> F:
    for option in (
        click.option("--all", "all_", is_flag=True, help="With --prune: select all objects, whatever their labels."),
        click.option(
            "--prune-allowlist",
            multiple=True,
            help="With --prune: only objects of this group/version/kind; may be repeated.",
        ),
        click.option(
            "--prune", is_flag=True, help="Delete objects that were applied before and are no longer in the files."
        ),
    ):
        command = option(command)
    return command


@click.command(cls=_Apply, invoke_without_command=True)
@file_flags
@click.option("-l", "--selector", default="", help="Only objects with these labels.")
@click.option("--server-side", is_flag=True, help="Use server-side apply: the server merges and tracks field managers.")
@click.option(
    "--force-conflicts", is_flag=True, help="With --server-side: take over fields of other managers on conflict."
)
@click.option("--field-manager", default="", help=f"The field manager [{CLIENT_SIDE}].")
@click.option("--overwrite", is_flag=True, default=True, help="Let the files win where others changed the same fields.")
@click.option("--openapi-patch", is_flag=True, default=True, hidden=True, help="Accepted for compatibility.")
@click.option("--subresource", default="", help="With --server-side: apply to this subresource.")
@click.option("--all-clusters", is_flag=True, help="Propagate the objects to all clusters.")
@click.option(
    "-C", "--cluster", "clusters", multiple=True, help="Propagate the objects to this cluster; may be repeated."
)
@_prune_flags
@_deletion_flags
@writing.dry_run_flag
@writing.validate_flag
@print_flags
@connect.connection_flags
@connect.namespace_flag
def apply(**flags: Any) -> None:
    """Apply configuration files: create objects that are missing, update fields that differ.

    With --all-clusters or --cluster, each object also gets a policy that propagates it there.

    \b
    Examples:
      karmadactl apply -f web.yaml
      karmadactl apply -f manifests/ --cluster member1,member2
      karmadactl apply -f web.yaml --all-clusters
      karmadactl apply -f manifests/ --prune -l app=web
      cat web.yaml | karmadactl apply --server-side -f -
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    _check(flags)
    from karmada.cli.changing.applying.run import apply_sources

    sources = read_files(flags["filenames"], flags["kustomize"], flags["recursive"])
    connect.run(apply_sources(sources, flags))


def _check(flags: dict[str, Any]) -> None:
    require_files(flags["filenames"], flags["kustomize"])
    dry_run, server_side, prune = flags["dry_run"], flags["server_side"], flags["prune"]
    no_all = (
        "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all "
        "flag. If you did not mean to prune all resources, specify a label selector"
    )
    for wrong, text in (
        (flags["force_conflicts"] and not server_side, "--force-conflicts only works with --server-side"),
        (
            dry_run == writing.CLIENT and server_side,
            "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
        ),
        (flags["force"] and server_side, "--force cannot be used with --server-side"),
        (dry_run == writing.SERVER and flags["force"], "--dry-run=server cannot be used with --force"),
        (flags["subresource"] and not server_side, "--subresource can only be specified for --server-side"),
        (flags["all_"] and flags["selector"], "cannot set --all and --selector at the same time"),
        (prune and not flags["all_"] and not flags["selector"], no_all),
        (prune and flags["force"], "--force cannot be used with --prune"),
        (flags["all_clusters"] and flags["clusters"], "--all-clusters and --cluster cannot be used together"),
    ):
        if wrong:
            raise connect.failure(text)
    if flags["cascade"] not in ("background", "foreground", "orphan"):
        raise connect.failure(
            f'invalid cascade value ({flags["cascade"]}). Must be "background", "foreground", or "orphan"'
        )
    flags["field_manager"] = flags["field_manager"] or (SERVER_SIDE if server_side else CLIENT_SIDE)
