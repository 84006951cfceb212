"""`karmadactl drill`: rehearse the failure of clusters with the fleet's present state, and report what it costs.

The fleet is copied into simulated members in memory; controllers and scheduler run there on a clock of their own.
Nothing in the real fleet is touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.targeting import connect
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.controllers.context import Settings
    from karmada.kube.client.config import RestConfig
    from karmada.kube.runtime.features import FeatureGates
    from karmada.prediction.world import World
    from karmada.rehearsal.drill import Course, Report

_TOPOLOGY = ("region", "zone", "provider")


@click.command()
@click.option(
    "--fail",
    "failing",
    multiple=True,
    required=True,
    metavar="CLUSTER[,CLUSTER]|KEY=VALUE",
    help="Clusters that fail, by name, by region=, zone= or provider=, or by a label. May be given more than once.",
)
@click.option(
    "--for",
    "lasts",
    type=connect.Duration(),
    default="30m",
    show_default=True,
    help="How long the failure is followed at most; on the rehearsal's clock, which runs much faster.",
)
@click.option(
    "--max-downtime",
    type=connect.Duration(),
    default=None,
    help="Exit with 2 when a resource has no serving copy for longer than this, e.g. 60s.",
)
@click.option(
    "--with-failover",
    is_flag=True,
    help="Rehearse with failover enabled, even if the control plane runs without it.",
)
@click.option("--feature-gates", default="", help="Feature gates other than those of the control plane: Name=true,…")
@click.option(
    "--setting",
    "changed",
    multiple=True,
    metavar="FLAG=VALUE",
    help="A flag of the controllers with another value, e.g. resource-eviction-rate=5. May be given more than once.",
)
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="Output format: json.")
@connect.connection_flags
def drill(
    failing: tuple[str, ...],
    lasts: float,
    max_downtime: float | None,
    with_failover: bool,
    feature_gates: str,
    changed: tuple[str, ...],
    output: str | None,
    way: connect.Way,
) -> None:
    """Rehearse the failure of clusters, and report where resources go and how long they do not serve.

    The present state of the fleet is copied into simulated members in memory, where the real controllers and scheduler
    run on a fast clock. Nothing in the fleet is changed.

    \b
    Examples:
      karmadactl drill --fail member1
      karmadactl drill --fail member1,member2 --max-downtime 60s
      karmadactl drill --fail region=eu -o json
      karmadactl drill --fail member1 --with-failover --setting resource-eviction-rate=5
    """
    from karmada.api.cluster import Cluster
    from karmada.rehearsal.drill import Drill
    from karmada.rehearsal.event_loop import rehearse

    config = way.config()
    world, settings = connect.run(_read(config, feature_gates, changed))
    names = selected(world.given(Cluster.gvr), failing)
    rehearsal = Drill(
        world, names, settings, world.gates, lasts=lasts, with_failover=with_failover, progress=connect.progress
    )
    with tempfile.TemporaryDirectory(prefix="karmada-drill-") as folder:
        report = rehearse(rehearsal.run(Path(folder)))
    click.echo(_json(report) if output else "\n".join(_lines(report, rehearsal.gates, rehearsal.settings)))
    late = [course for course in report.courses if max_downtime is not None and course.downtime > max_downtime]
    if late:
        worst = max(late, key=lambda course: course.downtime)
        count = "1 resource" if len(late) == 1 else f"{len(late)} resources"
        most = _seconds(max_downtime or 0.0)
        text = f"{count} had no serving copy for longer than {most}: {_name(worst)} for {_seconds(worst.downtime)}"
        click.echo(text, err=True)
        raise SystemExit(2)


async def _read(config: RestConfig, feature_gates: str, changed: Sequence[str]) -> tuple[World, Settings]:
    from karmada.controllers.setting_metrics import read
    from karmada.prediction.world import World
    from karmada.rehearsal.copying import copy_of

    with connect.refusals():
        world = World(feature_gates=feature_gates)
    async with connect.connected(config) as client:
        world = await copy_of(await world.over(client), connect.progress)
    try:
        settings = read({**world.settings, **dict(_pairs(changed))})
    except ValueError as error:
        raise connect.failure(str(error)) from error
    if not world.settings:
        world.notes.append("the settings of the controllers cannot be read: defaults are used")
    return world, settings


def _pairs(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    for text in texts:
        flag, equals, value = text.removeprefix("--").partition("=")
        if not equals:
            raise connect.usage(f'--setting "{text}" is not FLAG=VALUE')
        yield flag, value


def selected(clusters: Sequence[Obj], failing: Iterable[str]) -> list[str]:
    """Return the names of the clusters that --fail selects; a Failure for one that selects nothing."""
    found: dict[str, None] = {}
    known = sorted(cluster["metadata"]["name"] for cluster in clusters)
    for one in (part.strip() for text in failing for part in text.split(",") if part.strip()):
        names = [cluster["metadata"]["name"] for cluster in clusters if _is_selected(cluster, one)]
        if not names:
            raise connect.failure(f'--fail "{one}" selects no cluster (known: {", ".join(known) or "none"})')
        found.update(dict.fromkeys(sorted(names)))
    return list(found)


def _is_selected(cluster: Obj, text: str) -> bool:
    key, equals, value = text.partition("=")
    spec = cluster["spec"]
    if not equals:
        return bool(cluster["metadata"]["name"] == key)
    if key in _TOPOLOGY and value in (spec.get(key), *(spec.get("zones") or () if key == "zone" else ())):
        return True
    return bool((cluster["metadata"].get("labels") or {}).get(key) == value)


# output


def _name(course: Course) -> str:
    target = course.target
    return f"{target.kind} {target.namespace}/{target.name}" if target.namespace else f"{target.kind} {target.name}"


def _where(counts: dict[str, int]) -> str:
    return ", ".join(f"{name}:{count}" for name, count in sorted(counts.items())) or "-"


def _seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def _lines(report: Report, gates: FeatureGates, settings: Settings) -> list[str]:
    from karmada.prediction.scheduling import table

    touched = [course for course in report.courses if course.touched]
    lines = [
        f"{', '.join(report.failed)} failed; followed for {_seconds(report.lasted)}.",
        f"{len(touched)} of {len(report.courses)} resources were affected.",
    ]
    if not (gates.enabled("Failover") and settings.enable_no_execute_taint_eviction):
        lines.append("Failover of clusters is off: nothing is moved away. Try --with-failover.")
    if touched:
        rows = [["RESOURCE", "BEFORE", "AFTER", "LOST", "DOWN", "DEGRADED"]]
        for course in sorted(touched, key=lambda one: (-one.downtime, -one.degraded, _name(one))):
            degraded = _seconds(course.degraded) if course.recovered is not None else "not recovered"
            lost = str(max(course.lost, 0))
            rows.append(
                [_name(course), _where(course.before), _where(course.after), lost, _seconds(course.downtime), degraded]
            )
        lines += ["", *table(rows)]
    stuck = [course for course in touched if course.problem]
    if stuck:
        lines += ["", "Not placed:", *(f"  {_name(course)}: {course.problem}" for course in stuck)]
    return [*lines, *(f"Note: {note}" for note in report.notes)]


def _json(report: Report) -> str:
    from karmada.prediction.scheduling import as_json

    def shown(course: Course) -> dict[str, Any]:
        target = course.target
        return {
            "kind": target.kind,
            **({"namespace": target.namespace} if target.namespace else {}),
            "name": target.name,
            "before": course.before,
            "after": course.after,
            "scheduled": course.wanted,
            "lost": max(course.lost, 0),
            "least": course.least,
            "downtimeSeconds": round(course.downtime, 1),
            "degradedSeconds": round(course.degraded, 1),
            "recoveredAfterSeconds": None if course.recovered is None else round(course.recovered, 1),
            **({"problem": course.problem} if course.problem else {}),
            "timeline": [{"seconds": round(at, 1), "serving": count} for at, count in course.timeline],
        }

    return as_json(
        {
            "failed": report.failed,
            "followedSeconds": round(report.lasted, 1),
            "maxDowntimeSeconds": round(report.downtime, 1),
            "resources": [shown(course) for course in report.courses],
            "notes": report.notes,
        }
    )
