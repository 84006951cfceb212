"""`karmadactl sim fail`: the faults of a simulated cluster, one subcommand each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from karmada.cli.commands.sim_admin import Duration, Pairs, request

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class _Faults(click.Group):
    """Every fault may say how long it lasts and what it is called."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        cmd.params += _common()
        super().add_command(cmd, name)


def _common() -> list[click.Parameter]:
    def note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None:
            ctx.meta[f"{__name__}.{param.name}"] = value

    flags = (
        ("--for", "seconds", Duration(), "Remove the fault after this time."),
        ("--as", "fault_name", str, "A name for `sim heal`.  [default: that of the fault]"),
    )
    return [
        click.Option([flag, name], type=type_, help=text, callback=note, expose_value=False)
        for flag, name, type_, text in flags
    ]


@click.command(cls=_Faults)
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
    ctx.obj = _Break(ctx.obj, name)


class _Break:
    """A fault to inject."""

    def __init__(self, folder: Path, cluster: str) -> None:
        self._folder, self._cluster = folder, cluster

    def __call__(self, kind: str, **settings: Any) -> None:
        meta = click.get_current_context().meta
        seconds, called = meta.get(f"{__name__}.seconds"), meta.get(f"{__name__}.fault_name", "")
        fault = {"type": kind, **{key: value for key, value in settings.items() if value not in (None, "", ())}}
        order = {"fault": fault, "name": called, "seconds": seconds}
        name = request(self._folder, "POST", f"/clusters/{self._cluster}/faults", order)["name"]
        until = f" for {seconds:g} s" if seconds is not None else ""
        click.echo(f'cluster {self._cluster}: fault "{name}"{until}')


def _requests(function: Callable[..., None]) -> Callable[..., None]:
    """Return the flags that say which requests a fault touches."""
    for option in (
        click.option(
            "--percent", default=100.0, help="The percentage of matching requests that are affected.", show_default=True
        ),
        click.option("--agent", "agents", default="", help="Only clients whose User-Agent matches."),
        click.option("--user", "users", default="", help="Only users whose name matches."),
        click.option("--resource", "resources", multiple=True, help="Only this resource, such as deployments.apps."),
        click.option("--verb", "verbs", multiple=True, help="Only this verb, such as list."),
    ):
        function = option(function)
    return function


@fail.command()
@click.pass_obj
def down(broken: _Break) -> None:
    """The API server is down: connections are refused.

    \b
    Example:
      karmadactl sim fail member1 down --for 1m
    """
    broken("down")


@fail.command()
@click.option("--up", type=Duration(), default=10.0, help="How long it is up.  [default: 10s]")
@click.option("--down", type=Duration(), default=10.0, help="How long it is down.  [default: 10s]")
@click.pass_obj
def flap(broken: _Break, up: float, down: float) -> None:
    """The API server goes down and comes up again, in turns.

    \b
    Example:
      karmadactl sim fail member1 flap --up 30s --down 5s
    """
    broken("flap", up=up, down=down)


@fail.command()
@click.option("--delay", type=Duration(), default=2.0, help="Additional latency of each response.  [default: 2s]")
@click.option("--jitter", type=Duration(), default=0.0, help="Random additional latency, up to this.")
@_requests
@click.pass_obj
def slow(broken: _Break, /, delay: float, jitter: float, **which: Any) -> None:
    """The API server responds slowly.

    \b
    Example:
      karmadactl sim fail member1 slow --delay 3s --jitter 1s --verb list
    """
    broken("slow", seconds=delay, jitter=jitter, **which)


@fail.command("black-hole")
@_requests
@click.pass_obj
def black_hole(broken: _Break, /, **which: Any) -> None:
    """Requests are accepted and never answered.

    \b
    Example:
      karmadactl sim fail member1 black-hole --resource deployments.apps
    """
    broken("black-hole", **which)


@fail.command()
@click.option(
    "--how",
    type=click.Choice(["hang", "refuse", "watches"]),
    default="hang",
    show_default=True,
    help="How its requests fail.",
)
@_requests
@click.pass_obj
def partition(broken: _Break, /, how: str, **which: Any) -> None:
    """The control plane cannot reach the cluster; other clients can.

    \b
    Example:
      karmadactl sim fail member1 partition --how refuse
    """
    broken("partition", how=how, **which)


@fail.command()
@click.option(
    "--code",
    type=click.Choice(["401", "403", "409", "413", "429", "500", "503", "504"]),
    default="500",
    help="The status code of the error.",
)
@click.option("--retry-after", default=0, help="Seconds in the Retry-After header.")
@_requests
@click.pass_obj
def errors(broken: _Break, /, code: str, retry_after: int, **which: Any) -> None:
    """Requests fail with an error.

    \b
    Example:
      karmadactl sim fail member1 errors --code 429 --retry-after 2 --percent 20
    """
    broken("errors", code=int(code), retry_after=retry_after, **which)


@fail.command("read-only")
@_requests
@click.pass_obj
def read_only(broken: _Break, /, **which: Any) -> None:
    """The store refuses writes.

    \b
    Example:
      karmadactl sim fail member1 read-only --for 30s
    """
    broken("read-only", **which)


@fail.command()
@click.option(
    "--how", type=click.Choice(["cut", "stall", "expire"]), default="cut", show_default=True, help="How watches fail."
)
@_requests
@click.pass_obj
def watches(broken: _Break, /, how: str, **which: Any) -> None:
    """Watches break, stall or expire.

    \b
    Example:
      karmadactl sim fail member1 watches --how stall
    """
    broken("watches", how=how, **which)


@fail.command()
@click.option("--page", "pages", multiple=True, help="The health endpoint.  [default: /readyz]")
@click.option("--code", default=500, show_default=True, help="The status code.")
@click.pass_obj
def unhealthy(broken: _Break, pages: tuple[str, ...], code: int) -> None:
    """Health endpoints fail.

    \b
    Example:
      karmadactl sim fail member1 unhealthy --page /livez
    """
    broken("unhealthy", pages=pages, code=code)


@fail.command("kind")
@click.argument("what", nargs=-1, required=True)
@click.pass_obj
def kind(broken: _Break, what: tuple[str, ...]) -> None:
    """Kinds are not served: WHAT is a resource (deployments.apps) or a group-version (batch/v1).

    \b
    Example:
      karmadactl sim fail member1 kind deployments.apps batch/v1
    """
    broken("unavailable", what=what)


@fail.command()
@click.argument("nodes", nargs=-1)
@click.option("--pool", default="", help="All nodes of a pool.")
@click.option("--zone", default="", help="All nodes of a zone.")
@click.pass_obj
def node(broken: _Break, nodes: tuple[str, ...], pool: str, zone: str) -> None:
    """Nodes fail: those named, or those of a pool or a zone.

    \b
    Example:
      karmadactl sim fail member1 node member1-node-1
      karmadactl sim fail member1 node --zone eu-a --for 5m
    """
    if not (nodes or pool or zone):
        raise click.UsageError("name nodes, --pool or --zone")
    broken("node", nodes=nodes, pool=pool, zone=zone)


@fail.command("image-pull")
@click.argument("image")
@click.pass_obj
def image_pull(broken: _Break, image: str) -> None:
    """Images cannot be pulled; IMAGE is a regular expression.

    \b
    Example:
      karmadactl sim fail member1 image-pull nginx
    """
    broken("pods", rule={"image": image, "outcome": {"kind": "image-pull-error"}})


@fail.command()
@click.argument("outcome")
@click.option("-n", "--namespace", default="", help="Only pods of this namespace.")
@click.option("-l", "--labels", type=Pairs(), default={}, help="Only pods with these labels.")
@click.option("--image", default="", help="Only pods with an image that matches.")
@click.option("--node", default="", help="Only pods on this node.")
@click.pass_obj
def pods(broken: _Break, outcome: str, namespace: str, labels: dict[str, str], image: str, node: str) -> None:
    """Pods behave badly: OUTCOME is crash-loop, never-ready, oom, evicted, "ready-after 10s", …

    \b
    Example:
      karmadactl sim fail member1 pods crash-loop -n shop -l app=web
    """
    import msgspec

    from karmada.kube.sim.behaviours import parse_outcome

    try:
        parsed = msgspec.to_builtins(parse_outcome(outcome))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="OUTCOME") from None
    which = {"namespace": namespace, "labels": labels, "image": image, "node": node}
    broken("pods", rule={"outcome": parsed, **{key: value for key, value in which.items() if value}})


@fail.command()
@click.argument("nodes", nargs=-1)
@click.option("--pool", default="", help="All nodes of a pool.")
@click.option("--zone", default="", help="All nodes of a zone.")
@click.option("--of", "condition", type=click.Choice(_PRESSURES), default=_PRESSURES[0], help="Of what.")
@click.pass_obj
def pressure(broken: _Break, nodes: tuple[str, ...], pool: str, zone: str, condition: str) -> None:
    """Nodes report pressure: they are tainted and accept no more pods.

    \b
    Example:
      karmadactl sim fail member1 pressure member1-node-1 --of DiskPressure
    """
    broken("pressure", nodes=nodes, pool=pool, zone=zone, condition=condition)


@fail.command()
@click.option("-n", "--namespace", default="", help="Only pods of this namespace.")
@click.option("-l", "--labels", type=Pairs(), default={}, help="Only pods with these labels.")
@click.option("--to", default="", help="Only connections to addresses (host:port) that match this expression.")
@click.option("--how", type=click.Choice(["hang", "refuse"]), default="hang", show_default=True, help="How they fail.")
@click.pass_obj
def isolate(broken: _Break, namespace: str, labels: dict[str, str], to: str, how: str) -> None:
    """Pods that run as processes (sim create --run-processes) lose their connections.

    \b
    Example:
      karmadactl sim fail member1 isolate -n karmada-system -l app=karmada-agent --for 1m
    """
    broken("isolate", namespace=namespace, labels=labels, to=to, how=how)


@fail.command()
@click.argument("component")
@click.pass_obj
def pause(broken: _Break, component: str) -> None:
    """A part of the cluster stops working: scheduler, kubelet, deployment, …

    \b
    Example:
      karmadactl sim fail member1 pause scheduler
    """
    broken("pause", component=component)


@fail.command()
@click.option("--rate", default=1.0, help="The speed of the clock, as a factor.")
@click.option("--skip", type=Duration(), default=0.0, help="How far the clock jumps ahead.")
@click.pass_obj
def clock(broken: _Break, rate: float, skip: float) -> None:
    """The cluster's clock is wrong.

    \b
    Example:
      karmadactl sim fail member1 clock --rate 60
    """
    broken("clock", rate=rate, skip=skip)
