"""One line a figure, beside its goal."""

from __future__ import annotations

import operator
from collections.abc import Callable

GOALS: dict[str, tuple[float, Callable[[float, float], bool]]] = {
    "creates/s": (2000, operator.ge),
    "gets/s": (6000, operator.ge),
    "cold start, s": (1.5, operator.le),
    "resident with 10,000 Deployments, MB": (200, operator.le),
    "100 clusters × 50 nodes × 500 pods: start, s": (20, operator.le),
    "… resident, MB": (3000, operator.le),
    "… CPU at rest, % of a core": (20, operator.le),
    "one Deployment to both members: p50, ms": (25, operator.le),
    "Works/s, 1,000 Deployments × 2": (300, operator.ge),
    "Works/s, 10,000 Deployments × 2": (300, operator.ge),
    "… control plane with 10,000 Deployments, MB": (400, operator.le),
    "scheduled/s, 100 clusters: Aggregated": (1000, operator.ge),
    "scheduled/s, 100 clusters: dynamic weight": (1000, operator.ge),
    "one cluster joined and Ready, s": (3, operator.le),
    "of 100 clusters, 20 dead: Ready": (80, operator.ge),
    "update to handler, in-process: p50, ms": (1, operator.lt),
    "update to handler, TLS: p50, ms": (5, operator.lt),
}


def show(name: str, value: float, note: str = "") -> None:
    goal = GOALS.get(name)
    against = ""
    if goal is not None:
        wanted, holds = goal
        against = f"  goal {wanted:,g}: {'reached' if holds(value, wanted) else 'MISSED'}"
    print(f"{name:46s} {value:12,.2f}{against}{'  ' + note if note else ''}", flush=True)
