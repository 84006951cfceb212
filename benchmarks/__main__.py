"""`python -m benchmarks`: measure, list, profile, compare, and put the figures into the documentation."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click

from benchmarks import ablation, documentation, members, plots, profiling, report, way
from benchmarks.machine import require_linux
from benchmarks.measuring import Failed
from benchmarks.registry import BY_NAME_ONLY, UnknownScenario, selected
from benchmarks.results import Results
from benchmarks.run import Options, Run
from benchmarks.scenario import Foreign, Scenario
from benchmarks.terminal import Terminal

F = TypeVar("F", bound=Callable[..., Any])
BUILD = Path("build/benchmarks")
DOCS = Path("docs")
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
PROFILED = "propagation.deployments"
PROFILED_SIZE = 3_000


class Default(click.Group):
    """What is not the name of a command is an argument of `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Default, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def main() -> None:
    """Measure how fast it is, what it costs, and how that grows. Without a command: run.

    \b
    Example:
      python -m benchmarks --quick
      python -m benchmarks propagation server --repeats 5
      python -m benchmarks propagation --control-plane karmada.config --members a.config --members b.config
    """
    require_linux()


# options


def _pids(_ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> dict[str, int]:
    found = {}
    for pair in value:
        name, _, pid = pair.partition("=")
        if not name or not pid.isdigit():
            raise click.BadParameter(f'"{pair}" is not of the form NAME=PID', param=param)
        found[name] = int(pid)
    return found


def _numbers(_ctx: click.Context, param: click.Parameter, value: str) -> list[int]:
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if not all(part.isdigit() and int(part) for part in parts):
        raise click.BadParameter("sizes are numbers greater than 0", param=param)
    return [int(part) for part in parts]


_RUN_OPTIONS = (
    click.option("--quick", is_flag=True, help="Small sizes, each once: does it still run, and about how fast?"),
    click.option("--repeats", type=click.IntRange(min=1), help="How often each size is measured.  [default: up to 3]"),
    click.option(
        "--growth/--no-growth",
        default=None,
        help="Three and ten times the size as well, and how cost grows.  [default: unless --quick]",
    ),
    click.option(
        "--sizes", default="", callback=_numbers, help="Others than the scenario's, with commas between them."
    ),
    click.option("--timeout", "seconds", default=900.0, help="Seconds after which a measurement has failed."),
    click.option("--folder", type=FOLDER, default=BUILD, help="Where everything is stored while it runs."),
)
_FOREIGN_OPTIONS = (
    click.option("--control-plane", default="", help="Kubeconfig of a control plane that runs already: measure it."),
    click.option("--members", multiple=True, help="KUBECONFIG[:context] of one of its members; repeat for each."),
    click.option("--join", is_flag=True, help="Join members that are not joined yet."),
    click.option(
        "--pid", "pids", multiple=True, callback=_pids, help="NAME=PID of one of its processes; repeat for each."
    ),
)


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    def added(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return added


def _options(quick: bool, growth: bool | None, **others: Any) -> Options:
    return Options(quick=quick, growth=not quick if growth is None else growth, **others)


def _foreign(control_plane: str, members: Sequence[str], join: bool, pids: dict[str, int]) -> Foreign | None:
    if control_plane:
        return Foreign(control_plane, members, join, pids)
    if members or join or pids:
        raise click.UsageError("--members, --join and --pid say something about a --control-plane")
    return None


def _chosen(names: Sequence[str], foreign: Foreign | None = None) -> list[Scenario]:
    try:
        found = selected(names)
    except UnknownScenario as error:
        raise click.UsageError(str(error)) from None
    if foreign is None:
        return found
    if len(foreign.members) < 2:
        raise click.UsageError("a --control-plane needs at least two --members")
    refused = [one.name for one in found if not one.foreign]
    if names and refused:
        raise click.UsageError(f"cannot be measured on another control plane: {', '.join(refused)}")
    return [one for one in found if one.foreign]


# commands


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@with_options(*_RUN_OPTIONS)
@click.option("--json", "target", type=FILE, help="Where the results go.  [default: results.json in --folder]")
@with_options(*_FOREIGN_OPTIONS)
def run(
    names: tuple[str, ...],
    target: Path | None,
    control_plane: str,
    members: tuple[str, ...],
    join: bool,
    pids: dict[str, int],
    **others: Any,
) -> None:
    """Measure scenarios (all, or those named) and write what was found."""
    foreign = _foreign(control_plane, members, join, pids)
    options = _options(**others, foreign=foreign)
    file = target or options.folder / _file_name(options)
    results = _measured(_chosen(names, foreign), options, file)
    for name, drawing in plots.drawings(results).items():
        file.with_name(name).write_text(drawing)
    click.echo(f"Results: {file}")
    if any(result.errors for result in results.scenarios):
        sys.exit(1)


def _file_name(options: Options) -> str:
    return "control-plane.json" if options.foreign else "quick.json" if options.quick else "results.json"


def _measured(scenarios: Sequence[Scenario], options: Options, file: Path) -> Results:
    return Run(scenarios, options, Terminal()).all(lambda results: results.write(file))


@main.command("list")
def list_scenarios() -> None:
    """Show what can be measured."""
    known = [*selected([]), *selected(sorted(BY_NAME_ONLY))]
    width = max(len(one.name) for one in known)
    for one in known:
        sizes = ", ".join(f"{size:,}" for size in one.sizes.of(quick=False, growth=True))
        anywhere = "; on any control plane" if one.foreign else ""
        only = "; by name only" if one.name in BY_NAME_ONLY else ""
        click.echo(f"{one.name:{width}}  {one.title} ({sizes} {one.counted}{anywhere}{only})")


@main.command()
@click.argument("name", default=PROFILED)
@click.option("--size", default=PROFILED_SIZE, help="How much of it.")
@click.option("--native", is_flag=True, help="C functions as well; slower, and it slows what it looks at.")
@click.option("--folder", type=FOLDER, default=BUILD, help="Where the samples and the drawing go.")
def profile(name: str, size: int, native: bool, folder: Path) -> None:
    """Show where a control plane and its agents spend their time in a scenario, by package and by function."""
    chosen = _chosen([PROFILED if name == "propagation" else name])[0]
    try:
        found = profiling.profiled(chosen, size, folder, native=native)
    except Failed as error:
        raise click.ClickException(str(error)) from error
    for one in found:
        click.echo(report.profile_table(one.profile))
        click.echo(f"Samples: {one.folded}\nDrawing: {one.drawing}")


@main.command("way")
@click.option("--functions", "most", default=0, help="Show the functions that are called most, so many of them.")
def count_way(most: int) -> None:
    """Count the files, functions and calls that one Deployment for two members passes through."""
    import uvloop

    with TemporaryDirectory() as folder:
        click.echo("\n".join(way.described(uvloop.run(way.measured(Path(folder))), most)))


@main.command("ablation")
@click.argument("names", nargs=-1, metavar="[MECHANISM]...", type=click.Choice([*ablation.MECHANISMS]))
@click.option("--pairs", default=8, type=click.IntRange(min=1), help="Pairs of bursts for each mechanism.")
@click.option("--size", default=60, type=click.IntRange(min=1), help="Deployments in a burst.")
def ablate(names: Sequence[str], pairs: int, size: int) -> None:
    """Show what each mechanism that exists for speed gives: CPU for a Work with it and without it, in turns."""
    import uvloop

    with TemporaryDirectory() as folder:
        trials = ablation.trials(Path(folder), names or [*ablation.MECHANISMS], pairs=pairs, size=size)
        uvloop.run(ablation.show(trials, click.echo))


@main.command()
@click.argument("one", type=FILE)
@click.argument("other", type=FILE)
def compare(one: Path, other: Path) -> None:
    """Show the figures of two runs side by side, and by how much ONE is better."""
    click.echo(report.compared(Results.read(one), Results.read(other)))


@main.command()
@click.option("--from", "source", type=FILE, help="Existing results; otherwise everything is measured.")
@click.option("--docs", type=FOLDER, default=DOCS, help="The folder with the page.")
@click.option("--folder", type=FOLDER, default=BUILD, help="Where everything is stored while it runs.")
def docs(source: Path | None, docs: Path, folder: Path) -> None:
    """Update the table and the plot of docs/performance.md."""
    if source is not None:
        results = Results.read(source)
    else:
        results = _measured(_chosen([]), Options(folder=folder), folder / "results.json")
    for path in documentation.refresh(docs, results):
        click.echo(path)


@main.command("members")
@click.argument("folder", type=FOLDER)
@click.argument("count", type=click.IntRange(min=1))
def serve_members(folder: Path, count: int) -> None:
    """Run COUNT bare members until interrupted, for a control plane that is not ours to join."""
    import uvloop

    uvloop.run(members.serve(folder, count))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what was started is stopped
    main(prog_name="python -m benchmarks")
