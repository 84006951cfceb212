"""Sets of completion indexes as a Job's status writes them: "0-2,4"; from three in a row on it is a range."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj

INDEX = "batch.kubernetes.io/job-completion-index"


def parse_indexes(text: str | None, completions: int) -> set[int]:
    """Return what is not below `completions` is left out: an indexed Job may have become smaller."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found.update(range(int(first), min(int(last or first) + 1, completions)))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    parts: list[str] = []
    for _, group in groupby(enumerate(sorted(indexes)), key=lambda pair: pair[1] - pair[0]):
        run = [index for _, index in group]
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(index) for index in run]
    return ",".join(parts)


def index_of(pod: Obj) -> int | None:
    """Return the completion index of a pod; None when it has none that makes sense."""
    text = meta.annotations(pod).get(INDEX, "")
    return int(text) if text.isdecimal() else None
