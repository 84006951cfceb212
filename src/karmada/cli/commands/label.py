"""`karmadactl label`: set and remove labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from karmada.cli.changing import writing
from karmada.cli.changing.metadata import Sort, change, change_flags
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj


def _check(word: str, value: str) -> None:
    from karmada.kube.objects.names import label_value

    wrong = label_value(value)
    if wrong:
        raise connect.failure(f'invalid label value: "{word}": {"; ".join(wrong)}')


def outcome(old: Obj, new: Obj, overwrite: bool) -> str:
    """Return what kubectl prints: unlabeled when an object got smaller, unless overwriting may have made it so."""
    before, after = (obj["metadata"].get("labels") or {} for obj in (old, new))
    if before == after:
        return "not labeled"
    smaller = sum(len(key) + len(value) for key, value in after.items()) < sum(
        len(key) + len(value) for key, value in before.items()
    )
    return "unlabeled" if smaller and not overwrite else "labeled"


LABELS = Sort(
    word="label",
    place="labels",
    both=lambda _: "can not both modify and remove a label in the same command",
    refused=lambda there: f"{there[0]}, and --overwrite is false",
    check=_check,
    outcome=outcome,
    missing='label "{key}" not found.',
)


@click.command()
@change_flags
@writing.manager_flag("kubectl-label")
def label(words: tuple[str, ...], **flags: Any) -> None:
    """Set labels of resources (KEY=VALUE) or remove them (KEY-).

    \b
    Examples:
      karmadactl label cluster member1 region=eu
      karmadactl label deployment web tier=front --overwrite
      karmadactl label pods --all tier-
      karmadactl label deployment web --list
    """
    change(LABELS, words, flags)
