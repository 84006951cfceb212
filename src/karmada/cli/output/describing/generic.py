"""Kinds without a describer: all their fields, with readable names."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import Sheet
from karmada.cli.output.describing.words import head

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_SHOWN_BEFORE = frozenset({"managedFields", "name", "namespace", "labels", "annotations"})
_ACRONYMS = frozenset({"API", "URL", "UID", "OSB", "GUID"})


async def generic(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj)
    rest = {key: value for key, value in obj["metadata"].items() if key not in _SHOWN_BEFORE}
    fields(sheet, 0, {**obj, "metadata": rest})


def fields(sheet: Sheet, level: int, content: Obj) -> None:
    """In the order of their names; lists of objects follow one another without a sign."""
    for name in sorted(content):
        value, title = content[name], label(name)
        if isinstance(value, dict):
            sheet.row(level, f"{title}:")
            fields(sheet, level + 1, value)
        elif isinstance(value, list):
            sheet.row(level, f"{title}:")
            for item in value:
                if isinstance(item, dict):
                    fields(sheet, level + 1, item)
                else:
                    sheet.row(level + 1, item)
        else:
            sheet.field(title, value, level)


def label(name: str) -> str:
    """`creationTimestamp` becomes `Creation Timestamp`; names with other signs than letters and dashes stay."""
    if not all(character.isalpha() or character == "-" for character in name):
        return name
    return " ".join(part.upper() if part.upper() in _ACRONYMS else part[:1].upper() + part[1:] for part in words(name))


def words(name: str) -> list[str]:
    """Return the words of a camel-case name, each beginning with a capital letter."""
    runs = ["".join(run) for _, run in groupby(name, key=_class)]
    for number in range(1, len(runs)):
        before, run = runs[number - 1], runs[number]
        if before[0].isupper() and run[0].islower():
            runs[number - 1], runs[number] = before[:-1], before[-1] + run
    return [run for run in runs if run]


def _class(character: str) -> str:
    return "lower" if character.islower() else "upper" if character.isupper() else "other"
