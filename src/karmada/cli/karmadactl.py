"""`karmadactl`: the command line of the control plane. Commands are modules of this package, put together here."""

from __future__ import annotations

import click

from karmada.cli.backup import backup, restore


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Look after a control plane."""


main.add_command(backup)
main.add_command(restore)

if __name__ == "__main__":
    main()
