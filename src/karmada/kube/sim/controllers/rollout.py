"""How many replicas each ReplicaSet of a Deployment should have next: the arithmetic of rollouts, on plain numbers.

A rolling update moves in small steps between two bounds: never more pods than wanted + surge, never fewer available
ones than wanted - unavailable. The new set grows as far as the first bound allows; then old sets shrink as far as the
second one does, first by pods that are not available. When the wanted number changes in the middle of that, every
set keeps its share of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Bounds(NamedTuple):
    """How many pods there may be above the wanted number, and how many of them may be missing."""

    surge: int
    unavailable: int


class Part(NamedTuple):
    """One ReplicaSet: how many pods it should have and how many of them are available.

    `limit` is the maximum of pods of all sets when `replicas` was decided; 0 if unknown.
    """

    name: str
    replicas: int
    available: int = 0
    limit: int = 0


class Step(NamedTuple):
    name: str
    replicas: int


def share(value: int | str, total: int, *, up: bool) -> int:
    """Return a number; a percentage ("25%") of the total, rounded up or down."""
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * total // 100) if up else percent * total // 100


def rolling_bounds(surge: int | str, unavailable: int | str, wanted: int) -> Bounds:
    """If both were zero, no step would be possible: then one pod may be unavailable."""
    above, missing = share(surge, wanted, up=True), share(unavailable, wanted, up=False)
    if above == 0 and missing == 0:
        missing = 1
    return Bounds(above, min(missing, wanted))


def new_size(wanted: int, surge: int, new: int, total: int) -> int:
    """Return the new set's next size, when it has `new` and all sets together `total`."""
    if new >= wanted:
        return wanted
    room = wanted + surge - total
    return new + max(0, min(room, wanted - new))


def old_steps(wanted: int, unavailable: int, new: Part, old: Sequence[Part]) -> list[Step]:
    """Return what to take from the old sets, oldest first: unavailable pods, then available ones that can go."""
    least = wanted - unavailable
    total = new.replicas + sum(part.replicas for part in old)
    most = total - least - (new.replicas - new.available)
    if most <= 0 or total == new.replicas:
        return []
    steps, left = _drop_unavailable(old, most)
    spare = new.available + sum(part.available for part in old) - least
    for part in left:
        taken = min(part.replicas, spare)
        if taken > 0:
            steps.append(Step(part.name, part.replicas - taken))
            spare -= taken
    return steps


def _drop_unavailable(old: Sequence[Part], most: int) -> tuple[list[Step], list[Part]]:
    """Up to `most` pods that are not available; the steps, and the sets as they are after them."""
    steps: list[Step] = []
    left: list[Part] = []
    for part in old:
        taken = max(0, min(most, part.replicas - part.available))
        if taken:
            part = part._replace(replicas=part.replicas - taken)
            steps.append(Step(part.name, part.replicas))
            most -= taken
        left.append(part)
    return steps, left


def proportional(wanted: int, surge: int, parts: Sequence[Part], known_total: int = 0) -> list[Step]:
    """Return new sizes for sets, oldest first, when the wanted number changed while several of them have pods.

    Each grows or shrinks by its share; what rounding leaves over goes to the largest. `known_total` stands in for the
    limit of sets that have none.
    """
    allowed = wanted + surge if wanted > 0 else 0
    total = sum(part.replicas for part in parts)
    change = allowed - total
    order = sorted(reversed(parts) if change > 0 else parts, key=lambda part: -part.replicas)
    sizes: list[int] = []
    left = change
    for part in order:
        portion = _portion(part, allowed, left, part.limit or known_total or total)
        sizes.append(part.replicas + portion)
        left -= portion
    for index, size in enumerate(sizes):
        sizes[index] = max(0, size + left)
        left += size - sizes[index]
    return [Step(part.name, size) for part, size in zip(order, sizes, strict=True)]


def _portion(part: Part, allowed: int, left: int, limit: int) -> int:
    """Return by how much a set changes, never past what is left to give or to take."""
    if part.replicas == 0 or left == 0:
        return 0
    ideal = (2 * part.replicas * allowed + limit) // (2 * limit) - part.replicas if allowed else -part.replicas
    return min(ideal, left) if left > 0 else max(ideal, left)
