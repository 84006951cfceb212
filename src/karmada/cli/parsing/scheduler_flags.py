"""Flags of commands that run the scheduler's algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.prediction.world import World

F = TypeVar("F", bound=Callable[..., Any])


def algorithm_flags(command: F) -> F:
    """--plugins and --feature-gates: as the scheduler has them. --output."""
    for option in (
        click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default=None, help="json or yaml."),
        click.option("--feature-gates", default="", help="Feature gates of the scheduler: Name=true,Other=false."),
        click.option("--plugins", default="*", show_default=True, help="Plugins of the scheduler: names, *, -names."),
    ):
        command = option(command)
    return command


def world_from(plugins: str, feature_gates: str) -> World:
    """Failure for a plugin or a gate that does not exist."""
    from karmada.prediction.world import World

    with connect.refusals():
        return World(plugins, feature_gates)
