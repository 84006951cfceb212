"""`karmadactl`: the command line of the control plane.

Commands are modules of this package, imported when they are used: showing a version must not cost the import of a
simulator. The table says which module has which command, and what the overview shows of it.
"""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "backup": ("karmada.cli.backup:backup", "Copy everything of a store into a file."),
    "crds": ("karmada.cli.crds:crds", "Write Karmada's CustomResourceDefinitions."),
    "cordon": ("karmada.cli.cordon:cordon", "Keep new resources away from a cluster."),
    "join": ("karmada.cli.join:join", "Make a cluster a member."),
    "taint": ("karmada.cli.taint:taint", "Change the taints of clusters."),
    "uncordon": ("karmada.cli.cordon:uncordon", "Let new resources onto a cluster again."),
    "simulate": ("karmada.cli.simulate:simulate", "Tell what a policy would do, without doing it."),
    "why": ("karmada.cli.why:why", "Tell why a resource is in the clusters where it is."),
    "unjoin": ("karmada.cli.unjoin:unjoin", "Take a cluster out of the control plane."),
    "render": ("karmada.cli.render:render", "Show what a cluster would get, and which override made each change."),
    "restore": ("karmada.cli.backup:restore", "Put a backup into an empty store."),
    "webhook-config": (
        "karmada.cli.webhook_config:webhook_config",
        "Write the configurations of the admission webhooks.",
    ),
    "sim": ("karmada.cli.sim:sim", "Simulated clusters: real APIs, no machines behind them."),
}


class Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Look after a control plane and its clusters."""


if __name__ == "__main__":
    main()
