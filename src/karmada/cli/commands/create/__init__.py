"""`karmadactl create`: objects from files, or from the flags of a subcommand for each kind.

The subcommands are imported when they are used; the table has their places and their other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from karmada.cli.commands.create.generator import write_flags
from karmada.cli.targeting.files import file_flags


class Entry(NamedTuple):
    place: str
    aliases: tuple[str, ...] = ()


SUBCOMMANDS: dict[str, Entry] = {
    "clusterrole": Entry("rbac:clusterrole"),
    "clusterrolebinding": Entry("rbac:clusterrolebinding"),
    "configmap": Entry("data:configmap", ("cm",)),
    "cronjob": Entry("workloads:cronjob", ("cj",)),
    "deployment": Entry("workloads:deployment", ("deploy",)),
    "ingress": Entry("networking:ingress", ("ing",)),
    "job": Entry("workloads:job"),
    "namespace": Entry("settings:namespace", ("ns",)),
    "poddisruptionbudget": Entry("settings:poddisruptionbudget", ("pdb",)),
    "priorityclass": Entry("settings:priorityclass", ("pc",)),
    "quota": Entry("settings:quota", ("resourcequota",)),
    "role": Entry("rbac:role"),
    "rolebinding": Entry("rbac:rolebinding"),
    "secret": Entry("kinds:secret"),
    "service": Entry("kinds:service", ("svc",)),
    "serviceaccount": Entry("settings:serviceaccount", ("sa",)),
    "token": Entry("token:token"),
}


class Subcommands(click.Group):
    """A group whose commands are listed in a table and imported on use."""

    def __init__(self, *args: Any, table: Mapping[str, Entry], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._table = table
        self._places = {word: entry.place for name, entry in table.items() for word in (name, *entry.aliases)}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._places:
            return None
        module, _, name = self._places[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), name)
        return command


@click.command(cls=Subcommands, table=SUBCOMMANDS, invoke_without_command=True)
@file_flags
@click.option("--edit", is_flag=True, help="Edit the objects before they are created.")
@click.option("--raw", default="", help="POST the file unchanged to this path of the server.")
@click.option("-l", "--selector", default="", help="Only objects with these labels.")
@click.option("--windows-line-endings", is_flag=True, help="Use Windows line endings in the editor.")
@write_flags
def create(**flags: Any) -> None:
    """Create resources from files, or one resource with the subcommand of its kind.

    \b
    Examples:
      karmadactl create -f pod.yaml
      cat pod.json | karmadactl create -f -
      karmadactl create deployment web --image=nginx:1.27
    """
    if click.get_current_context().invoked_subcommand is None:
        from karmada.cli.commands.create.fromfiles import create_from_files

        create_from_files(flags)
