"""What the programs of the control plane have in common on the command line: `PROGRAM version`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click


class Program(click.Command):
    """A program that is named, takes flags only, and tells its version when the first word asks for it."""

    def main(self, args: Sequence[str] | None = None, *settings: Any, **more: Any) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        if words[:1] != ["version"] or "--help" in words or "-h" in words:
            return super().main(args, *settings, **more)
        from karmada.version import line

        click.echo(line(str(self.name)))
        sys.exit(0)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([("version", "Show which version this is.")])
