"""The output of commands that show a table of objects unless another format is given: its flags, once for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from karmada.cli.output import printing

FORMATS: Final = tuple(sorted((*printing.FORMATS, "wide")))
_TABLES: Final = ("", "wide")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutput:
    output: str
    template: str
    allow_missing: bool
    managed_fields: bool
    no_headers: bool
    sort_by: str

    @property
    def is_table(self) -> bool:
        return self.output in _TABLES and not self.template

    @property
    def wide(self) -> bool:
        return self.output == "wide"

    def printer(self) -> printing.Printer:
        """For what is no table; Failure for a format there is not."""
        return printing.printer(
            self.output,
            self.template,
            self.allow_missing,
            self.managed_fields,
            no_headers=self.no_headers,
            formats=FORMATS,
        )


def table_flags(command: F) -> F:
    """-l, -w, and what TableOutput has, under the names that kubectl gives them."""
    command = click.option("--sort-by", default="", help="Sort by this field, e.g. .metadata.creationTimestamp.")(
        command
    )
    command = click.option("--no-headers", is_flag=True, help="Do not print the header.")(command)
    command = printing.print_flags(command, FORMATS)
    command = click.option("-w", "--watch", is_flag=True, help="List, then watch for changes.")(command)
    return click.option(
        "-l", "--labels", "--selector", default="", help="Only what has these labels, e.g. app=web,tier!=b."
    )(command)
