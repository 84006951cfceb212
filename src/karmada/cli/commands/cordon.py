"""`karmadactl cordon` and `uncordon`: the unschedulable taint of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig

_TOO_MANY = "more than one cluster name is not supported"


def cordoned(taints: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the taints with the unschedulable taint added; None when it exists."""
    if _place(taints) is not None:
        return None
    from karmada.api.well_known import NO_SCHEDULE, TAINT_UNSCHEDULABLE

    return [*taints, {"key": TAINT_UNSCHEDULABLE, "effect": NO_SCHEDULE}]


def uncordoned(taints: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the taints without it, the last one in its place; None when it is not there."""
    place = _place(taints)
    if place is None:
        return None
    left = [*taints]
    last = left.pop()
    if place < len(left):
        left[place] = last
    return left


def _place(taints: Sequence[dict[str, Any]]) -> int | None:
    from karmada.api.well_known import NO_SCHEDULE, TAINT_UNSCHEDULABLE

    for index, taint in enumerate(taints):
        if taint.get("key") == TAINT_UNSCHEDULABLE and taint.get("effect") == NO_SCHEDULE:
            return index
    return None


@click.command()
@click.argument("names", nargs=-1, metavar="CLUSTER")
@connect.connection_flags
@connect.dry_run_flag
def cordon(names: tuple[str, ...], way: connect.Way, dry_run: bool) -> None:
    """Mark CLUSTER unschedulable; resources that are there stay.

    \b
    Example:
      karmadactl cordon member1
    """
    _set_unschedulable(names, way, dry_run, wanted=True)


@click.command()
@click.argument("names", nargs=-1, metavar="CLUSTER")
@connect.connection_flags
@connect.dry_run_flag
def uncordon(names: tuple[str, ...], way: connect.Way, dry_run: bool) -> None:
    """Mark CLUSTER schedulable again.

    \b
    Example:
      karmadactl uncordon member1
    """
    _set_unschedulable(names, way, dry_run, wanted=False)


def _set_unschedulable(names: tuple[str, ...], way: connect.Way, dry_run: bool, *, wanted: bool) -> None:
    name = connect.one_name(names, _TOO_MANY)
    done = connect.run(_change(way.config(), name, dry_run, add=wanted))
    state = "cordoned" if wanted else "uncordoned"
    click.echo(f"{name} cluster {state if done else f'already {state}'}")


async def _change(config: RestConfig, name: str, dry_run: bool, *, add: bool) -> bool:
    """Return whether there was something to change."""
    from karmada.cli.changing.cluster_taints import change_taints

    async with connect.connected(config) as client:
        return await change_taints(client, name, cordoned if add else uncordoned, dry_run=dry_run)
