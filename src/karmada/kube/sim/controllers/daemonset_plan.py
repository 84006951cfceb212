"""What a DaemonSet does next, decided from what is on each node.

`keep` comes first: one running pod on every eligible node, none where it may not stay, finished ones replaced. Only
when there is nothing to do, an update (`rollout`) continues. Without surge an old pod is deleted, and its node counts
as unavailable until the new one is available; with surge the new pod is created beside the old one, which is deleted
when the new one is available. Old pods that are not available are replaced at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import available_in, is_available, is_ready, is_terminal, node_name
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.amounts import amount
from karmada.kube.sim.controllers.daemonset_pods import target_node
from karmada.kube.sim.controllers.nodefit import Fit
from karmada.kube.sim.controllers.revisions import revision_of


@dataclass(slots=True)
class OnNode:
    """A node, whether daemon pods may start or stay on it, and its daemon pods, also pending ones, oldest first."""

    name: str
    fit: Fit
    pods: list[Obj] = field(default_factory=list)

    @property
    def alive(self) -> list[Obj]:
        return [pod for pod in self.pods if not is_deleting(pod) and not is_terminal(pod)]


@dataclass(frozen=True, slots=True)
class Rules:
    """The desired numbers of the set; `hash` is the revision that pods should have."""

    hash: str
    min_ready: int
    max_unavailable: int
    max_surge: int
    now: float

    def available(self, pod: Obj) -> bool:
        return is_available(pod, self.min_ready, self.now)


@dataclass(slots=True)
class Plan:
    create: list[str] = field(default_factory=list)
    """Nodes that get a pod."""
    delete: list[Obj] = field(default_factory=list)
    finished: list[Obj] = field(default_factory=list)
    """Finished pods, to be deleted; failed ones with back-off."""

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


def rules_of(workload: Obj, hash_: str, wanted: int, now: float) -> Rules:
    """`wanted` is the number of nodes that should run a pod; shares are shares of it."""
    spec = workload["spec"]
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {} if strategy.get("type") != "OnDelete" else {}
    surge = amount(rolling.get("maxSurge"), wanted, up=True)
    unavailable = amount(rolling.get("maxUnavailable"), wanted, up=True)
    return Rules(hash_, spec.get("minReadySeconds") or 0, unavailable if unavailable or surge else 1, surge, now)


def by_node(pods: Iterable[Obj]) -> dict[str, list[Obj]]:
    """Oldest first, bound pods before pending ones; without finished ones that are being deleted."""
    found: dict[str, list[Obj]] = {}
    for pod in pods:
        if not (is_terminal(pod) and is_deleting(pod)):
            found.setdefault(target_node(pod), []).append(pod)
    for together in found.values():
        if len(together) > 1:
            together.sort(key=_age)
    return found


def _age(pod: Obj) -> tuple[bool, str, bool, str]:
    """Return the sort key; times are whole seconds: of two pods of the same one, a ready one counts as older."""
    metadata = pod["metadata"]
    return not node_name(pod), metadata.get("creationTimestamp") or "", not is_ready(pod), metadata["name"]


def keep(nodes: Iterable[OnNode], rules: Rules) -> Plan:
    plan = Plan()
    for node in nodes:
        if node.fit.run and not node.pods:
            plan.create.append(node.name)
        elif node.fit.stay:
            _keep_one(plan, node, rules)
        else:
            plan.delete += [pod for pod in node.pods if not is_deleting(pod)]
    return plan


def _keep_one(plan: Plan, node: OnNode, rules: Rules) -> None:
    plan.finished += [pod for pod in node.pods if is_terminal(pod) and not is_deleting(pod)]
    alive = node.alive
    if not rules.max_surge:
        plan.delete += alive[1:]
    elif alive:
        plan.delete += _too_many(alive, rules)
    elif node.fit.run and not any(is_terminal(pod) for pod in node.pods):
        plan.create.append(node.name)


def _too_many(alive: Sequence[Obj], rules: Rules) -> list[Obj]:
    """With surge a new and an old pod may coexist while the old one is available and the new one is not."""
    new = [pod for pod in alive if revision_of(pod) == rules.hash]
    old = [pod for pod in alive if revision_of(pod) != rules.hash]
    if new and old and (not is_ready(old[0]) or rules.available(new[0])):
        return new[1:] + old
    return new[1:] + old[1:]


def rollout(nodes: Iterable[OnNode], rules: Rules) -> Plan:
    """Return the next steps of an update, when `keep` has nothing to do."""
    eligible = [node for node in nodes if node.fit.run]
    return _surge(eligible, rules) if rules.max_surge else _replace(eligible, rules)


def _new_and_old(node: OnNode, rules: Rules) -> tuple[list[Obj], list[Obj]]:
    alive = [pod for pod in node.pods if not is_deleting(pod)]
    new = [pod for pod in alive if revision_of(pod) == rules.hash]
    return new, [pod for pod in alive if revision_of(pod) != rules.hash]


def _replace(nodes: Iterable[OnNode], rules: Rules) -> Plan:
    unavailable = 0
    useless: list[Obj] = []
    useful: list[Obj] = []
    for node in nodes:
        new, old = _new_and_old(node, rules)
        if len(new) + len(old) != 1:
            unavailable += 1
        elif not rules.available((new or old)[0]):
            unavailable += 1
            useless += old
        else:
            useful += old
    return Plan(delete=useless + useful[: max(0, rules.max_unavailable - unavailable)])


def _surge(nodes: Iterable[OnNode], rules: Rules) -> Plan:
    surging = 0
    at_once: list[str] = []
    in_turn: list[str] = []
    for node in nodes:
        new, old = _new_and_old(node, rules)
        if new and old:
            surging += 1
        elif old:
            (in_turn if rules.available(old[0]) else at_once).append(node.name)
    return Plan(create=at_once + in_turn[: max(0, rules.max_surge - surging)])


# status


def status_of(workload: Obj, nodes: Iterable[OnNode], rules: Rules, collisions: int) -> Obj:
    """On each node the oldest pod counts."""
    count = dict.fromkeys(_ALWAYS + _IF_ANY, 0)
    for node in nodes:
        if not node.fit.run:
            count["numberMisscheduled"] += bool(node.pods)
            continue
        count["desiredNumberScheduled"] += 1
        if node.pods:
            pod = node.pods[0]
            count["currentNumberScheduled"] += 1
            count["numberReady"] += is_ready(pod)
            count["numberAvailable"] += rules.available(pod)
            count["updatedNumberScheduled"] += revision_of(pod) == rules.hash
    count["numberUnavailable"] = count["desiredNumberScheduled"] - count["numberAvailable"]
    status: Obj = {key: count[key] for key in _ALWAYS}
    status["observedGeneration"] = workload["metadata"]["generation"]
    status |= {key: count[key] for key in _IF_ANY if count[key]}
    before = workload.get("status") or {}
    if collisions or "collisionCount" in before:
        status["collisionCount"] = collisions
    if before.get("conditions"):
        status["conditions"] = before["conditions"]
    return status


_ALWAYS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_IF_ANY = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")


def next_available(nodes: Iterable[OnNode], rules: Rules) -> float | None:
    """Seconds until the next ready pod has been ready for long enough."""
    if not rules.min_ready:
        return None
    waits = (available_in(pod, rules.min_ready, rules.now) for node in nodes for pod in node.pods)
    return min((wait for wait in waits if wait), default=None)
