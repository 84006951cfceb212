"""Whether an addon is there, and whether it works: a rule of what the two clusters have of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karmada.install.diagnosis import condition
from karmada.kube.objects.types import Obj

ENABLED: Final = "enabled"
DISABLED: Final = "disabled"
UNHEALTHY: Final = "unhealthy"
UNKNOWN: Final = "unknown"


def state(deployment: Obj | None, apis: Iterable[Obj | None]) -> str:
    """`apis` are its APIServices; None stands for what does not exist."""
    found = list(apis)
    if deployment is None or None in found:
        return DISABLED
    return ENABLED if _runs(deployment) and all(map(_is_available, found)) else UNHEALTHY


def _runs(deployment: Obj) -> bool:
    wanted, status = deployment["spec"].get("replicas", 1), deployment.get("status") or {}
    return all(status.get(field, 0) == wanted for field in ("readyReplicas", "availableReplicas"))


def _is_available(api: Obj | None) -> bool:
    return api is not None and condition(api, "Available").get("status") == "True"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Names and states, in a frame."""
    lines = [("ADDON NAME", "STATUS"), *rows]
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    rule = _framed("-" * (width + 2) for width in widths)
    head, *body = ([f" {text:<{width}} " for text, width in zip(line, widths, strict=True)] for line in lines)
    centred = _framed(text.strip().center(len(text)) for text in head)
    return "\n".join([rule, centred, rule, *map(_framed, body), rule])


def _framed(cells: Iterable[str]) -> str:
    return f"|{'|'.join(cells)}|"
