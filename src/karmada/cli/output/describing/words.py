"""Formatting that many kinds share: times, labels, annotations, selectors, amounts, access modes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karmada.cli.output.describing.sheet import NONE, UNKNOWN, Sheet

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

_LONGEST_ANNOTATION = 140
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def at(obj: Mapping[str, Any] | None, path: str, default: Any = "") -> Any:
    """Return the value at a dotted path; `default` when there is none, or null."""
    found: Any = obj
    for part in path.split("."):
        if not isinstance(found, Mapping):
            return default
        found = found.get(part)
    return default if found is None else found


def meta(obj: Obj, key: str, default: Any = "") -> Any:
    return at(obj, f"metadata.{key}", default)


# times


def moment(text: str, shape: str = "%a, %d %b %Y %H:%M:%S %z") -> str:
    """Return a time of the API, in local time: Sun, 15 Nov 2026 13:26:51 +0000, or in another shape."""
    from datetime import datetime

    from karmada.kube.objects.times import parse_time

    return datetime.fromtimestamp(parse_time(text)).astimezone().strftime(shape)


def moment_or_zero(text: str | None) -> str:
    return moment(text or "0001-01-01T00:00:00Z")


def since(text: str, now: float) -> str:
    """Return how long ago that was."""
    from karmada.kube.objects.times import human_duration, parse_time

    return human_duration(now - parse_time(text)) if text else UNKNOWN


# labels, annotations, selectors


def labels(sheet: Sheet, title: str, pairs: Mapping[str, str] | None, level: int = 0, inner: str = "") -> None:
    sheet.column(title, [f"{key}={value}" for key, value in sorted((pairs or {}).items())], level, inner)


def notes(sheet: Sheet, title: str, pairs: Mapping[str, str] | None, level: int = 0, inner: str = "") -> None:
    """Long values, and those of several lines, begin below their key; what `apply` keeps for itself is left out."""
    lines: list[str] = []
    for key, value in sorted((pairs or {}).items()):
        if key == _LAST_APPLIED:
            continue
        value = value.removesuffix("\n")
        if "\n" in value or _size(value) + _size(key) + 2 > _LONGEST_ANNOTATION:
            lines.append(f"{key}:")
            lines += [f"  {_shortened(line)}" for line in value.split("\n")]
        else:
            lines.append(f"{key}: {value}")
    sheet.column(title, lines, level, inner)


def _size(text: str) -> int:
    return len(text.encode())


def _shortened(line: str) -> str:
    limit = _LONGEST_ANNOTATION - 2
    return line if _size(line) <= limit else line.encode()[:limit].decode(errors="ignore") + "..."


def pairs_text(pairs: Mapping[str, str] | None) -> str:
    """Labels on one line."""
    return ",".join(f"{key}={value}" for key, value in sorted((pairs or {}).items())) or NONE


def selector_text(selector: Obj | None) -> str:
    from karmada.kube.objects.selectors import labels_from

    try:
        return str(labels_from(selector)) or NONE
    except ValueError:
        return "<error>"


def head(sheet: Sheet, obj: Obj, *, namespaced: bool = True) -> None:
    """Name, namespace, labels and annotations, as most descriptions begin."""
    if namespaced:
        names(sheet, obj)
    else:
        sheet.field("Name", meta(obj, "name"))
    marks(sheet, obj)


def names(sheet: Sheet, obj: Obj) -> None:
    sheet.field("Name", meta(obj, "name"))
    sheet.field("Namespace", meta(obj, "namespace"))


def marks(sheet: Sheet, obj: Obj) -> None:
    labels(sheet, "Labels", meta(obj, "labels", {}))
    notes(sheet, "Annotations", meta(obj, "annotations", {}))


def phase(sheet: Sheet, obj: Obj, now: float) -> None:
    """Write the phase as the status; of an object that is being deleted, how long that has lasted."""
    deleted = meta(obj, "deletionTimestamp")
    sheet.field("Status", f"Terminating (lasts {since(deleted, now)})" if deleted else at(obj, "status.phase"))


def conditions(
    sheet: Sheet, found: Sequence[Obj], *times: str, time: Callable[[str | None], str] = moment_or_zero, end: str = ""
) -> None:
    """Write a section with the conditions, if there are any.

    `times` are those of their times that are shown, written by `time`; `end` is what every cell but the last ends with.
    """
    if not found:
        return
    sheet.row(0, "Conditions:")
    sheet.heads(1, "Type", "Status", *times, "Reason", "Message")
    for one in found:
        moments = [time(one.get(title[0].lower() + title[1:])) for title in times]
        cells = (one["type"], one["status"], *moments, one.get("reason") or "")
        sheet.row(1, *(f"{cell}{end}" for cell in cells), one.get("message") or "")


def controlled_by(sheet: Sheet, obj: Obj) -> None:
    from karmada.kube.objects.meta import controller_of

    owner = controller_of(obj)
    if owner is not None:
        sheet.field("Controlled By", f"{owner['kind']}/{owner['name']}")


def joined(values: Iterable[Any], between: str = ", ", none: str = NONE) -> str:
    return between.join(map(str, values)) or none


# amounts and kinds of access


def amounts(sheet: Sheet, title: str, resources: Mapping[str, Any] | None, level: int) -> None:
    """Resources, one on each line below the title; nothing when there are none."""
    from karmada.kube.objects.quantity import canonical

    if not resources:
        return
    sheet.row(level, f"{title}:")
    for name in sorted(resources):
        sheet.field(name, canonical(resources[name]), level + 1)


def access_modes(modes: Sequence[str] | None) -> str:
    """`RWO,RWX`: each once, in a fixed order."""
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


def title_case(value: bool) -> str:
    return "True" if value else "False"
