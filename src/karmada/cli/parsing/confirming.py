"""A question that a person answers before something is removed."""

from __future__ import annotations

import sys

import click

from karmada.cli.targeting import connect


def confirmed(question: str = "Are you sure?") -> bool:
    """Until the answer is yes or no; Failure without one, as in a script that has no terminal."""
    while True:
        click.echo(f"{question} (y/n): ", nl=False)
        answer = sys.stdin.readline().strip().lower()
        if not answer:
            raise connect.failure("no answer; --force goes on without one")
        if answer in ("y", "yes"):
            return True
        if answer in ("n", "no"):
            return False
