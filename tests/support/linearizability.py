"""A checker for histories of concurrent operations on single keys, as Jepsen has one.

Each key is a register that can be absent. Every write has a token that no other write has, so a compare-and-swap on the
resourceVersion that a client has read is one on the token it has read with it. A history is linearizable if each
operation can be given one moment between its call and its return so that all results are those of a single register.
An operation without a known result may have happened at any moment after its call, or not at all.

The search is that of Wing and Gong with Lowe's memory: an operation can be next if no other one had returned before it
was called; a set of operations done and a state that were met before are not looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from karmada.kube.objects.types import Obj

Kind = Literal["read", "create", "update", "delete"]
Outcome = Literal["ok", "refused", "unknown"]
State = int | None
"""The token of the last write; None: the key is absent."""
FOREVER = float("inf")


@dataclass(slots=True)
class Operation:
    key: str
    kind: Kind
    called: float
    returned: float = FOREVER
    outcome: Outcome = "unknown"
    token: State = None
    """What is written, or what a read returned."""
    expected: State = None
    """Of an update: the token that was read before."""
    version: int = 0
    """The resourceVersion of a write that is ok."""


class Impossible(Exception):
    """The operation cannot have had this result in this state."""


def step(state: State, op: Operation) -> State:
    """The state after the operation; an unknown one that would have been refused changes nothing."""
    possible = {
        "read": state == op.token,
        "create": state is None,
        "update": state is not None and state == op.expected,
        "delete": state is not None,
    }[op.kind]
    if op.outcome == "ok" and not possible:
        raise Impossible
    if op.outcome == "refused" and possible:
        raise Impossible
    if op.kind == "read" or op.outcome == "refused" or not possible:
        return state
    return None if op.kind == "delete" else op.token


class Violation(NamedTuple):
    key: str
    operations: list[Operation]

    def __str__(self) -> str:
        return f"{self.key} is not linearizable:\n" + "\n".join(map(str, self.operations))


def check(history: Iterable[Operation]) -> list[Violation]:
    """The keys whose operations have no order that explains them."""
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for op in history:
        if op.kind != "read" or op.outcome != "unknown":
            by_key[op.key].append(op)
    return [Violation(key, operations) for key, operations in by_key.items() if not linearizable(operations)]


def linearizable(operations: list[Operation], state: State = None) -> bool:
    ordered = sorted(operations, key=lambda op: op.called)
    certain = sum(1 << number for number, op in enumerate(ordered) if op.outcome != "unknown")
    stack: list[tuple[int, State]] = [(0, state)]
    met = set(stack)
    while stack:
        done, state = stack.pop()
        if done & certain == certain:
            return True
        for number in _next(ordered, done):
            try:
                following = (done | 1 << number, step(state, ordered[number]))
            except Impossible:
                continue
            if following not in met:
                met.add(following)
                stack.append(following)
    return False


def _next(ordered: list[Operation], done: int) -> list[int]:
    """Those that may come next; the last called is tried last."""
    found: list[int] = []
    first_return = FOREVER
    number = (~done & (done + 1)).bit_length() - 1  # the first that is not done
    while number < len(ordered) and ordered[number].called <= first_return:
        if not done >> number & 1:
            found.append(number)
            first_return = min(first_return, ordered[number].returned)
        number += 1
    return [number for number in reversed(found) if ordered[number].called <= first_return]


def out_of_order(history: Iterable[Operation]) -> list[tuple[Operation, Operation]]:
    """Pairs of writes of which the one that had returned before the other was called has the greater revision."""
    writes = sorted((op for op in history if op.version), key=lambda op: op.version)
    found: list[tuple[Operation, Operation]] = []
    latest: Operation | None = None
    for op in writes:
        if latest is not None and op.returned < latest.called:
            found.append((latest, op))
        if latest is None or op.called > latest.called:
            latest = op
    return found


class Seen(NamedTuple):
    """An event of a watch."""

    type: str
    key: str
    token: int
    version: int


def watch_errors(events: list[Seen], history: Iterable[Operation]) -> list[str]:
    """What a watch that was resumed after every break should not have shown, or should have and did not."""
    errors: list[str] = []
    last, present = 0, set[str]()
    for event in events:
        if event.version <= last:
            errors.append(f"{event} comes after revision {last}")
        last = max(last, event.version)
        if (event.type == "ADDED") == (event.key in present):
            errors.append(f"{event}: the key was {'present' if event.key in present else 'absent'}")
        (present.discard if event.type == "DELETED" else present.add)(event.key)
    shown = {(event.key, event.version): event for event in events}
    for op in history:
        if op.outcome != "ok" or not op.version or op.version > last:
            continue
        found = shown.get((op.key, op.version))
        if found is None or found.token != op.token:
            errors.append(f"acknowledged, but shown as {found}: {op}")
    return errors


def version_of(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])
