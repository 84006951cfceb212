"""`karmadactl simulate`: predict the scheduling of resources, with the current clusters or with changed ones.

The binding is computed locally by the same rules as in the control plane: which policy applies, its defaults, the
replicas and their requirements, and then the scheduler's algorithm. Clusters can be failed or cordoned on trial.
Nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from karmada.cli.prediction import intended_binding as intended
from karmada.cli.prediction import scheduling
from karmada.cli.prediction.failing import Failover, failover_of
from karmada.cli.targeting import connect
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.client.config import RestConfig
    from karmada.scheduler.decision import Decision

_POLICY_GROUP = "policy.karmada.io/"


class Given(NamedTuple):
    """What the files hold."""

    resources: list[Obj]
    policies: list[Obj]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is to be other than it is."""

    failing: frozenset[str] = frozenset()
    cordoned: frozenset[str] = frozenset()
    replicas: int | None = None
    anew: bool = False
    with_failover: bool = False


@dataclass(slots=True)
class Outcome:
    resource: Obj
    policy: str
    before: list[Obj]
    """Where it is now."""
    decision: Decision
    notes: list[str] = field(default_factory=list)


@click.command()
@click.option("-f", "--filename", "files", multiple=True, help="A file with resources and policies; - for stdin.")
@connect.namespace_flag
@click.option("--fail", "failing", multiple=True, metavar="CLUSTER", help="Treat this cluster as failed.")
@click.option("--cordon", "cordoned", multiple=True, metavar="CLUSTER", help="Treat this cluster as cordoned.")
@click.option(
    "--replicas",
    type=click.IntRange(min=0),
    default=None,
    help="Replicas to schedule, instead of those of the resources.",
)
@click.option(
    "--with-failover", is_flag=True, help="Treat failover as enabled, even if the control plane runs without it."
)
@click.option("--fresh", is_flag=True, help="Schedule as if the resources were not scheduled yet.")
@scheduling.algorithm_flags
@connect.connection_flags
def simulate(
    files: tuple[str, ...],
    namespace: str,
    failing: tuple[str, ...],
    cordoned: tuple[str, ...],
    replicas: int | None,
    with_failover: bool,
    fresh: bool,
    plugins: str,
    feature_gates: str,
    output: str | None,
    kubeconfig: str,
    karmada_context: str,
) -> None:
    """Show where resources would be scheduled, and why, without writing anything.

    Policies of the files are added to those of the control plane and replace those of the same name. Without a resource
    in the files, the existing resources that the policies select are simulated; without any file, all bindings are.

    \b
    Examples:
      karmadactl simulate -f policy.yaml -f deployment.yaml
      karmadactl simulate -f deployment.yaml --replicas 20
      karmadactl simulate --fail member1
      karmadactl simulate -f policy.yaml --cordon member2 -o json
    """
    given = read(files)
    scheduler = scheduling.Scheduler(plugins, feature_gates)
    trial = Trial(
        failing=frozenset(failing),
        cordoned=frozenset(cordoned),
        replicas=replicas,
        anew=fresh,
        with_failover=with_failover,
    )
    config = connect.control_config(kubeconfig, karmada_context)
    outcomes = connect.run(_simulate(config, scheduler, given, trial, namespace or config.namespace))
    if output:
        click.echo(scheduling.as_json([_data(outcome) for outcome in outcomes]))
    elif len(outcomes) > 1 and not given.resources:
        click.echo("\n".join(_overview(outcomes)))
    else:
        click.echo("\n\n".join("\n".join(_lines(outcome)) for outcome in outcomes))


# files


def read(files: Iterable[str]) -> Given:
    from karmada.kube.client.manifests import load_manifests

    given = Given([], [])
    for name in files:
        try:
            objects = load_manifests(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())
        except (OSError, ValueError) as error:
            raise connect.failure(f"{name}: {error}") from error
        for obj in objects:
            if not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
                raise connect.failure(f"{name}: {obj['kind']} without a name")
            if obj["kind"] in intended.POLICY_KINDS and obj["apiVersion"].startswith(_POLICY_GROUP):
                given.policies.append(obj)
            else:
                given.resources.append(obj)
    return given


# the control plane


async def _simulate(
    config: RestConfig, scheduler: scheduling.Scheduler, given: Given, trial: Trial, namespace: str
) -> list[Outcome]:
    from karmada.api.cluster import Cluster

    policies = [await intended.admitted(policy, namespace) for policy in given.policies]
    async with connect.connected(config) as client:
        await scheduler.follow(client)
        clusters = (await client.list_all(Cluster.gvr)).items
        _check(clusters, trial.failing | trial.cordoned)
        failover = await failover_of(client, scheduler.gates, assumed=trial.with_failover)
        clusters = [_changed(cluster, trial, failover) for cluster in clusters]
        if not given.resources and not policies:
            return await _of_bindings(client, scheduler, clusters, failover, trial)
        resources = [await _placed(client, obj, namespace) for obj in given.resources]
        if not resources:
            resources = await _selected(client, policies)
        if not resources:
            raise connect.failure("no resource in the given files, and none that their policies select")
        return [await _outcome(client, scheduler, one, policies, clusters, failover, trial) for one in resources]


def _check(clusters: Sequence[Obj], names: Iterable[str]) -> None:
    known = sorted(cluster["metadata"]["name"] for cluster in clusters)
    for name in sorted(names):
        if name not in known:
            raise connect.failure(f'cluster "{name}" is not joined (known: {", ".join(known) or "none"})')


async def _placed(client: Client, obj: Obj, namespace: str) -> Obj:
    """With a namespace, if it lives in one."""
    from karmada.kube.client.discovery import NoMatch
    from karmada.kube.objects.gvk import GVK

    try:
        mapping = await client.mapper.mapping(GVK.parse(obj["apiVersion"], obj["kind"]))
    except NoMatch:
        raise connect.failure(f'no matches for kind "{obj["kind"]}" in version "{obj["apiVersion"]}"') from None
    if not mapping.namespaced or obj["metadata"].get("namespace"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


async def _selected(client: Client, policies: Sequence[Obj]) -> list[Obj]:
    """What is there of the resources that policies select."""
    from karmada.api.matching import selector_priority
    from karmada.kube.client.discovery import NoMatch
    from karmada.kube.objects.gvk import GVK

    found: dict[str, Obj] = {}
    for policy in policies:
        space = policy["metadata"].get("namespace", "")
        for selector in policy["spec"].get("resourceSelectors") or ():
            gvk = GVK.parse(selector["apiVersion"], selector["kind"])
            try:
                mapping = await client.mapper.mapping(gvk)
            except NoMatch:
                continue
            where = (space or selector.get("namespace") or "") if mapping.namespaced else ""
            for obj in (await client.list_all(mapping.gvr, where)).items:
                template = {**obj, "apiVersion": gvk.api_version, "kind": gvk.kind}
                if selector_priority(selector, template):
                    found[obj["metadata"]["uid"]] = template
    return list(found.values())


async def _outcome(
    client: Client,
    scheduler: scheduling.Scheduler,
    resource: Obj,
    policies: Sequence[Obj],
    clusters: Sequence[Obj],
    failover: Failover,
    trial: Trial,
) -> Outcome:
    notes: list[str] = []
    policy = await intended.policy_for(client, resource, policies, notes)
    binding = await intended.live_binding(client, resource)
    claim = intended.claimed_by_another(binding, policy) if binding is not None else ""
    notes += [claim] if claim else []
    uid = ((binding or {}).get("spec") or {}).get("resource", {}).get("uid") or resource["metadata"].get("uid", "")
    spec = await intended.binding_spec(scheduler, resource, policy, uid=uid, replicas=trial.replicas)
    spec = await intended.with_replica_policy(client, resource, spec)
    others = await scheduler.others(client, resource["metadata"].get("namespace", ""))
    state = Fleet(clusters, failover, others)
    return _decide(scheduler, resource, intended.title(policy), spec, binding, state, trial, notes)


async def _of_bindings(
    client: Client, scheduler: scheduling.Scheduler, clusters: Sequence[Obj], failover: Failover, trial: Trial
) -> list[Outcome]:
    from karmada.api.work import ClusterResourceBinding, ResourceBinding

    found: list[Outcome] = []
    everything: list[Obj] = []
    for kind in (ResourceBinding, ClusterResourceBinding):
        everything += (await client.list_all(kind.gvr)).items
    for binding in everything:
        spec = binding["spec"]
        if spec.get("placement") is None or spec.get("resource") is None:
            continue
        if trial.replicas is not None and spec.get("replicas"):
            spec = {**spec, "replicas": trial.replicas}
        resource = {**spec["resource"], "metadata": spec["resource"]}
        others = everything if scheduler.gates.enabled("WorkloadAffinity") else []
        state = Fleet(clusters, failover, others)
        found.append(_decide(scheduler, resource, "its binding", spec, binding, state, trial, []))
    if not found:
        raise connect.failure("there are no bindings: give resources and policies with -f")
    return found


class Fleet(NamedTuple):
    """The clusters as they would be, how failures are handled, and the bindings that matter for affinity."""

    clusters: Sequence[Obj]
    failover: Failover
    others: Sequence[Obj]


def _decide(
    scheduler: scheduling.Scheduler,
    resource: Obj,
    policy: str,
    spec: Obj,
    binding: Obj | None,
    state: Fleet,
    trial: Trial,
    notes: list[str],
) -> Outcome:
    from karmada.scheduler.fleet import Fleet as Clusters

    before = ((binding or {}).get("spec") or {}).get("clusters") or []
    status = (binding or {}).get("status") or {}
    tasks = ((binding or {}).get("spec") or {}).get("gracefulEvictionTasks") or []
    staying = _staying(spec, before, state, trial)
    leaving = {target["name"] for target in before if target["name"] in trial.failing} - staying.keys()
    kept = [] if trial.anew else [target for target in before if target["name"] not in leaving]
    tasks = [*tasks, *({"fromCluster": name} for name in sorted(leaving))]
    spec = {**spec, "clusters": kept, "gracefulEvictionTasks": tasks}
    notes = [*notes, *dict.fromkeys(staying.values())]
    name = "" if trial.anew else status.get("schedulerObservingAffinityName") or ""
    decision = scheduler.decide(spec, Clusters.of(state.clusters), state.others, affinity_name=name, fresh=False)
    return Outcome(resource, policy, list(before), decision, notes)


def _staying(spec: Obj, before: Sequence[Obj], state: Fleet, trial: Trial) -> dict[str, str]:
    """The failed clusters that it does not leave, and why."""
    there = {target["name"] for target in before} & trial.failing
    failed = {cluster["metadata"]["name"]: cluster for cluster in state.clusters}
    reasons = {name: state.failover.reason_to_stay(spec, failed[name]) for name in sorted(there)}
    return {name: reason for name, reason in reasons.items() if reason}


def _changed(cluster: Obj, trial: Trial, failover: Failover) -> Obj:
    """A cluster as it would be."""
    from karmada.api.well_known import NO_SCHEDULE, TAINT_UNSCHEDULABLE

    name = cluster["metadata"]["name"]
    if name in trial.failing:
        cluster = failover.failed(cluster)
    if name in trial.cordoned:
        taints = [*(cluster["spec"].get("taints") or ()), {"key": TAINT_UNSCHEDULABLE, "effect": NO_SCHEDULE}]
        cluster = {**cluster, "spec": {**cluster["spec"], "taints": taints}}
    return cluster


# output


def _summary(outcome: Outcome) -> str:
    decision = outcome.decision
    if decision.failure is not None:
        kept = (
            "the resource is removed from its clusters"
            if decision.failure.reason == "NoClusterFit"
            else "the resource stays where it is"
        )
        return f"not scheduled ({decision.failure.reason}), {kept}: {decision.failure.text}"
    return scheduling.in_words(decision.targets, replicas=decision.attempts[0].request.divides_replicas)


def _lines(outcome: Outcome) -> list[str]:
    from karmada.scheduler.explain import explain

    replicas = outcome.decision.attempts[0].request.divides_replicas
    rows = [
        ["Resource:", f"{outcome.resource['kind']} {intended.name_of(outcome.resource)}"],
        ["By:", outcome.policy],
        ["Now:", scheduling.in_words(outcome.before, replicas=replicas)],
        ["Then:", _summary(outcome)],
    ]
    lines = [*scheduling.table(rows), *(f"Note:     {note}" for note in outcome.notes)]
    now = {name: str(count) for name, count in scheduling.counts(outcome.before).items()}
    for one in explain(outcome.decision):
        group = [f'Group "{one.affinity_name}": {one.outcome}'] if one.affinity_name else []
        lines += ["", *group, *scheduling.explained(one, [scheduling.Column("NOW", now)])]
    return lines


def _overview(outcomes: Sequence[Outcome]) -> list[str]:
    """One line for each resource."""
    rows = [["RESOURCE", "NOW", "THEN"]]
    changed = 0
    for outcome in outcomes:
        replicas = outcome.decision.attempts[0].request.divides_replicas
        now, then = scheduling.in_words(outcome.before, replicas=replicas), _summary(outcome)
        same = scheduling.counts(outcome.before) == scheduling.counts(outcome.decision.targets)
        changed += not same
        rows.append(
            [f"{outcome.resource['kind']} {intended.name_of(outcome.resource)}", now, "the same" if same else then]
        )
    notes = dict.fromkeys(note for outcome in outcomes for note in outcome.notes)
    summary = f"{changed} of {len(outcomes)} would change."
    return [*scheduling.table(rows), "", *(f"Note: {note}" for note in notes), summary]


def _data(outcome: Outcome) -> Obj:
    resource = outcome.resource
    metadata = resource["metadata"]
    return {
        "resource": {
            "apiVersion": resource["apiVersion"],
            "kind": resource["kind"],
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
        },
        "policy": outcome.policy,
        "now": outcome.before,
        "notes": outcome.notes,
        "then": scheduling.as_data(outcome.decision),
    }
