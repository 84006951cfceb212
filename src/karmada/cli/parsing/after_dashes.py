"""Command lines with another one behind `--`, which is passed on unparsed."""

from __future__ import annotations

import click

_BEHIND = "karmada.cli.parsing.after_dashes"


class AfterDashes(click.Command):
    """A command that keeps what stands behind `--` as it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[_BEHIND] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)


def behind_dashes() -> list[str] | None:
    """Return the words behind `--` of the command that runs; None when there are no dashes."""
    words: list[str] | None = click.get_current_context().meta.get(_BEHIND)
    return words
