"""`karmadactl top`: the CPU and memory usage of pods and nodes of members.

Members without metrics are reported at the end; the others are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from karmada.cli.targeting import connect
from karmada.cli.targeting.usage import Amount, MetricsRequest, NodeUse, PodUse, summed, usage_of_nodes, usage_of_pods

F = TypeVar("F", bound=Callable[..., Any])
_ALIASES = {"pods": "pod", "po": "pod", "nodes": "node", "no": "node"}
_USAGE = ["CPU(cores)", "MEMORY(bytes)"]
_NODE_COLUMNS = ["NAME", "CLUSTER", "CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%"]


# commands


class _Top(click.Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))


class _Order(click.ParamType[str]):
    name = "order"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        if value not in ("", "cpu", "memory"):
            raise connect.failure("--sort-by accepts only cpu or memory")
        return str(value)


def _flags(command: F) -> F:
    """Return what both subcommands have."""
    for option in (
        click.option(
            "--use-protocol-buffers",
            is_flag=True,
            default=True,
            help="Accepted for compatibility; JSON is always used.",
        ),
        click.option("--no-headers", is_flag=True, help="Do not print the header."),
        click.option("--sort-by", type=_Order(), default="", help="Sort by cpu or memory, largest first."),
        click.option("-l", "--selector", default="", help="Only resources with these labels."),
    ):
        command = option(command)
    return command


def _one_name(names: Sequence[str], usage: str) -> str:
    if len(names) > 1:
        raise connect.usage(usage)
    name = names[0] if names else ""
    connect.check_name(name)
    return name


def _check(labels: str, fields: str = "") -> None:
    """Invalid selectors are refused before any request."""
    if not (labels or fields):
        return
    from karmada.kube.objects.selectors import parse_fields, parse_labels

    try:
        parse_labels(labels)
        parse_fields(fields)
    except ValueError as error:
        raise connect.failure(str(error)) from error


@click.group(cls=_Top)
def top() -> None:
    """Show the CPU and memory usage of pods and nodes of members.

    The clusters must have a metrics server.

    \b
    Examples:
      karmadactl top pod -A --clusters=member1
      karmadactl top node
    """


@top.command()
@click.argument("names", nargs=-1, metavar="[NAME | -l label]")
@click.option("-C", "--clusters", multiple=True, help="The members to read from [all members].")
@click.option("--field-selector", default="", help="Only resources that match this field selector.")
@click.option("--containers", is_flag=True, help="Show each container of a pod.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the pods of all namespaces.")
@click.option("--sum", "total", is_flag=True, help="Add a line with the total.")
@_flags
@connect.namespace_flag
@connect.connection_flags
def pod(
    names: tuple[str, ...],
    clusters: tuple[str, ...],
    field_selector: str,
    containers: bool,
    all_namespaces: bool,
    total: bool,
    selector: str,
    sort_by: str,
    no_headers: bool,
    use_protocol_buffers: bool,  # noqa: ARG001
    namespace: str,
    way: connect.Way,
) -> None:
    """Show the CPU and memory usage of pods. Aliases are pods and po.

    Usage is measured over about a minute: a new pod has no metrics yet.

    \b
    Examples:
      # The pods of the default namespace, in all clusters
      karmadactl top pod
      # All pods of two clusters, the largest first
      karmadactl top pod -A --clusters=member1,member2 --sort-by=memory
      # The containers of one pod
      karmadactl top pod nginx --containers
      # Pods with a label, and their total
      karmadactl top pod -l app=nginx --sum
    """
    name = _one_name(names, "pod [NAME | -l label]")
    if name and (selector or field_selector):
        raise connect.failure("only one of NAME or selector can be provided")
    _check(selector, field_selector)
    request = MetricsRequest(name, "" if all_namespaces else namespace, selector, field_selector)
    reading = usage_of_pods(request, clusters, all_namespaces, way, namespace)
    answers, where = connect.run(reading)
    if answers.pods:
        found = sorted_pods(answers.pods, sort_by)
        text = pod_table(found, namespaces=all_namespaces, containers=containers, headers=not no_headers, total=total)
        click.echo(text, nl=False)
    elif not answers.failures:
        click.echo(f"No resources found in {where} namespace." if where else "No resources found", err=True)
    _report(answers.failures)


@top.command()
@click.argument("names", nargs=-1, metavar="[NAME | -l label]")
@click.option("--clusters", multiple=True, help="The members to read from [all members].")
@click.option(
    "--show-capacity", is_flag=True, help="Show percentages of the capacity instead of the allocatable resources."
)
@_flags
@connect.connection_flags
def node(
    names: tuple[str, ...],
    clusters: tuple[str, ...],
    show_capacity: bool,
    selector: str,
    sort_by: str,
    no_headers: bool,
    use_protocol_buffers: bool,  # noqa: ARG001
    way: connect.Way,
) -> None:
    """Show the CPU and memory usage of nodes. Aliases are nodes and no.

    \b
    Examples:
      # The nodes of all clusters
      karmadactl top node
      # The nodes of one cluster, the busiest first
      karmadactl top node --clusters=member1 --sort-by=cpu
      # One node
      karmadactl top node member1-node-1
    """
    name = _one_name(names, "node [NAME | -l label]")
    if name and selector:
        raise connect.failure("only one of NAME or --selector can be provided")
    _check(selector)
    request = MetricsRequest(name, labels=selector, capacity=show_capacity)
    answers = connect.run(usage_of_nodes(request, clusters, way))
    if answers.nodes:
        click.echo(node_table(sorted_nodes(answers.nodes, sort_by), headers=not no_headers), nl=False)
    elif not answers.failures:
        click.echo("No resources found", err=True)
    _report(answers.failures)


def _report(failures: dict[str, str]) -> None:
    lines = [f"cluster({cluster}): {message}" for cluster, message in failures.items()]
    if len(lines) == 1:
        raise connect.failure(lines[0])
    if lines:
        raise connect.Failure("\n".join(lines))


# showing


def sorted_pods(pods: list[PodUse], by: str) -> list[PodUse]:
    if by:
        return sorted(pods, key=lambda use: -getattr(use.total, by))
    return sorted(pods, key=lambda use: (use.cluster, use.namespace, use.name))


def pod_table(pods: list[PodUse], *, namespaces: bool, containers: bool, headers: bool, total: bool) -> str:
    titles = [*(["NAMESPACE"] if namespaces else []), *(["POD"] if containers else []), "NAME", "CLUSTER", *_USAGE]
    rows = [titles] if headers else []
    for use in pods:
        place = [use.namespace] if namespaces else []
        if containers:
            rows += [[*place, use.name, name, use.cluster, *amount.cells()] for name, amount in use.containers]
        else:
            rows.append([*place, use.name, use.cluster, *use.total.cells()])
    if total:
        nothing = [""] * (len(titles) - len(_USAGE))
        rows += [[*nothing, "________", "________"], [*nothing, *summed(use.total for use in pods).cells()]]
    return _table(rows)


def sorted_nodes(nodes: list[NodeUse], by: str) -> list[NodeUse]:
    """Return the nodes in order; those that nobody measured come last."""
    if by:
        return sorted(nodes, key=lambda use: (use.used is None, -getattr(use.used or Amount(), by)))
    return sorted(nodes, key=lambda use: (use.used is None, use.name, use.cluster))


def node_table(nodes: list[NodeUse], *, headers: bool) -> str:
    rows = [_NODE_COLUMNS] if headers else []
    for use in nodes:
        if use.used is None:
            rows.append([use.name, use.cluster, *["<unknown>"] * 4])
        else:
            cpu, memory = use.used.cells()
            shares = [_percent(use.used.cpu, use.has.cpu), _percent(use.used.memory, use.has.memory)]
            rows.append([use.name, use.cluster, cpu, shares[0], memory, shares[1]])
    return _table(rows)


def _percent(part: int, whole: int) -> str:
    return f"{int(part / whole * 100)}%" if whole else "<unknown>"


def _table(rows: list[list[str]]) -> str:
    """Return the lines of a table with all columns filled up, the last one too."""
    from karmada.cli.output.columns import columns

    return columns([[*row, ""] for row in rows])
