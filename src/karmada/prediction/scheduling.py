"""The scheduler's algorithm run locally on the control plane's objects, and the output of its decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError

if TYPE_CHECKING:
    from karmada.interpreter.interpreter import Interpreter
    from karmada.kube.client.client import Client
    from karmada.kube.objects.gvk import GVR
    from karmada.scheduler.decision import Decision
    from karmada.scheduler.estimators.answered import Answered
    from karmada.scheduler.explain import ClusterReason, Explanation
    from karmada.scheduler.fitting.suggestions import Advice
    from karmada.scheduler.fleet import Fleet
    from karmada.scheduler.service.assembly import Algorithm

NOTHING = "-"
ADVICE_SECONDS = 1.0


class Scheduler:
    """The algorithm with the flags' plugins and gates; estimates are those of the running scheduler."""

    def __init__(self, plugins: str, feature_gates: str) -> None:
        from karmada.features import default_gates
        from karmada.scheduler.plugins import PluginError
        from karmada.scheduler.service.assembly import assemble

        self.gates = default_gates()
        self._given, self._plugins = feature_gates, plugins.split(",")
        try:
            self.gates.set(feature_gates)
            self._algorithm: Algorithm = assemble(self.gates, self._plugins)
        except (ValueError, PluginError) as error:
            raise PredictionError(str(error)) from error
        self._customizations: list[Obj] = []
        self._estimates: dict[bytes, list[Answered]] = {}

    async def follow(self, client: Client) -> None:
        """Take over feature gates and customizations of the running control plane; gates of the flag stay."""
        from karmada.features import FEATURES
        from karmada.prediction.running import running
        from karmada.scheduler.service.assembly import assemble

        found = await running(client)
        self.gates.set_values({name: on for name, on in found.gates.items() if name in FEATURES})
        self.gates.set(self._given)
        self._algorithm = assemble(self.gates, self._plugins)
        self._customizations = await _customizations(client)

    @cached_property
    def interpreter(self) -> Interpreter:
        """With the layers of the control plane, except webhooks, which only it can reach."""
        from karmada.interpreter.assembly import interpreter_with
        from karmada.kube.objects.clock import SYSTEM

        if not self._customizations:
            return interpreter_with(SYSTEM, self.gates)
        from karmada.interpreter.lua.layer import Declarative

        return interpreter_with(SYSTEM, self.gates, Declarative(self._customizations))

    @property
    def components(self) -> bool:
        return self._algorithm.profile.components

    def decide(
        self,
        spec: Obj,
        fleet: Fleet,
        bindings: Sequence[Obj],
        *,
        affinity_name: str,
        fresh: bool,
        estimates: Sequence[Answered] = (),
    ) -> Decision:
        """`estimates` are what the estimators of the running scheduler report."""
        from karmada.scheduler.algorithm import schedule
        from karmada.scheduler.request import Request

        request = Request(spec, affinity_name=affinity_name, fresh=fresh, peers=_Peers(bindings))
        return schedule(request, fleet, [*self._algorithm.local, *estimates], self._algorithm.profile)

    async def estimates(self, client: Client, spec: Obj) -> list[Answered]:
        """What the estimators of the running scheduler report; nothing if it does not run in the control plane.

        Requested once for all workloads with equal requirements.
        """
        import orjson

        from karmada.prediction.running import estimates
        from karmada.scheduler.algorithm import in_sets
        from karmada.scheduler.request import Request

        request = Request(spec)
        if not request.is_workload:
            return []
        sets = in_sets(request, self._algorithm.profile)
        needs = [request.resource.get("namespace"), request.components] if sets else request.requirements
        key = orjson.dumps([sets, needs])
        if key not in self._estimates:
            own = {one.name for one in self._algorithm.local}
            found = await estimates(client, request, sets=sets)
            self._estimates[key] = [one for one in found if one.name not in own]
        return self._estimates[key]

    def advise(
        self,
        decision: Decision,
        quotas: Sequence[Obj],
        estimates: Sequence[Answered] = (),
        *,
        into: str = "",
        seconds: float = ADVICE_SECONDS,
    ) -> Advice | None:
        """What would make it fit (into a cluster); None if it does. `seconds` is how long to look for that."""
        from karmada.scheduler.fitting.judge import Judge
        from karmada.scheduler.fitting.situation import Situation
        from karmada.scheduler.fitting.suggestions import suggest

        first = decision.attempts[0]
        situation = Situation(first.request, first.candidates.fleet, estimates, quotas, into)
        judge = Judge(self._algorithm.local, self._algorithm.profile, seconds=seconds)
        return suggest(situation, judge, decision)

    async def quotas(self, client: Client, namespace: str) -> list[Obj]:
        """The federated quotas that a binding must not exceed; none for those who may not read them."""
        from karmada.api.policy import FederatedResourceQuota

        if not namespace or not self.gates.enabled("FederatedQuotaEnforcement"):
            return []
        return await _readable(client, FederatedResourceQuota.gvr, namespace)

    async def others(self, client: Client, namespace: str) -> list[Obj]:
        """The bindings that may matter for one in this namespace."""
        from karmada.api.work import ResourceBinding

        if not namespace or not self.gates.enabled("WorkloadAffinity"):
            return []
        return (await client.list_all(ResourceBinding.gvr, namespace)).items


async def _customizations(client: Client) -> list[Obj]:
    from karmada.api.config import ResourceInterpreterCustomization

    return await _readable(client, ResourceInterpreterCustomization.gvr)


async def _readable(client: Client, gvr: GVR, namespace: str = "") -> list[Obj]:
    """None for those who may not read them."""
    from karmada.kube.objects.errors import Forbidden, NotFound

    try:
        return (await client.list_all(gvr, namespace)).items
    except (Forbidden, NotFound):
        return []


class _Peers:
    def __init__(self, bindings: Sequence[Obj]) -> None:
        self._bindings = bindings

    def affinity(self, group: str) -> Iterable[Obj]:
        return self._of("affinityGroup", group)

    def anti_affinity(self, group: str) -> Iterable[Obj]:
        return self._of("antiAffinityGroup", group)

    def _of(self, which: str, group: str) -> list[Obj]:
        return [one for one in self._bindings if (one["spec"].get("workloadAffinityGroups") or {}).get(which) == group]


# showing


class Column(NamedTuple):
    title: str
    values: Mapping[str, str]
    """By cluster."""


def counts(targets: Iterable[Obj]) -> dict[str, int]:
    return {target["name"]: target.get("replicas") or 0 for target in targets}


def in_words(targets: Iterable[Obj], *, replicas: bool) -> str:
    """Sorted by name, so that two of them can be compared."""
    found = counts(targets)
    if not found:
        return "nowhere"
    return ", ".join(f"{name}:{count}" if replicas else name for name, count in sorted(found.items()))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as they must be; the last is not filled up."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["   ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def explained(explanation: Explanation, before: Sequence[Column] = ()) -> list[str]:
    """One line for each cluster; `before` are columns about what was."""
    head = ["CLUSTER", *(column.title for column in before), "REPLICAS", "FATE", "SCORE", "ROOM", "WHY"]
    rows = [head]
    for one in explanation.clusters:
        was = [column.values.get(one.cluster, NOTHING) for column in before]
        rows.append([one.cluster, *was, _replicas(one), str(one.fate), _number(one.score), _room(one.room), one.why])
    return table(rows)


def _replicas(one: ClusterReason) -> str:
    from karmada.scheduler.explain import Fate

    if one.fate is not Fate.SELECTED:
        return NOTHING
    return _number(one.replicas)


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _room(value: int | None) -> str:
    from karmada.estimator.terms import MAX_REPLICAS

    return "any" if value is not None and value >= MAX_REPLICAS else _number(value)


def advised(advice: Advice | None) -> list[str]:
    """What would make it fit, as lines; none for what fits."""
    if advice is None:
        return []
    quota = [f"A quota refuses that: {advice.quota.rstrip('.')}."] if advice.quota else []
    message = [f"{advice.message[0].upper()}{advice.message[1:]}."] if advice.message else []
    if not advice.suggestions:
        return [*quota, *message]
    more = len(advice.suggestions) - len(advice.shown)
    rest = [f"  ({more} more with -o yaml)"] if more else []
    return [
        *quota,
        *message,
        f"It would {advice.goal} if:",
        *(f"  - {suggestion.text}" for suggestion in advice.shown),
        *rest,
    ]


def as_data(decision: Decision, advice: Advice | None) -> Obj:
    """For programs."""
    from dataclasses import asdict

    from karmada.scheduler.explain import explain

    failure = decision.failure
    return {
        "clusters": decision.targets,
        "affinityName": decision.affinity_name,
        "failure": None if failure is None else {"reason": str(failure.reason), "message": failure.text},
        "attempts": [
            {
                "affinityName": one.affinity_name,
                "outcome": one.outcome,
                "clusters": [{**asdict(cluster), "fate": str(cluster.fate)} for cluster in one.clusters],
            }
            for one in explain(decision)
        ],
        "fit": None if advice is None else advice.data,
    }


def formatted(data: object, output: str) -> str:
    """As json or yaml."""
    if output == "json":
        return as_json(data)
    from karmada.kube.schema.yamlio import dump_yaml

    return dump_yaml(data).decode().rstrip()


def as_json(data: object) -> str:
    import orjson

    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()
