"""`karmadactl taint`: set and remove taints of clusters.

Words before the first taint name the clusters, `KEY=VALUE:EFFECT` sets a taint, `KEY:EFFECT-` or `KEY-` removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.output.taints import taint_text
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig

Taint = dict[str, Any]
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TYPES = ("cluster", "clusters")


class BadTaint(ValueError):
    """Words that make no sense; the text is for people."""


@dataclass(slots=True)
class Order:
    """The taints to add and to remove, and the clusters to change."""

    clusters: list[str]
    add: list[Taint] = field(default_factory=list)
    remove: list[Taint] = field(default_factory=list)

    def done(self, overwrite: bool) -> str:
        """Return what was done, in one word."""
        if overwrite or (self.add and self.remove):
            return "modified"
        return "tainted" if self.add else "untainted"


# words to an order


def parse_order(words: Sequence[str]) -> Order:
    names, specs = _split(words)
    if not names:
        raise BadTaint("at least one resource name must be specified")
    if names[0].lower() not in _TYPES:
        raise BadTaint(f'invalid resource type {names[0].lower()}, only ["cluster" "clusters"] are supported')
    if not specs:
        raise BadTaint("at least one taint update is required")
    order = Order(names[1:])
    for spec in specs:
        if spec.endswith("-"):
            order.remove.append(parse_taint(spec[:-1]))
        else:
            taint = parse_taint(spec)
            if "effect" not in taint:
                raise BadTaint(f"invalid taint spec: {spec}")
            order.add.append(taint)
    _check(order)
    if not order.clusters:
        raise BadTaint("at least one resource name must be specified")
    return order


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    names: list[str] = []
    specs: list[str] = []
    for word in words:
        if "=" in word or ":" in word or word.endswith("-"):
            specs.append(word)
        elif specs:
            raise BadTaint(f"all resources must be specified before taint changes: {word}")
        else:
            names.append(word)
    return names, specs


def parse_taint(spec: str) -> Taint:
    """KEY, KEY=VALUE, and either of them with :EFFECT."""
    from karmada.kube.objects import names

    left, colon, effect = spec.partition(":")
    key, equals, value = left.partition("=")
    if ":" in effect or "=" in value:
        raise BadTaint(f"invalid taint spec: {spec}")
    if colon and effect not in EFFECTS:
        raise BadTaint(f"invalid taint effect: {effect}, unsupported taint effect")
    wrong = names.label_value(value) if equals else []
    wrong = wrong or names.qualified_name(key)
    if wrong:
        raise BadTaint(f"invalid taint spec: {spec}, {'; '.join(wrong)}")
    taint: Taint = {"key": key}
    if value:
        taint["value"] = value
    if effect:
        taint["effect"] = effect
    return taint


def _check(order: Order) -> None:
    seen: set[tuple[str, str]] = set()
    for taint in order.add:
        pair = (taint["key"], taint["effect"])
        if pair in seen:
            raise BadTaint(f"duplicated taints with the same key and effect: {taint_text(taint)}")
        seen.add(pair)
    both = [
        f'{{"{gone["key"]}":"{gone.get("effect", "")}"}}'
        for new in order.add
        for gone in order.remove
        if _hits(gone, new)
    ]
    if both:
        raise BadTaint(f"can not both modify and remove the following taint(s) in the same command: {', '.join(both)}")


# an order to taints


def changed_taints(name: str, taints: Sequence[Taint], order: Order, *, overwrite: bool) -> list[Taint]:
    """Return the taints of a cluster after the order: the new ones, then what stays of the old ones."""
    there = [new["key"] for new in order.add if any(_same(new, old) for old in taints)]
    if there and not overwrite:
        raise BadTaint(
            f"cluster {name} already has {','.join(there)} taint(s) with same effect(s) and --overwrite is false"
        )
    missing = [gone for gone in order.remove if not any(_hits(gone, old) for old in taints)]
    if missing:
        raise BadTaint("\nerror: ".join(f'taint "{taint_text(gone)}" not found' for gone in missing))
    kept = [
        old
        for old in taints
        if not any(_same(new, old) for new in order.add) and not any(_hits(gone, old) for gone in order.remove)
    ]
    return [*order.add, *kept]


def _same(one: Taint, other: Taint) -> bool:
    return (one["key"], one.get("effect")) == (other["key"], other.get("effect"))


def _hits(gone: Taint, taint: Taint) -> bool:
    """Return whether a taint is to be removed; one without an effect stands for all of its key."""
    return bool(gone["key"] == taint["key"] and gone.get("effect") in (None, taint.get("effect")))


# the command


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("words", nargs=-1, metavar="cluster NAME… KEY[=VALUE]:EFFECT… | KEY[:EFFECT]-…")
@connect.connection_flags
@click.option("--overwrite", is_flag=True, help="Replace existing taints with the same key and effect.")
@connect.dry_run_flag
def taint(words: tuple[str, ...], way: connect.Way, overwrite: bool, dry_run: bool) -> None:
    """Set or remove taints of clusters.

    \b
    Examples:
      karmadactl taint cluster member1 maintenance=tonight:NoExecute
      karmadactl taint clusters member1 member2 maintenance:NoSchedule --overwrite
      karmadactl taint cluster member1 maintenance:NoExecute-
      karmadactl taint cluster member1 maintenance-
    """
    try:
        order = parse_order(words)
    except BadTaint as error:
        raise connect.failure(str(error)) from error
    problems = connect.run(_taint(way.config(), order, overwrite, dry_run))
    if problems:
        raise connect.Failure("\n".join(problems))


async def _taint(config: RestConfig, order: Order, overwrite: bool, dry_run: bool) -> list[str]:
    """Return what went wrong; a cluster that fails does not keep the others from it."""
    from karmada.cli.changing.cluster_taints import change_taints
    from karmada.kube.objects.errors import ApiError

    problems: list[str] = []
    async with connect.connected(config) as client:
        for name in order.clusters:
            change = partial(changed_taints, name, order=order, overwrite=overwrite)
            try:
                await change_taints(client, name, change, dry_run=dry_run)
            except BadTaint as error:
                problems.append(f"error: {error}")
            except ApiError as error:
                problems.append(connect.describe(error))
            else:
                click.echo(f"cluster/{name} {order.done(overwrite)}")
    return problems
