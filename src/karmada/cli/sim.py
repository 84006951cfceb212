"""`karmadactl sim`: simulated clusters, made, listed, loaded, broken and mended from the command line.

The clusters live in one process per folder, which `create` (or `start`) starts in the background. Every command talks
to it over its admin API; nothing here imports the simulator itself, so commands start fast.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from karmada.kube.objects.times import parse_duration
from karmada.kube.sim.admin_client import AdminClient, AdminError

_START_SECONDS = 120.0
DEFAULT_VERSION = "1.36"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        try:
            return float(value) if value.replace(".", "", 1).isdigit() else parse_duration(value)
        except ValueError:
            self.fail(f'"{value}" is not a duration such as 30s or 1m30s', param, ctx)


class Pairs(click.ParamType[dict[str, str]]):
    """key=value,key=value"""

    name = "key=value,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part]
        if any(not key or not equals for key, equals, _ in pairs):
            self.fail(f'"{value}" is not of the form key=value,key=value', param, ctx)
        return {key: text for key, _, text in pairs}


@click.group()
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(os.environ.get("KARMADA_SIM_DIR", "~/.karmada/sim")),
    show_default=True,
    help="The folder of the clusters; $KARMADA_SIM_DIR sets another default.",
)
@click.pass_context
def sim(ctx: click.Context, data_dir: Path) -> None:
    """Simulated clusters: real APIs, no machines behind them.

    \b
    Example:
      karmadactl sim create member1 member2 --nodes 3
      kubectl --kubeconfig ~/.karmada/sim/members.config --context member1 get nodes
      karmadactl sim fail member1 down --for 1m
    """
    ctx.obj = data_dir.expanduser().absolute()


def _ask(folder: Path, method: str, path: str, body: object = None, timeout: float = 120.0) -> Any:
    try:
        return AdminClient(folder).ask(method, path, body, timeout=timeout)
    except AdminError as error:
        raise click.ClickException(str(error)) from None


def _ensure_running(folder: Path) -> None:
    """Start the process of this folder's clusters, unless it runs, and wait until it takes orders."""
    from karmada.kube.server.auth.files import locked

    client = AdminClient(folder)
    if client.running():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder):  # of two who come at once, one starts it and the other finds it running
        if not client.running():
            _start(client, folder)


def _start(client: AdminClient, folder: Path) -> None:
    command = [sys.executable, "-m", "karmada.components.sim", "--data-dir", str(folder)]
    descriptor = os.open(folder / "sim.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    end = time.monotonic() + _START_SECONDS
    while not client.running():
        if process.poll() is not None or time.monotonic() > end:
            tail = (folder / "sim.log").read_text().strip().splitlines()[-1:]
            raise click.ClickException(f"the simulator did not start ({folder / 'sim.log'}): {''.join(tail)}")
        time.sleep(0.05)


# clusters


@sim.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--nodes", default=3, type=click.IntRange(min=0), show_default=True, help="How many nodes.")
@click.option("--cpu", default="4", show_default=True, help="CPU of each node.")
@click.option("--memory", default="16Gi", show_default=True, help="Memory of each node.")
@click.option(
    "--pods", default=110, type=click.IntRange(min=0), show_default=True, help="How many pods each node takes."
)
@click.option("--kubernetes-version", default=DEFAULT_VERSION, show_default=True, help="1.27 to 1.37.")
@click.option("--labels", type=Pairs(), default={}, help="Labels of the cluster and of its nodes.")
@click.option("--region", default="", help="Region of the cluster and its nodes.")
@click.option("--zone", default="", help="Zones of the nodes, comma-separated; they are given out in turn.")
@click.option("--provider", default="", help="Whose cluster it pretends to be.")
@click.option("--seed", default=0, help="What is left to chance comes from here.")
@click.option(
    "--profile",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A YAML file with everything that can be set (pools, latencies, storage classes, …); flags come after it.",
)
@click.option(
    "--attach",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Add simulated nodes to the real cluster of this kubeconfig instead of making a new one.",
)
@click.option("--context", "context_name", default="", help="The context in the kubeconfig of --attach.")
@click.pass_obj
def create(
    folder: Path,
    names: tuple[str, ...],
    nodes: int,
    cpu: str,
    memory: str,
    pods: int,
    kubernetes_version: str,
    labels: dict[str, str],
    region: str,
    zone: str,
    provider: str,
    seed: int,
    profile: Path | None,
    attach: Path | None,
    context_name: str,
) -> None:
    """Make clusters NAME… and have them run.

    \b
    Example:
      karmadactl sim create member1 --nodes 5 --cpu 8 --memory 32Gi --region eu --zone eu-a,eu-b
      karmadactl sim create extra --attach ~/.kube/config --nodes 10
    """
    zones = [part for part in zone.split(",") if part]
    pool = {"name": "node", "count": nodes, "cpu": cpu, "memory": memory, "pods": pods}
    pool |= {"labels": labels, "zones": zones, "region": region, "provider": provider}
    wanted: dict[str, Any] = {
        "version": _version(kubernetes_version),
        "seed": seed,
        "labels": labels,
        "region": region,
        "zone": zones[0] if zones else "",
        "provider": provider,
        "pools": [pool],
    }
    if profile is not None:
        wanted = _with_profile(wanted, profile)
    _ensure_running(folder)
    for name in names:
        stored: dict[str, Any] = {"profile": {**wanted, "name": name}}
        if attach is not None:
            stored |= {"attach": str(attach.absolute()), "context": context_name}
        began = time.monotonic()
        made = _ask(folder, "POST", "/clusters", stored)
        click.echo(f"cluster {name} created in {time.monotonic() - began:.1f} s: {made['server']}")
    click.echo(f"kubeconfig: {folder / 'members.config'}")


def _version(text: str) -> str:
    major, _, minor = text.removeprefix("v").partition(".")
    minor = minor.partition(".")[0]
    if major != "1" or not minor.isdigit() or not 27 <= int(minor) <= 37:
        raise click.BadParameter(f'"{text}" is not a version from 1.27 to 1.37', param_hint="--kubernetes-version")
    return f"1.{minor}"


def _with_profile(flags: dict[str, Any], path: Path) -> dict[str, Any]:
    """The file's settings, and those flags that were given on the command line."""
    from karmada.kube.schema.yamlio import load_yaml

    try:
        settings = load_yaml(path.read_text())
    except ValueError as error:
        raise click.ClickException(f"{path}: {error}") from None
    if not isinstance(settings, dict):
        raise click.ClickException(f"{path}: not a mapping of settings")
    version = settings.get("version", DEFAULT_VERSION)
    if not isinstance(version, str):
        raise click.ClickException(f'{path}: version {version} needs quotes: "{version}"')
    settings["version"] = _version(version)
    context = click.get_current_context()
    given = {
        name for name in context.params if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    pool_flags = {"nodes", "cpu", "memory", "pods"}
    names = {"kubernetes_version": "version"}
    kept = {names.get(flag, flag) for flag in given} & flags.keys()
    if given & pool_flags:
        kept.add("pools")
    return {**settings, **{key: flags[key] for key in kept}}


@sim.command("list")
@click.option("-o", "--output", type=click.Choice(["wide", "json", "name"]), help="Another form.")
@click.pass_obj
def list_clusters(folder: Path, output: str | None) -> None:
    """Show the clusters that run.

    \b
    Example:
      karmadactl sim list -o wide
    """
    found = _ask(folder, "GET", "/clusters")
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    elif output == "name":
        for cluster in found:
            click.echo(cluster["name"])
    else:
        _table(found, wide=output == "wide")


def _table(clusters: list[dict[str, Any]], *, wide: bool) -> None:
    rows = [
        [
            "NAME",
            "VERSION",
            "NODES",
            "PODS",
            "FAULTS",
            "SERVER",
            *(["REGION", "ZONE", "PROVIDER", "KUBECONFIG"] if wide else []),
        ]
    ]
    for cluster in clusters:
        if "error" in cluster:
            click.echo(f"cluster {cluster['name']} did not start: {cluster['error']}", err=True)
            continue
        row = [cluster["name"], cluster["version"], cluster["nodes"], cluster["pods"]]
        row += [",".join(cluster["faults"]) or "<none>", cluster["server"]]
        if wide:
            row += [cluster[key] or "<none>" for key in ("region", "zone", "provider", "kubeconfig")]
        rows.append([str(value) for value in row])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("   ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


@sim.command()
@click.argument("names", nargs=-1, metavar="NAME…")
@click.option("--all", "everything", is_flag=True, help="All clusters.")
@click.pass_obj
def delete(folder: Path, names: tuple[str, ...], everything: bool) -> None:
    """Delete clusters with everything in them.

    \b
    Example:
      karmadactl sim delete member1
    """
    if bool(names) == everything:
        raise click.UsageError("give the names of clusters, or --all")
    if everything:
        names = tuple(cluster["name"] for cluster in _ask(folder, "GET", "/clusters"))
    for name in names:
        clean = _ask(folder, "DELETE", f"/clusters/{name}")["clean"]
        click.echo(f"cluster {name} deleted" + ("" if clean else "; it did not answer, so its simulated nodes stay"))


@sim.command()
@click.argument("name")
@click.option("--nodes", required=True, type=click.IntRange(min=0), help="How many nodes the pool is to have.")
@click.option("--pool", default="", help="The pool.  [default: the first]")
@click.pass_obj
def scale(folder: Path, name: str, nodes: int, pool: str) -> None:
    """Add nodes to a cluster, or take some away.

    \b
    Example:
      karmadactl sim scale member1 --nodes 10
    """
    clusters = {cluster["name"]: cluster for cluster in _ask(folder, "GET", "/clusters")}
    if name not in clusters or "error" in clusters[name]:
        raise click.ClickException(f'no simulated cluster "{name}" (known: {", ".join(clusters) or "none"})')
    pools = clusters[name]["pools"]
    chosen = next((p for p in pools if not pool or p["name"] == pool), None)
    if chosen is None:
        raise click.ClickException(
            f'cluster "{name}" has no pool "{pool}" (has: {", ".join(p["name"] for p in pools)})'
        )
    chosen["count"] = nodes
    _ask(folder, "PUT", f"/clusters/{name}/pools", pools)
    click.echo(f"cluster {name}: pool {chosen['name']} has {nodes} nodes")


@sim.command()
@click.pass_obj
def start(folder: Path) -> None:
    """Start the clusters of the folder again, after `stop` or a reboot.

    \b
    Example:
      karmadactl sim start
    """
    _ensure_running(folder)
    found = _ask(folder, "GET", "/clusters")
    for cluster in found:
        if "error" in cluster:
            click.echo(f"cluster {cluster['name']} did not start: {cluster['error']}", err=True)
    running = sum("error" not in cluster for cluster in found)
    click.echo(f"{running} clusters run; kubeconfig: {folder / 'members.config'}")


@sim.command()
@click.pass_obj
def stop(folder: Path) -> None:
    """Stop all clusters; their state stays.

    \b
    Example:
      karmadactl sim stop
    """
    _ask(folder, "POST", "/stop")
    end = time.monotonic() + _START_SECONDS
    while _in_use(folder):
        if time.monotonic() > end:
            raise click.ClickException(f"the simulator does not stop; its log is {folder / 'sim.log'}")
        time.sleep(0.02)
    click.echo("stopped")


def _in_use(folder: Path) -> bool:
    """The process of the clusters holds this lock as long as it lives."""
    with (folder / "process.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@sim.command()
@click.argument("name")
@click.argument("target", metavar="KIND/NAME")
@click.argument("amounts", nargs=-1, metavar="[WHAT=AMOUNT…]")
@click.option("-n", "--namespace", default="default", show_default=True, help="The namespace of the target.")
@click.option("--object", "on_object", multiple=True, metavar="METRIC=AMOUNT", help="A metric of the target itself.")
@click.option("--external", multiple=True, metavar="METRIC=AMOUNT", help="A metric of something outside the cluster.")
@click.option("--clear", is_flag=True, help="Take back what was set for the target.")
@click.pass_obj
def load(
    folder: Path,
    name: str,
    target: str,
    amounts: tuple[str, ...],
    namespace: str,
    on_object: tuple[str, ...],
    external: tuple[str, ...],
    clear: bool,
) -> None:
    """Put load on the pods of a workload of cluster NAME, as its metrics APIs will show it.

    WHAT is cpu or memory (of each pod), total-cpu or total-memory (shared by the ready pods), requests (a share of what
    they request), or the name of a custom metric. The annotation sim.io/load on a pod, its template or its workload
    says the same: "cpu=250m,http_requests=50".

    \b
    Example:
      karmadactl sim load member1 deployment/web cpu=250m memory=128Mi
      karmadactl sim load member1 deployment/web total-cpu=4 http_requests=50
      karmadactl sim load member1 deployment/web --clear
    """
    kind, slash, workload = target.partition("/")
    if not slash:
        raise click.BadParameter(f'"{target}" is not of the form deployment/web', param_hint="KIND/NAME")
    label = f"{namespace}/{target.lower()}"
    if clear:
        _ask(folder, "DELETE", f"/clusters/{name}/load?setting={label}")
        click.echo(f"cluster {name}: no more load on {target}")
        return
    if not (amounts or on_object or external):
        raise click.UsageError("say what load, such as cpu=250m, or --clear")
    setting = {
        "namespace": namespace,
        "kind": _KINDS.get(kind.lower().removesuffix("s"), kind),
        "name": workload,
        "load": _amounts(amounts),
        "object": _amounts(on_object),
        "external": _amounts(external),
    }
    _ask(folder, "POST", f"/clusters/{name}/load", {"name": label, "setting": setting})
    click.echo(f"cluster {name}: {target} has {' '.join([*amounts, *on_object, *external])}")


_KINDS = {kind.lower(): kind for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod")} | {
    "deploy": "Deployment",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "rs": "ReplicaSet",
    "po": "Pod",
}


def _amounts(words: tuple[str, ...]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for what, equals, amount in pairs:
        if not what or not equals or not amount:
            raise click.UsageError(f'"{what}{equals}{amount}" is not of the form cpu=250m')
    return {what: amount for what, _, amount in pairs}


# faults


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
        ("--for", "seconds", Duration(), "Heal by itself after this time."),
        ("--as", "fault_name", str, "A name to heal it by.  [default: that of the fault]"),
    )
    return [
        click.Option([flag, name], type=type_, help=text, callback=note, expose_value=False)
        for flag, name, type_, text in flags
    ]


@sim.group(cls=_Faults)
@click.argument("name")
@click.pass_context
def fail(ctx: click.Context, name: str) -> None:
    """Let something go wrong with cluster NAME, until `karmadactl sim heal NAME`, or only --for a while.

    \b
    Example:
      karmadactl sim fail member1 down --for 1m
      karmadactl sim fail member1 node member1-node-1 --as lost
      karmadactl sim fail member1 image-pull nginx
    """
    ctx.obj = _Break(ctx.obj, name)


class _Break:
    """One order to break something."""

    def __init__(self, folder: Path, cluster: str) -> None:
        self._folder, self._cluster = folder, cluster

    def __call__(self, kind: str, **settings: Any) -> None:
        meta = click.get_current_context().meta
        seconds, called = meta.get(f"{__name__}.seconds"), meta.get(f"{__name__}.fault_name", "")
        fault = {"type": kind, **{key: value for key, value in settings.items() if value not in (None, "", ())}}
        order = {"fault": fault, "name": called, "seconds": seconds}
        name = _ask(self._folder, "POST", f"/clusters/{self._cluster}/faults", order)["name"]
        until = f" for {seconds:g} s" if seconds is not None else ""
        click.echo(f'cluster {self._cluster}: fault "{name}"{until}')


def _requests(function: Callable[..., None]) -> Callable[..., None]:
    """The flags that say which requests a fault touches."""
    for option in (
        click.option("--percent", default=100.0, help="Of how many of those requests.", show_default=True),
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
    """Nothing listens any more."""
    broken("down")


@fail.command()
@click.option("--up", type=Duration(), default=10.0, help="How long it is up.  [default: 10s]")
@click.option("--down", type=Duration(), default=10.0, help="How long it is down.  [default: 10s]")
@click.pass_obj
def flap(broken: _Break, up: float, down: float) -> None:
    """Down and up again, in turns."""
    broken("flap", up=up, down=down)


@fail.command()
@click.option("--delay", type=Duration(), default=2.0, help="How much longer each answer takes.  [default: 2s]")
@click.option("--jitter", type=Duration(), default=0.0, help="And up to so much more, at random.")
@_requests
@click.pass_obj
def slow(broken: _Break, /, delay: float, jitter: float, **which: Any) -> None:
    """Answers come late."""
    broken("slow", seconds=delay, jitter=jitter, **which)


@fail.command("black-hole")
@_requests
@click.pass_obj
def black_hole(broken: _Break, /, **which: Any) -> None:
    """Requests are accepted and never answered."""
    broken("black-hole", **which)


@fail.command()
@click.option("--how", type=click.Choice(["hang", "refuse", "watches"]), default="hang", show_default=True)
@_requests
@click.pass_obj
def partition(broken: _Break, /, how: str, **which: Any) -> None:
    """The control plane cannot reach the cluster, everybody else can."""
    broken("partition", how=how, **which)


@fail.command()
@click.option("--code", type=click.Choice(["401", "403", "409", "413", "429", "500", "503", "504"]), default="500")
@click.option("--retry-after", default=0, help="Seconds, as a header.")
@_requests
@click.pass_obj
def errors(broken: _Break, /, code: str, retry_after: int, **which: Any) -> None:
    """Requests are answered with an error."""
    broken("errors", code=int(code), retry_after=retry_after, **which)


@fail.command("read-only")
@_requests
@click.pass_obj
def read_only(broken: _Break, /, **which: Any) -> None:
    """The store takes no writes."""
    broken("read-only", **which)


@fail.command()
@click.option("--how", type=click.Choice(["cut", "stall", "expire"]), default="cut", show_default=True)
@_requests
@click.pass_obj
def watches(broken: _Break, /, how: str, **which: Any) -> None:
    """Watches break, fall silent or expire."""
    broken("watches", how=how, **which)


@fail.command()
@click.option("--page", "pages", multiple=True, help="Which page.  [default: /readyz]")
@click.option("--code", default=500, show_default=True)
@click.pass_obj
def unhealthy(broken: _Break, pages: tuple[str, ...], code: int) -> None:
    """The health pages say no."""
    broken("unhealthy", pages=pages, code=code)


@fail.command("kind")
@click.argument("what", nargs=-1, required=True)
@click.pass_obj
def kind(broken: _Break, what: tuple[str, ...]) -> None:
    """Kinds are not served: WHAT is a resource (deployments.apps) or a group-version (batch/v1)."""
    broken("unavailable", what=what)


@fail.command()
@click.argument("nodes", nargs=-1)
@click.option("--pool", default="", help="All nodes of a pool.")
@click.option("--zone", default="", help="All nodes of a zone.")
@click.pass_obj
def node(broken: _Break, nodes: tuple[str, ...], pool: str, zone: str) -> None:
    """Nodes are lost: those named, those of a pool or a zone."""
    if not (nodes or pool or zone):
        raise click.UsageError("name nodes, --pool or --zone")
    broken("node", nodes=nodes, pool=pool, zone=zone)


@fail.command("image-pull")
@click.argument("image")
@click.pass_obj
def image_pull(broken: _Break, image: str) -> None:
    """Images cannot be pulled; IMAGE is a regular expression."""
    broken("pods", rule={"image": image, "outcome": {"kind": "image-pull-error"}})


@fail.command()
@click.argument("outcome")
@click.option("-n", "--namespace", default="", help="Only pods of this namespace.")
@click.option("-l", "--labels", type=Pairs(), default={}, help="Only pods with these labels.")
@click.option("--image", default="", help="Only pods with an image that matches.")
@click.option("--node", default="", help="Only pods on this node.")
@click.pass_obj
def pods(broken: _Break, outcome: str, namespace: str, labels: dict[str, str], image: str, node: str) -> None:
    """Pods behave badly: OUTCOME is crash-loop, never-ready, oom, evicted, "ready-after 10s", …"""
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
@click.option("--of", "condition", type=click.Choice(_PRESSURES), default=_PRESSURES[0])
@click.pass_obj
def pressure(broken: _Break, nodes: tuple[str, ...], pool: str, zone: str, condition: str) -> None:
    """Nodes run short of something: they are tainted and take no more pods."""
    broken("pressure", nodes=nodes, pool=pool, zone=zone, condition=condition)


@fail.command()
@click.argument("component")
@click.pass_obj
def pause(broken: _Break, component: str) -> None:
    """A part of the cluster stops working: scheduler, kubelet, deployment, …"""
    broken("pause", component=component)


@fail.command()
@click.option("--rate", default=1.0, help="How many times as fast it runs.")
@click.option("--skip", type=Duration(), default=0.0, help="How far it jumps ahead.")
@click.pass_obj
def clock(broken: _Break, rate: float, skip: float) -> None:
    """The cluster's clock is wrong."""
    broken("clock", rate=rate, skip=skip)


@sim.command()
@click.argument("name")
@click.argument("fault", default="")
@click.pass_obj
def heal(folder: Path, name: str, fault: str) -> None:
    """Take back FAULT of cluster NAME, or all its faults.

    \b
    Example:
      karmadactl sim heal member1
    """
    healed = _ask(folder, "DELETE", f"/clusters/{name}/faults" + (f"?fault={fault}" if fault else ""))["healed"]
    click.echo(f"cluster {name}: healed {', '.join(healed) or 'nothing, all was well'}")
