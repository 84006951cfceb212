"""`karmadactl version`."""

from __future__ import annotations

import click

from karmada.cli.parsing import program


@click.command()
def version() -> None:
    """Show which version this is; no server is asked.

    \b
    Examples:
      karmadactl version
    """
    from karmada.version import line

    click.echo(line(program.command()))
