"""`karmadactl sim`: create, list, load, break and heal simulated clusters.

The clusters live in one process per folder, which `create` (or `start`) starts in the background. Every command talks
to it over its admin API; nothing here imports the simulator itself, so commands start fast.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

from karmada.cli.commands.sim_admin import Pairs, request
from karmada.cli.commands.sim_faults import fail
from karmada.cli.output.columns import aligned
from karmada.kube.sim.admin_client import AdminClient
from karmada.local.folder import folder_of_clusters

_START_SECONDS = 120.0
DEFAULT_VERSION = "1.36"


@click.group()
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("~/.karmada/sim"),
    envvar="KARMADA_SIM_DIR",
    show_default=True,
    help="The folder of the clusters, or of local-up; $KARMADA_SIM_DIR sets another default.",
)
@click.pass_context
def sim(ctx: click.Context, data_dir: Path) -> None:
    """Create, inspect and break simulated clusters.

    \b
    Example:
      karmadactl sim create member1 member2 --nodes 3
      kubectl --kubeconfig ~/.karmada/sim/members.config --context member1 get nodes
      karmadactl sim fail member1 down --for 1m
    """
    ctx.obj = folder_of_clusters(data_dir)


def _ensure_running(folder: Path) -> None:
    """Start the process of this folder's clusters, unless it runs, and wait until it accepts requests."""
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
@click.option("--memory", default="32Gi", show_default=True, help="Memory of each node.")
@click.option("--pods", default=110, type=click.IntRange(min=0), show_default=True, help="Pod capacity of each node.")
@click.option("--kubernetes-version", default=DEFAULT_VERSION, show_default=True, help="1.27 to 1.37.")
@click.option("--labels", type=Pairs(), default={}, help="Labels of the cluster and its nodes.")
@click.option("--region", default="", help="Region of the cluster and its nodes.")
@click.option("--zone", default="", help="Zones of the nodes, comma-separated, assigned in turn.")
@click.option("--provider", default="", help="The cloud provider to simulate.")
@click.option("--seed", default=0, help="Seed of random numbers.")
@click.option(
    "--profile",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A YAML file with all settings (pools, latencies, storage classes, …); flags override it.",
)
@click.option(
    "--attach",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Add simulated nodes to the real cluster of this kubeconfig instead of creating a cluster.",
)
@click.option("--context", "context_name", default="", help="The context in the kubeconfig of --attach.")
@click.option(
    "--run-processes",
    is_flag=True,
    help="Run pods of known images (Karmada's components, etcd) as processes of this machine, as this user.",
)
@click.option(
    "--process-images",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A YAML file with further images for --run-processes: image pattern -> command.",
)
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
    run_processes: bool,
    process_images: Path | None,
) -> None:
    """Create and start clusters NAME….

    \b
    Example:
      karmadactl sim create member1 --nodes 5 --cpu 8 --memory 32Gi --region eu --zone eu-a,eu-b
      karmadactl sim create extra --attach ~/.kube/config --nodes 10
      karmadactl sim create host --run-processes
    """
    if process_images is not None and not run_processes:
        raise click.UsageError("--process-images needs --run-processes")
    if attach is not None and run_processes:
        raise click.UsageError("--run-processes cannot be used with --attach: processes have local addresses only")
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
        if run_processes:
            images = str(process_images.absolute()) if process_images is not None else ""
            stored |= {"run_processes": True, "process_images": images}
        began = time.monotonic()
        made = request(folder, "POST", "/clusters", stored)
        click.echo(f"cluster {name} created in {time.monotonic() - began:.1f} s: {made['server']}")
    click.echo(f"kubeconfig: {folder / 'members.config'}")


def _version(text: str) -> str:
    major, _, minor = text.removeprefix("v").partition(".")
    minor = minor.partition(".")[0]
    if major != "1" or not minor.isdigit() or not 27 <= int(minor) <= 37:
        raise click.BadParameter(f'"{text}" is not a version from 1.27 to 1.37', param_hint="--kubernetes-version")
    return f"1.{minor}"


def _with_profile(flags: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the file's settings, and those flags that were given on the command line."""
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
    """List the simulated clusters.

    \b
    Example:
      karmadactl sim list -o wide
    """
    found = request(folder, "GET", "/clusters")
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
    click.echo("\n".join(aligned(rows)))


@sim.command()
@click.pass_obj
def status(folder: Path) -> None:
    """Show the simulator of the folder, its clusters, and which pods run as processes of this machine.

    \b
    Example:
      karmadactl sim status
    """
    found = request(folder, "GET", "/clusters")
    click.echo(f"folder: {folder}")
    _table(found, wide=False)
    for cluster in found:
        running = cluster.get("processes")
        if running is None:
            continue
        click.echo(f"cluster {cluster['name']} runs pods of known images as processes of this machine: {len(running)}")
        for process in running:
            where = f"pid {process['pid']}, {process['address']}"
            click.echo(f"  {process['pod']} container {process['container']}: {where}")


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
        names = tuple(cluster["name"] for cluster in request(folder, "GET", "/clusters"))
    for name in names:
        clean = request(folder, "DELETE", f"/clusters/{name}")["clean"]
        click.echo(
            f"cluster {name} deleted" + ("" if clean else "; it is not reachable, so its simulated nodes remain")
        )


@sim.command()
@click.argument("name")
@click.option("--nodes", required=True, type=click.IntRange(min=0), help="The number of nodes of the pool.")
@click.option("--pool", default="", help="The pool.  [default: the first]")
@click.pass_obj
def scale(folder: Path, name: str, nodes: int, pool: str) -> None:
    """Change the number of nodes of a cluster.

    \b
    Example:
      karmadactl sim scale member1 --nodes 10
    """
    clusters = {cluster["name"]: cluster for cluster in request(folder, "GET", "/clusters")}
    if name not in clusters or "error" in clusters[name]:
        raise click.ClickException(f'no simulated cluster "{name}" (known: {", ".join(clusters) or "none"})')
    pools = clusters[name]["pools"]
    chosen = next((p for p in pools if not pool or p["name"] == pool), None)
    if chosen is None:
        raise click.ClickException(
            f'cluster "{name}" has no pool "{pool}" (has: {", ".join(p["name"] for p in pools)})'
        )
    chosen["count"] = nodes
    request(folder, "PUT", f"/clusters/{name}/pools", pools)
    click.echo(f"cluster {name}: pool {chosen['name']} has {nodes} nodes")


@sim.command()
@click.pass_obj
def start(folder: Path) -> None:
    """Start the clusters of the folder, after `stop` or a reboot.

    \b
    Example:
      karmadactl sim start
    """
    _ensure_running(folder)
    found = request(folder, "GET", "/clusters")
    for cluster in found:
        if "error" in cluster:
            click.echo(f"cluster {cluster['name']} did not start: {cluster['error']}", err=True)
    running = sum("error" not in cluster for cluster in found)
    click.echo(f"{running} clusters run; kubeconfig: {folder / 'members.config'}")


@sim.command()
@click.pass_obj
def stop(folder: Path) -> None:
    """Stop all clusters; their state is kept.

    \b
    Example:
      karmadactl sim stop
    """
    from karmada.local.foreign import in_use

    request(folder, "POST", "/stop")
    end = time.monotonic() + _START_SECONDS
    while in_use(folder / "process.lock"):
        if time.monotonic() > end:
            raise click.ClickException(f"the simulator does not stop; its log is {folder / 'sim.log'}")
        time.sleep(0.02)
    click.echo("stopped")


@sim.command()
@click.argument("name")
@click.argument("target", metavar="KIND/NAME")
@click.argument("amounts", nargs=-1, metavar="[WHAT=AMOUNT…]")
@click.option("-n", "--namespace", default="default", show_default=True, help="The namespace of the target.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="METRIC=AMOUNT",
    help="A custom metric whose amount the ready pods of the target share, as requests do that come to all of them.",
)
@click.option("--object", "on_object", multiple=True, metavar="METRIC=AMOUNT", help="An object metric of the target.")
@click.option("--external", multiple=True, metavar="METRIC=AMOUNT", help="An external metric.")
@click.option("--clear", is_flag=True, help="Remove the load of the target.")
@click.pass_obj
def load(
    folder: Path,
    name: str,
    target: str,
    amounts: tuple[str, ...],
    namespace: str,
    metrics: tuple[str, ...],
    on_object: tuple[str, ...],
    external: tuple[str, ...],
    clear: bool,
) -> None:
    """Simulate load on the pods of a workload of cluster NAME, as its metrics APIs report it.

    WHAT is cpu or memory (of each pod), total-cpu or total-memory (shared by the ready pods), requests (a share of what
    they request), or the name of a custom metric. The annotation sim.io/load on a pod, its template or its workload
    has the same effect: "cpu=250m,http_requests=50".

    \b
    Example:
      karmadactl sim load member1 deployment/web cpu=250m memory=128Mi
      karmadactl sim load member1 deployment/web total-cpu=4 http_requests=50
      karmadactl sim load member1 deployment/web --metric http_requests_per_second=900
      karmadactl sim load member1 deployment/web --clear
    """
    kind, slash, workload = target.partition("/")
    if not slash:
        raise click.BadParameter(f'"{target}" is not of the form deployment/web', param_hint="KIND/NAME")
    label = f"{namespace}/{target.lower()}"
    if clear:
        request(folder, "DELETE", f"/clusters/{name}/load?setting={label}")
        click.echo(f"cluster {name}: no more load on {target}")
        return
    amounts += tuple(f"total-{metric}" for metric in metrics)
    if not (amounts or on_object or external):
        raise click.UsageError("give a load, such as cpu=250m, or --clear")
    setting = {
        "namespace": namespace,
        "kind": _KINDS.get(kind.lower().removesuffix("s"), kind),
        "name": workload,
        "load": _amounts(amounts),
        "object": _amounts(on_object),
        "external": _amounts(external),
    }
    request(folder, "POST", f"/clusters/{name}/load", {"name": label, "setting": setting})
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


@sim.command()
@click.argument("name")
@click.argument("fault", default="")
@click.pass_obj
def heal(folder: Path, name: str, fault: str) -> None:
    """Remove FAULT of cluster NAME, or all its faults.

    \b
    Example:
      karmadactl sim heal member1
    """
    healed = request(folder, "DELETE", f"/clusters/{name}/faults" + (f"?fault={fault}" if fault else ""))["healed"]
    click.echo(f"cluster {name}: healed {', '.join(healed) or 'nothing, there was no fault'}")


sim.add_command(fail)
