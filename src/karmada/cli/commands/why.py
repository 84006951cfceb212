"""`karmadactl why`: explain why a resource is in its clusters and not in the others (`prediction/explanation.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from karmada.cli.parsing.scheduler_flags import algorithm_flags, world_from
from karmada.cli.targeting import connect
from karmada.prediction import explanation, scheduling

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig
    from karmada.prediction.explanation import Aim, Found
    from karmada.prediction.world import World


@click.command()
@click.argument("names", nargs=-1, metavar="TYPE/NAME", required=True)
@connect.namespace_flag
@click.option("--cluster", default="", help="Say what would make it go to this cluster.")
@click.option("--fresh", is_flag=True, help="Ignore the current result of scheduling.")
@algorithm_flags
@connect.connection_flags
def why(
    names: tuple[str, ...],
    namespace: str,
    cluster: str,
    fresh: bool,
    plugins: str,
    feature_gates: str,
    output: str | None,
    way: connect.Way,
) -> None:
    """Explain why a resource is in its clusters, why it is not in the others, and what would make it fit.

    \b
    Examples:
      karmadactl why deployment/nginx
      karmadactl why deployment/nginx --cluster member3
      karmadactl why clusterrole reader
      karmadactl why rb/nginx-deployment -n prod -o json
    """
    kind, name = _parsed(names)
    world = world_from(plugins, feature_gates)
    config = way.config()
    aim = explanation.Aim(kind, name, namespace or config.namespace, cluster)
    found = connect.run(_look(config, world, aim, fresh))
    click.echo(scheduling.formatted(explanation.as_data(found), output) if output else "\n".join(_lines(found)))


def _parsed(names: tuple[str, ...]) -> tuple[str, str]:
    """deployment/nginx, or deployment nginx."""
    words = names[0].split("/", 1) if len(names) == 1 else list(names)
    if len(words) != 2 or not all(words):
        raise connect.failure("exactly one resource is required, as TYPE/NAME or TYPE NAME")
    return words[0], words[1]


async def _look(config: RestConfig, world: World, aim: Aim, fresh: bool) -> Found:
    async with connect.connected(config) as client:
        return await explanation.explain(await world.over(client), aim, fresh=fresh)


# output


def _lines(found: Found) -> list[str]:
    binding, decision = found.binding, found.decision
    lines = scheduling.table(_head(found))
    for event in found.events:
        times = f" (x{event['count']})" if (event.get("count") or 1) > 1 else ""
        lines.append(f"  {event.get('lastTimestamp')}  {event.get('reason')}{times}: {event.get('message')}")
    if decision is None:
        return lines
    from karmada.scheduler.explain import explain

    replicas = decision.attempts[0].request.divides_replicas
    now = scheduling.in_words(decision.targets, replicas=replicas)
    written = scheduling.counts(binding["spec"].get("clusters") or ())
    if decision.failure is not None:
        said = f"fails ({decision.failure.reason}): {decision.failure.text.rstrip('.')}"
    elif explanation.is_the_same(binding, decision):
        said = "gives the same clusters"
    else:
        said = f"gives {now}, which differs from what is written"
    lines += ["", f"Scheduling it now {said}.", *scheduling.advised(found.advice)]
    was = scheduling.Column("WRITTEN", {name: str(count) for name, count in written.items()})
    for one in explain(decision):
        group = f'Group "{one.affinity_name}": {one.outcome}' if one.affinity_name else ""
        lines += ["", *([group] if group else []), *scheduling.explained(one, [was])]
    return lines


def _head(found: Found) -> list[list[str]]:
    from karmada.scheduler.request import Request

    binding = found.binding
    metadata, spec, status = binding["metadata"], binding["spec"], binding.get("status") or {}
    resource = spec.get("resource") or {}
    condition = explanation.scheduled_of(status)
    rows = [
        ["Resource:", f"{resource.get('kind')} {explanation.path_of(resource)} ({resource.get('apiVersion')})"],
        ["Binding:", f"{binding['kind']} {explanation.path_of(metadata)}"],
        ["Policy:", explanation.policy_of(metadata)],
        ["Scheduler:", spec.get("schedulerName") or "default-scheduler"],
        ["Replicas:", str(spec.get("replicas") or 0)],
        ["Written:", scheduling.in_words(spec.get("clusters") or (), replicas=Request(spec).divides_replicas)],
        ["Scheduled:", condition],
        ["Observed:", explanation.observed(metadata, status)],
        ["Next:", found.need],
    ]
    rebalanced = explanation.rebalanced(spec, status)
    if rebalanced:
        rows.insert(6, ["Rebalance:", rebalanced])
    if status.get("schedulerObservingAffinityName"):
        rows.insert(6, ["Group:", status["schedulerObservingAffinityName"]])
    for sentence in reversed(found.left):
        rows.insert(6, ["Evicted:", sentence])
    for sentence in found.quarantined:
        rows.insert(6, ["Quarantine:", sentence])
    for name, reason in found.dead.items():
        rows.insert(6, ["Not Ready:", f"{name} ({reason})"])
    if found.events:
        rows.append(["Events:", ""])
    return rows
