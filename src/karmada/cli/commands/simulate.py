"""`karmadactl simulate`: predict the scheduling of resources, with the current clusters or with changed ones.

The binding is computed locally by the same rules as in the control plane: which policy applies, its defaults, the
replicas and their requirements, and then the scheduler's algorithm. Clusters can be failed or cordoned on trial.
Nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from karmada.cli.parsing.scheduler_flags import algorithm_flags, scheduler_from
from karmada.cli.targeting import connect
from karmada.kube.objects.types import Obj
from karmada.prediction import intended_binding as intended
from karmada.prediction import rebalancing, scheduling
from karmada.prediction.failing import Failover, failover_of
from karmada.prediction.trials import Fleet, Outcome, Trial, advise, changed, check, decide

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.client.config import RestConfig

_POLICY_GROUP = "policy.karmada.io/"


class Simulation(NamedTuple):
    outcomes: list[Outcome]
    notes: list[str]
    """On what is not among the outcomes."""
    quotas: Mapping[str, Sequence[Obj]] = {}
    """The federated quotas by namespace."""


class Given(NamedTuple):
    """What the files hold."""

    resources: list[Obj]
    policies: list[Obj]
    rebalanced: list[Obj]
    """The workloads of WorkloadRebalancers."""


@click.command()
@click.argument("names", nargs=-1, metavar="[TYPE/NAME]...")
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
@click.option(
    "--rebalance",
    is_flag=True,
    help="Show what a WorkloadRebalancer would do: of the named resources, of one in the files, or of everything.",
)
@algorithm_flags
@connect.connection_flags
def simulate(
    names: tuple[str, ...],
    files: tuple[str, ...],
    namespace: str,
    failing: tuple[str, ...],
    cordoned: tuple[str, ...],
    replicas: int | None,
    with_failover: bool,
    fresh: bool,
    rebalance: bool,
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
      karmadactl simulate --rebalance deployment/web
    """
    given = read(files)
    rebalance = rebalance or bool(given.rebalanced)
    _check_rebalance(given, names, rebalance=rebalance, fresh=fresh)
    scheduler = scheduler_from(plugins, feature_gates)
    trial = Trial(
        failing=frozenset(failing),
        cordoned=frozenset(cordoned),
        replicas=replicas,
        anew=fresh,
        rebalance=rebalance,
        with_failover=with_failover,
    )
    config = connect.control_config(kubeconfig, karmada_context)
    simulated = connect.run(_simulate(config, scheduler, given, trial, namespace or config.namespace, names))
    outcomes = simulated.outcomes
    for note in simulated.notes:
        click.echo(f"Note: {note}", err=True)
    if not output and len(outcomes) > 1 and not given.resources:
        click.echo("\n".join(_overview(outcomes, moves=rebalance)))
        return
    advise(scheduler, outcomes, simulated.quotas)
    if output:
        click.echo(scheduling.formatted([_data(outcome, moves=rebalance) for outcome in outcomes], output))
    elif outcomes:
        click.echo("\n\n".join("\n".join(_lines(outcome, moves=rebalance)) for outcome in outcomes))


def _check_rebalance(given: Given, names: Sequence[str], *, rebalance: bool, fresh: bool) -> None:
    if names and not rebalance:
        raise connect.failure("resources are named only with --rebalance; otherwise give them in files, with -f")
    if rebalance and (given.resources or given.policies):
        raise connect.failure("a rebalance is simulated with what is bound: no other resources or policies in files")
    if rebalance and fresh:
        raise connect.failure("--rebalance and --fresh exclude each other: a rebalance counts what is placed")
    if names and given.rebalanced:
        raise connect.failure("name resources or give a WorkloadRebalancer in a file, not both")


# files


def read(files: Iterable[str]) -> Given:
    from karmada.kube.client.manifests import load_manifests

    given = Given([], [], [])
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
            elif rebalancing.is_rebalancer(obj):
                with connect.predicting():
                    given.rebalanced.extend(rebalancing.listed(obj))
            else:
                given.resources.append(obj)
    return given


# the control plane


async def _simulate(
    config: RestConfig,
    scheduler: scheduling.Scheduler,
    given: Given,
    trial: Trial,
    namespace: str,
    names: Sequence[str],
) -> Simulation:
    async with connect.connected(config) as client:
        found = await _predict(client, scheduler, given, trial, namespace, names)
        spaces = {outcome.namespace for outcome in found.outcomes}
        return found._replace(quotas={space: await scheduler.quotas(client, space) for space in spaces})


async def _predict(
    client: Client, scheduler: scheduling.Scheduler, given: Given, trial: Trial, namespace: str, names: Sequence[str]
) -> Simulation:
    from karmada.api.cluster import Cluster

    policies = [await intended.admitted(policy, namespace) for policy in given.policies]
    await scheduler.follow(client)
    clusters = (await client.list_all(Cluster.gvr)).items
    check(clusters, trial.failing | trial.cordoned)
    failover = await failover_of(client, scheduler.gates, assumed=trial.with_failover)
    clusters = [changed(cluster, trial, failover) for cluster in clusters]
    if not given.resources and not policies:
        workloads = [*given.rebalanced, *await rebalancing.named(client, names, namespace)]
        return await _of_bindings(client, scheduler, clusters, failover, trial, workloads)
    resources = [await _placed(client, obj, namespace) for obj in given.resources]
    if not resources:
        resources = await _selected(client, policies)
    if not resources:
        raise connect.failure("no resource in the given files, and none that their policies select")
    found = [await _outcome(client, scheduler, one, policies, clusters, failover, trial) for one in resources]
    return Simulation(found, [])


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
    state, estimates = Fleet(clusters, failover, others), await scheduler.estimates(client, spec)
    return decide(scheduler, resource, intended.title(policy), spec, binding, state, trial, notes, estimates)


async def _of_bindings(
    client: Client,
    scheduler: scheduling.Scheduler,
    clusters: Sequence[Obj],
    failover: Failover,
    trial: Trial,
    workloads: Sequence[Obj],
) -> Simulation:
    """Of the bindings of these workloads, or of all."""
    needs_all = not workloads or scheduler.gates.enabled("WorkloadAffinity")
    everything = await _all_bindings(client) if needs_all else []
    if workloads:
        bindings, notes = await rebalancing.affected(client, workloads)
    elif trial.rebalance:
        bindings, notes = rebalancing.not_suspended(_with_placement(everything))
    else:
        bindings, notes = _with_placement(everything), []
    if not bindings and not notes:
        raise connect.failure("there are no bindings: give resources and policies with -f")
    state = Fleet(clusters, failover, everything if scheduler.gates.enabled("WorkloadAffinity") else ())
    return Simulation([await _of_binding(client, scheduler, binding, state, trial) for binding in bindings], notes)


async def _all_bindings(client: Client) -> list[Obj]:
    from karmada.api.work import ClusterResourceBinding, ResourceBinding

    kinds = (ResourceBinding.gvr, ClusterResourceBinding.gvr)
    return [binding for kind in kinds for binding in (await client.list_all(kind)).items]


def _with_placement(bindings: Iterable[Obj]) -> list[Obj]:
    return [one for one in bindings if one["spec"].get("placement") is not None and one["spec"].get("resource")]


async def _of_binding(
    client: Client, scheduler: scheduling.Scheduler, binding: Obj, state: Fleet, trial: Trial
) -> Outcome:
    spec = binding["spec"]
    if trial.replicas is not None and spec.get("replicas"):
        spec = {**spec, "replicas": trial.replicas}
    resource = {**spec["resource"], "metadata": spec["resource"]}
    estimates = await scheduler.estimates(client, spec)
    return decide(scheduler, resource, "its binding", spec, binding, state, trial, [], estimates)


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


def _lines(outcome: Outcome, *, moves: bool) -> list[str]:
    from karmada.scheduler.explain import explain

    replicas = outcome.decision.attempts[0].request.divides_replicas
    rows = [
        ["Resource:", f"{outcome.resource['kind']} {intended.name_of(outcome.resource)}"],
        ["By:", outcome.policy],
        ["Now:", scheduling.in_words(outcome.before, replicas=replicas)],
        ["Then:", _summary(outcome)],
        *([["Moves:", str(rebalancing.moves(outcome))]] if moves else []),
    ]
    lines = [*scheduling.table(rows), *(f"Note:     {note}" for note in outcome.notes)]
    lines += scheduling.advised(outcome.advice)
    now = {name: str(count) for name, count in scheduling.counts(outcome.before).items()}
    for one in explain(outcome.decision):
        group = [f'Group "{one.affinity_name}": {one.outcome}'] if one.affinity_name else []
        lines += ["", *group, *scheduling.explained(one, [scheduling.Column("NOW", now)])]
    return lines


def _overview(outcomes: Sequence[Outcome], *, moves: bool) -> list[str]:
    """One line for each resource; `moves`: also how many replicas move."""
    rows = [["RESOURCE", *(["MOVES"] if moves else []), "NOW", "THEN"]]
    altered = 0
    for outcome in outcomes:
        replicas = outcome.decision.attempts[0].request.divides_replicas
        now, then = scheduling.in_words(outcome.before, replicas=replicas), _summary(outcome)
        same = scheduling.counts(outcome.before) == scheduling.counts(outcome.decision.targets)
        altered += not same
        moved = [str(rebalancing.moves(outcome))] if moves else []
        title = f"{outcome.resource['kind']} {intended.name_of(outcome.resource)}"
        rows.append([title, *moved, now, "the same" if same else then])
    notes = dict.fromkeys(note for outcome in outcomes for note in outcome.notes)
    summary = f"{altered} of {len(outcomes)} would change."
    lines = [*scheduling.table(rows), "", *(f"Note: {note}" for note in notes), summary]
    return [*lines, "", *rebalancing.sums(outcomes)] if moves else lines


def _data(outcome: Outcome, *, moves: bool) -> Obj:
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
        "then": scheduling.as_data(outcome.decision, outcome.advice),
        **({"moves": rebalancing.moves(outcome)} if moves else {}),
    }
