"""`karmadactl version`."""

from __future__ import annotations

import click

from karmada.cli.parsing import program


@click.command()
def version() -> None:
    """Show the version of this program.

    \b
    Examples:
      karmadactl version
    """
    from karmada.version import line

    click.echo(line(program.command()))
