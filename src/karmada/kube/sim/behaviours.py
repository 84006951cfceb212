"""Behaviour of simulated pods: named rules for pods that do anything else than start and become ready.

The first rule that matches a pod applies; the pod's own annotation `sim.io/behavior` has precedence, in the syntax of
`parse_outcome`. Rules are added and removed while the cluster runs; subscribers are notified and resync their pods. A
rule that matches by image applies to the containers with such an image, any other rule to all containers of the pod.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, get_args

import msgspec

from karmada.kube.objects.meta import controller_of
from karmada.kube.objects.times import parse_duration
from karmada.kube.objects.types import Obj
from karmada.kube.sim.profile import Delay

ANNOTATION = "sim.io/behavior"
OutcomeKind = Literal[
    "ok",
    "run-for",
    "never-ready",
    "ready-after",
    "crash-loop",
    "image-pull-error",
    "create-config-error",
    "oom",
    "evicted",
    "stuck-terminating",
    "flap",
    "slow-start",
]
_KINDS: dict[str, OutcomeKind] = {kind: kind for kind in get_args(OutcomeKind)}


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a pod behaves, with its parameters."""

    kind: OutcomeKind = "ok"
    seconds: float | None = None
    """How long containers run before they end (run-for, crash-loop, oom, evicted: 1), until they are ready
    (ready-after: 10), between two changes (flap: 10)."""
    exit_code: int | None = None
    """With which code they end: 0 for run-for, 1 for crash-loop."""
    message: str = ""
    """Replaces the default message: the cause of a pull error, a probe's output, the missing ConfigMap."""
    delay: Delay | None = None
    """slow-start: from the pod's acceptance to its running."""
    containers: tuple[str, ...] = ()
    """The affected containers; empty: all but init containers."""

    def __post_init__(self) -> None:
        if self.seconds is not None and (self.seconds < 0 or (self.kind == "flap" and self.seconds == 0)):
            raise ValueError(f"{self.kind} cannot take {self.seconds:g} seconds")

    @property
    def after(self) -> float:
        if self.seconds is not None:
            return self.seconds
        return 10.0 if self.kind in ("ready-after", "flap") else 1.0

    @property
    def code(self) -> int:
        if self.exit_code is not None:
            return self.exit_code
        return {"crash-loop": 1, "oom": 137}.get(self.kind, 0)

    def concerns(self, container: str, *, init: bool) -> bool:
        return container in self.containers if self.containers else not init


OK = Outcome()


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A selection of pods (empty fields match all) and their behaviour."""

    outcome: Outcome
    namespace: str = ""
    labels: dict[str, str] = {}
    image: str = ""
    """A regular expression, searched in the images of the pod's containers."""
    owner: str = ""
    """The pod's controller: `ReplicaSet/web-5d8f`, or only its kind or its name."""
    node: str = ""

    def __post_init__(self) -> None:
        try:
            _pattern(self.image)
        except re.error as error:
            raise ValueError(f"image is not a regular expression: {error}") from None

    def of(self, pod: Obj) -> Outcome | None:
        """Return the outcome of a pod that the rule matches; else None."""
        metadata, spec = pod["metadata"], pod["spec"]
        if self.namespace and self.namespace != metadata.get("namespace"):
            return None
        if self.node and self.node != spec.get("nodeName"):
            return None
        if self.labels:
            labels = metadata.get("labels") or {}
            if any(labels.get(key) != value for key, value in self.labels.items()):
                return None
        if self.owner and not _owned(pod, self.owner):
            return None
        if not self.image:
            return self.outcome
        matching = _with_image(spec, _pattern(self.image))
        if not matching:
            return None
        return self.outcome if self.outcome.containers else msgspec.structs.replace(self.outcome, containers=matching)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _with_image(spec: Obj, pattern: re.Pattern[str]) -> tuple[str, ...]:
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    return tuple([c["name"] for c in containers if pattern.search(c.get("image") or "")])


def _owned(pod: Obj, wanted: str) -> bool:
    owner = controller_of(pod)
    return owner is not None and wanted in (owner["kind"], owner["name"], f"{owner['kind']}/{owner['name']}")


class Behaviours:
    """Rules by name, in the order in which they were added."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}
        self._listeners: list[Callable[[], None]] = []

    def add(self, name: str, rule: Rule) -> None:
        """Add a rule; one of the same name is replaced and keeps its place."""
        if self._rules.get(name) != rule:
            self._rules[name] = rule
            self._emit()

    def remove(self, name: str) -> bool:
        """Return False when there is no such rule."""
        if self._rules.pop(name, None) is None:
            return False
        self._emit()
        return True

    def list(self) -> dict[str, Rule]:
        return dict(self._rules)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the rules have changed."""
        self._listeners.append(listener)

    def _emit(self) -> None:
        for listener in self._listeners:
            listener()

    def of(self, pod: Obj) -> Outcome:
        annotations = pod["metadata"].get("annotations")
        if annotations and ANNOTATION in annotations:
            outcome = _annotated(annotations[ANNOTATION])
            if outcome is not None:
                return outcome
        for rule in self._rules.values():
            found = rule.of(pod)
            if found is not None:
                return found
        return OK


@lru_cache(maxsize=1024)
def _annotated(text: str) -> Outcome | None:
    """Return None for an invalid annotation: the pod then behaves as without it."""
    try:
        return parse_outcome(text)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def parse_outcome(text: str) -> Outcome:
    """Return an outcome from text: `crash-loop`, `run-for 5s exit 1`, `ready-after 10s`, `slow-start 2s-8s`.

    After the kind may follow one duration (a range for slow-start) and `exit N`. ValueError names what is wrong.
    """
    name, *words = text.split() or [""]
    kind = _KINDS.get(name)
    if kind is None:
        raise ValueError(f'unknown behaviour "{name}" (known: {", ".join(_KINDS)})')
    seconds: float | None = None
    exit_code: int | None = None
    delay: Delay | None = None
    while words:
        word = words.pop(0)
        if word == "exit" and words:
            exit_code = int(words.pop(0))
        elif kind == "slow-start":
            delay = _parse_delay(word)
        else:
            seconds = parse_duration(word)
    return Outcome(kind, seconds, exit_code, delay=delay)


def _parse_delay(text: str) -> Delay:
    low, dash, high = text.partition("-")
    if not dash:
        return Delay(parse_duration(low))
    return Delay(parse_duration(low), parse_duration(high), "uniform")
