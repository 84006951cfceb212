"""A run as somebody at a terminal watches it: progress on standard error, tables on standard output."""

from __future__ import annotations

import sys

import click

from benchmarks.machine import Machine
from benchmarks.report import described, table
from benchmarks.results import ScenarioResult
from benchmarks.run import Watcher


class Terminal(Watcher):
    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def starts(self, machine: Machine) -> None:
        click.echo(described(machine))
        for warning in machine.warnings:
            click.secho(f"\n*** {warning} ***\n", fg="red", bold=True, err=True)

    def begins(self, step: str) -> None:
        click.echo(f"{step} … ", nl=False, err=True)

    def progress(self, text: str) -> None:
        if self._live:
            click.echo(f"{text} … ", nl=False, err=True)

    def ends(self, outcome: str) -> None:
        click.echo(outcome, err=True)

    def finished(self, result: ScenarioResult) -> None:
        click.echo(f"\n{table(result)}\n")
