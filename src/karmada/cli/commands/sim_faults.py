"""`karmadactl sim fail`: the faults of a simulated cluster, one subcommand each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from karmada.cli.commands.sim_admin import Duration, Pairs, request

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


@click.group()
@click.argument("name")
@click.pass_context
def fail(ctx: click.Context, name: str) -> None:
    """Inject a fault into cluster NAME, until `karmadactl sim heal NAME` or --for a time.

    \b
    Example:
      karmadactl sim fail member1 down --for 1m
      karmadactl sim fail member1 node member1-node-1 --as lost
      karmadactl sim fail member1 image-pull nginx
    """
    ctx.obj = (ctx.obj, name)


def _option(flags: str, text: str, **settings: Any) -> click.Option:
    return click.Option(flags.split(), help=text, **settings)


_COMMON = (
    _option("--for lasts", "Remove the fault after this time.", type=Duration()),
    _option("--as fault_name", "A name for `sim heal`.  [default: that of the fault]", default=""),
)
_REQUESTS = (
    _option("--verb verbs", "Only this verb, such as list.", multiple=True),
    _option("--resource resources", "Only this resource, such as deployments.apps.", multiple=True),
    _option("--user users", "Only users whose name matches.", default=""),
    _option("--agent agents", "Only clients whose User-Agent matches.", default=""),
    _option("--percent", "The percentage of matching requests that are affected.", default=100.0, show_default=True),
)
"""Which requests a fault touches."""
_NODES = (
    click.Argument(["nodes"], nargs=-1),
    _option("--pool", "All nodes of a pool.", default=""),
    _option("--zone", "All nodes of a zone.", default=""),
)
_PODS = (
    _option("-n --namespace", "Only pods of this namespace.", default=""),
    _option("-l --labels", "Only pods with these labels.", type=Pairs(), default={}),
)


def _fault(
    name: str,
    text: str,
    example: str,
    *params: click.Parameter,
    kind: str = "",
    settings: Callable[..., dict[str, Any]] = dict,
) -> None:
    """Add the subcommand of a fault; its type is `kind`, or else the name, and `settings` makes it of the flags."""

    @click.pass_obj
    def inject(target: tuple[Path, str], /, lasts: float | None, fault_name: str, **given: Any) -> None:
        folder, cluster = target
        wanted = {key: value for key, value in settings(**given).items() if value not in (None, "", ())}
        order = {"fault": {"type": kind or name, **wanted}, "name": fault_name, "seconds": lasts}
        called = request(folder, "POST", f"/clusters/{cluster}/faults", order)["name"]
        until = f" for {lasts:g} s" if lasts is not None else ""
        click.echo(f'cluster {cluster}: fault "{called}"{until}')

    shown = f"{text}\n\n\b\nExample:\n  karmadactl sim fail member1 {example}"
    fail.add_command(click.Command(name, params=[*params, *_COMMON], callback=inject, help=shown))


def _how(choices: str, text: str) -> click.Option:
    ways = choices.split()
    return _option("--how", text, type=click.Choice(ways), default=ways[0], show_default=True)


_fault("down", "The API server is down: connections are refused.", "down --for 1m")
_fault(
    "flap",
    "The API server goes down and comes up again, in turns.",
    "flap --up 30s --down 5s",
    _option("--up", "How long it is up.  [default: 10s]", type=Duration(), default=10.0),
    _option("--down", "How long it is down.  [default: 10s]", type=Duration(), default=10.0),
)
_fault(
    "slow",
    "The API server responds slowly.",
    "slow --delay 3s --jitter 1s --verb list",
    _option("--delay seconds", "Additional latency of each response.  [default: 2s]", type=Duration(), default=2.0),
    _option("--jitter", "Random additional latency, up to this.", type=Duration(), default=0.0),
    *_REQUESTS,
)
_fault(
    "black-hole",
    "Requests are accepted and never answered.",
    "black-hole --resource deployments.apps",
    *_REQUESTS,
)
_fault(
    "partition",
    "The control plane cannot reach the cluster; other clients can.",
    "partition --how refuse",
    _how("hang refuse watches", "How its requests fail."),
    *_REQUESTS,
)
_fault(
    "errors",
    "Requests fail with an error.",
    "errors --code 429 --retry-after 2 --percent 20",
    _option(
        "--code",
        "The status code of the error.",
        type=click.Choice(["401", "403", "409", "413", "429", "500", "503", "504"]),
        default="500",
    ),
    _option("--retry-after", "Seconds in the Retry-After header.", default=0),
    *_REQUESTS,
    settings=lambda code, **given: {"code": int(code), **given},
)
_fault("read-only", "The store refuses writes.", "read-only --for 30s", *_REQUESTS)
_fault(
    "watches",
    "Watches break, stall or expire.",
    "watches --how stall",
    _how("cut stall expire", "How watches fail."),
    *_REQUESTS,
)
_fault(
    "unhealthy",
    "Health endpoints fail.",
    "unhealthy --page /livez",
    _option("--page pages", "The health endpoint.  [default: /readyz]", multiple=True),
    _option("--code", "The status code.", default=500, show_default=True),
)
_fault(
    "kind",
    "Kinds are not served: WHAT is a resource (deployments.apps) or a group-version (batch/v1).",
    "kind deployments.apps batch/v1",
    click.Argument(["what"], nargs=-1, required=True),
    kind="unavailable",
)


def _some_nodes(nodes: tuple[str, ...], pool: str, zone: str) -> dict[str, Any]:
    if not (nodes or pool or zone):
        raise click.UsageError("name nodes, --pool or --zone")
    return {"nodes": nodes, "pool": pool, "zone": zone}


def _rule(outcome: str, **which: Any) -> dict[str, Any]:
    import msgspec

    from karmada.kube.sim.behaviours import parse_outcome

    try:
        parsed = msgspec.to_builtins(parse_outcome(outcome))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="OUTCOME") from None
    return {"rule": {"outcome": parsed, **{key: value for key, value in which.items() if value}}}


_fault(
    "node",
    "Nodes fail: those named, or those of a pool or a zone.",
    "node member1-node-1\n  karmadactl sim fail member1 node --zone eu-a --for 5m",
    *_NODES,
    settings=_some_nodes,
)
_fault(
    "image-pull",
    "Images cannot be pulled; IMAGE is a regular expression.",
    "image-pull nginx",
    click.Argument(["image"]),
    kind="pods",
    settings=lambda image: {"rule": {"image": image, "outcome": {"kind": "image-pull-error"}}},
)
_fault(
    "pods",
    'Pods behave badly: OUTCOME is crash-loop, never-ready, oom, evicted, "ready-after 10s", …',
    "pods crash-loop -n shop -l app=web",
    click.Argument(["outcome"]),
    *_PODS,
    _option("--image", "Only pods with an image that matches.", default=""),
    _option("--node", "Only pods on this node.", default=""),
    settings=_rule,
)
_fault(
    "pressure",
    "Nodes report pressure: they are tainted and accept no more pods.",
    "pressure member1-node-1 --of DiskPressure",
    *_NODES,
    _option("--of condition", "Of what.", type=click.Choice(_PRESSURES), default=_PRESSURES[0]),
)
_fault(
    "isolate",
    "Pods that run as processes (sim create --run-processes) lose their connections.",
    "isolate -n karmada-system -l app=karmada-agent --for 1m",
    *_PODS,
    _option("--to", "Only connections to addresses (host:port) that match this expression.", default=""),
    _how("hang refuse", "How they fail."),
)
_fault(
    "pause",
    "A part of the cluster stops working: scheduler, kubelet, deployment, …",
    "pause scheduler",
    click.Argument(["component"]),
)
_fault(
    "clock",
    "The cluster's clock is wrong.",
    "clock --rate 60",
    _option("--rate", "The speed of the clock, as a factor.", default=1.0),
    _option("--skip", "How far the clock jumps ahead.", type=Duration(), default=0.0),
)
