"""The parts that the command lines of all programs share.

These are `--version` and `version`, and flags that have no effect, or none without another.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from click.core import ParameterSource

from karmada.loading import collect_rarely

CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}


class Ignored(click.Option):
    """A flag that is accepted so that command lines written for Karmada work, and has no effect here."""


class Dependent(click.Option):
    """A flag that means something only where a switch is on: given without it, it is a mistake."""

    def __init__(self, *names: Any, needs: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.needs = needs
        """The switch, as it is written."""

    def is_lost(self, ctx: click.Context) -> bool:
        return is_given(ctx, self) and not ctx.params[self.needs.removeprefix("--").replace("-", "_")]


def is_given(ctx: click.Context, param: click.Parameter) -> bool:
    return ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from karmada.version import line

        click.echo(line(str(ctx.command.name)))
        ctx.exit()


_VERSION = click.Option(
    ["--version"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    show_default=False,
    help="Show which version this is and exit.",
)


class Program(click.Command):
    """A program that takes flags only; `--version`, or `version` as the first word, prints its version."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for param in self.params:
            if isinstance(param, click.Option) and param.default == "":
                param.show_default = False  # the help says what it means when it matters

    def main(self, args: Sequence[str] | None = None, *settings: Any, **more: Any) -> Any:
        collect_rarely()
        words = list(sys.argv[1:] if args is None else args)
        if words[:1] == ["version"] and "--help" not in words and "-h" not in words:
            words = ["--version"]
        return super().main(words, *settings, **more)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), _VERSION]

    def invoke(self, ctx: click.Context) -> Any:
        """Return the result; one line names all flags that have no effect; UsageError for one that needs another."""
        lost = next((param for param in self.params if isinstance(param, Dependent) and param.is_lost(ctx)), None)
        if lost is not None:
            raise click.UsageError(f"{lost.opts[0]} has no effect without {lost.needs}: add {lost.needs}", ctx)
        given = [param.opts[0] for param in self.params if isinstance(param, Ignored) and is_given(ctx, param)]
        if given:
            click.echo(f"Warning: without effect here: {', '.join(given)} (--help says why)", err=True)
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([("version", "Show which version this is.")])
