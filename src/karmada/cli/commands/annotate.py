"""`karmadactl annotate`: set and remove annotations."""

from __future__ import annotations

from typing import Any

import click

from karmada.cli.changing import writing
from karmada.cli.changing.metadata import Sort, change, change_flags

ANNOTATIONS = Sort(
    word="annotation",
    place="annotations",
    both=lambda keys: (
        f"can not both modify and remove the following annotation(s) in the same command: {', '.join(keys)}"
    ),
    refused=lambda there: f"--overwrite is false but found the following declared annotation(s): {'; '.join(there)}",
    check=lambda _word, _value: None,
    outcome=lambda _old, _new, _overwrite: "annotated",
)


@click.command()
@change_flags
@writing.manager_flag("kubectl-annotate")
def annotate(words: tuple[str, ...], **flags: Any) -> None:
    """Set annotations of resources (KEY=VALUE) or remove them (KEY-).

    \b
    Examples:
      karmadactl annotate deployment web description='the shop' owner=web-team
      karmadactl annotate deployment web owner=platform --overwrite
      karmadactl annotate -f web.yaml description-
    """
    change(ANNOTATIONS, words, flags)
