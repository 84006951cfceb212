"""`karmadactl simulate`: show where resources would be scheduled (`prediction/simulation.py`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karmada.cli.parsing.scheduler_flags import algorithm_flags, world_from
from karmada.cli.targeting import connect
from karmada.kube.objects.types import Obj
from karmada.prediction import rebalancing, scheduling, simulation
from karmada.prediction.errors import PredictionError
from karmada.prediction.simulation import Given, Simulation, sorted_out
from karmada.prediction.trials import Outcome, Trial, advise

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig
    from karmada.prediction.world import World


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
    way: connect.Way,
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
    world = world_from(plugins, feature_gates)
    trial = Trial(
        failing=frozenset(failing),
        cordoned=frozenset(cordoned),
        replicas=replicas,
        anew=fresh,
        rebalance=rebalance,
        with_failover=with_failover,
    )
    config = way.config()
    simulated = connect.run(_simulate(config, world, given, trial, namespace or config.namespace, names))
    outcomes = simulated.outcomes
    for note in simulated.notes:
        click.echo(f"Note: {note}", err=True)
    if not output and len(outcomes) > 1 and not given.resources:
        click.echo("\n".join(_overview(outcomes, moves=rebalance)))
        return
    advise(world, outcomes)
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
            found = sorted_out(load_manifests(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()))
        except (OSError, ValueError, PredictionError) as error:
            raise connect.failure(f"{name}: {error}") from error
        for held, more in zip(given, found, strict=True):
            held.extend(more)
    return given


async def _simulate(
    config: RestConfig,
    world: World,
    given: Given,
    trial: Trial,
    namespace: str,
    names: Sequence[str],
) -> Simulation:
    async with connect.connected(config) as client:
        return await simulation.simulate(await world.over(client), given, trial, namespace, names)


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
    return scheduling.in_words(decision.targets, replicas=outcome.divided)


def _lines(outcome: Outcome, *, moves: bool) -> list[str]:
    from karmada.scheduler.explain import explain

    rows = [
        ["Resource:", outcome.title],
        ["By:", outcome.policy],
        ["Now:", scheduling.in_words(outcome.before, replicas=outcome.divided)],
        ["Then:", _summary(outcome)],
        *([["Moves:", str(outcome.moves)]] if moves else []),
    ]
    lines = [*scheduling.table(rows), *(f"Note:     {note}" for note in outcome.notes)]
    lines += scheduling.advised(outcome.advice)
    now = {name: str(count) for name, count in scheduling.counts(outcome.before).items()}
    for one in explain(outcome.decision):
        group = [f'Group "{one.affinity_name}": {one.outcome}'] if one.affinity_name else []
        lines += ["", *group, *scheduling.explained(one, [scheduling.Column("NOW", now)])]
    return lines


def _overview(outcomes: Sequence[Outcome], *, moves: bool) -> list[str]:
    """Return one line for each resource; `moves`: also how many replicas move."""
    rows = [["RESOURCE", *(["MOVES"] if moves else []), "NOW", "THEN"]]
    altered = 0
    for outcome in outcomes:
        now, then = scheduling.in_words(outcome.before, replicas=outcome.divided), _summary(outcome)
        same = scheduling.counts(outcome.before) == scheduling.counts(outcome.decision.targets)
        altered += not same
        moved = [str(outcome.moves)] if moves else []
        rows.append([outcome.title, *moved, now, "the same" if same else then])
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
        **({"moves": outcome.moves} if moves else {}),
    }
