"""`karmadactl interpret`: try out interpreter customizations before they are applied.

Scripts run locally, in the same sandbox as in the control plane. Customizations from files need no server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.output.printing import print_flags
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import read_documents, read_files
from karmada.cli.targeting.selection import NOTHING_GIVEN

if TYPE_CHECKING:
    from karmada.api.interpreter_context import Operation
    from karmada.interpreter.interpreter import Interpreter
    from karmada.interpreter.lua.layer import Declarative
    from karmada.interpreter.lua.library import Library
    from karmada.kube.objects.types import Obj

KIND, API_VERSION = "ResourceInterpreterCustomization", "config.karmada.io/v1alpha1"
_RULE = "-" * 35


@dataclass(frozen=True, slots=True)
class Customization:
    """An object, and where it is: a file, or the server when `path` is empty."""

    obj: Obj
    path: str = ""

    @property
    def name(self) -> str:
        return str((self.obj.get("metadata") or {}).get("name") or "")

    @property
    def source(self) -> str:
        return self.path or self.name


@click.command()
@click.argument("names", nargs=-1, metavar="(-f FILENAME | NAME...)")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    help="A file, directory or URL with customizations, or -; may be repeated.",
)
@click.option("-R", "--recursive", is_flag=True, help="Descend into the directories of -f.")
@click.option("--operation", default="", help="The operation to run, such as InterpretReplica.")
@click.option("--check", is_flag=True, help="Check the syntax of the scripts and run nothing.")
@click.option("--edit", is_flag=True, help="Edit the scripts in an editor.")
@click.option("--show-doc", is_flag=True, help="With --edit: explain each function in a comment.")
@click.option("--desired-file", default="", help="The object as the control plane has it.")
@click.option("--observed-file", default="", help="The object as a cluster has it.")
@click.option("--status-file", default="", help="The status items of clusters (aggregatedStatus), one document each.")
@click.option("--desired-replica", type=int, default=0, help="The number of replicas for ReviseReplica.")
@click.option("--record", is_flag=True, hidden=True, help="Accepted for compatibility.")
@print_flags
@connect.connection_flags
def interpret(names: tuple[str, ...], **flags: Any) -> None:
    """Check, run and edit customizations of the resource interpreter.

    Without a customization, an operation is run as it is built in: by an interpreter in Python that is installed here,
    or by what is known of the kind.

    \b
    Examples:
      karmadactl interpret -f customization.yaml --check
      karmadactl interpret -f customization.yaml --operation InterpretReplica --desired-file web.yaml
      karmadactl interpret -f customization.yaml --operation ReviseReplica --desired-file web.yaml --desired-replica 3
      karmadactl interpret -f customization.yaml --operation Retain --desired-file web.yaml --observed-file seen.yaml
      karmadactl interpret -f customization.yaml --operation AggregateStatus --desired-file web.yaml --status-file -
      karmadactl interpret -f customization.yaml --edit --show-doc
      karmadactl interpret --operation InterpretHealth --observed-file seen.yaml
    """
    if flags["check"] and flags["edit"]:
        raise connect.failure("you can only set one of --check and --edit options")
    if not names and not flags["filenames"] and not flags["operation"]:
        raise connect.failure(NOTHING_GIVEN)
    if names and flags["filenames"]:
        raise connect.failure(
            "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well"
        )
    if flags["edit"]:
        from karmada.cli.commands.interpret_edit import edit

        edit(load(names, flags), flags)
    elif flags["check"]:
        _check(load(names, flags))
    else:
        operation = _operation(flags["operation"])
        _execute(operation, load(names, flags), flags)


def _interpreter(customizations: list[Obj], library: Library) -> Declarative | Interpreter:
    """Return an interpreter of these customizations alone, or of everything that is built in."""
    from karmada.features import default_gates
    from karmada.interpreter.assembly import interpreter_with
    from karmada.interpreter.lua.layer import Declarative
    from karmada.kube.objects.clock import SYSTEM

    return Declarative(customizations, library=library) if customizations else interpreter_with(SYSTEM, default_gates())


def load(names: Sequence[str], flags: dict[str, Any]) -> list[Customization]:
    """Return customizations from files, or from the server by names; whatever else the files hold comes along."""
    if not names and not flags["filenames"]:
        return []
    if flags["filenames"]:
        sources = read_files(flags["filenames"], recursive=flags["recursive"])
        return [Customization(source.obj, source.name) for source in sources]
    return connect.run(_fetch(names, flags))


async def _fetch(names: Sequence[str], flags: dict[str, Any]) -> list[Customization]:
    from karmada.api.config import ResourceInterpreterCustomization

    gvr = ResourceInterpreterCustomization.gvr
    async with flags["way"].open() as session:
        return [Customization(await session.client.get(gvr, name)) for name in names]


# check


def _check(customizations: Sequence[Customization]) -> None:
    good = True
    for customization in customizations:
        click.echo(_RULE)
        click.echo(f"SOURCE: {customization.source}")
        good = _check_one(customization.obj) and good
    if not good:
        raise click.exceptions.Exit(1)


def problem_of(obj: Obj) -> str:
    """Why an object is no customization; "" when it is one."""
    if (obj.get("apiVersion"), obj.get("kind")) != (API_VERSION, KIND):
        return f"not a {KIND} of {API_VERSION}, but a {obj.get('kind')} of {obj.get('apiVersion')}"
    target = (obj.get("spec") or {}).get("target") or {}
    missing = [field for field in ("apiVersion", "kind") if not target.get(field)]
    return f"target.{missing[0]} is not set" if missing else ""


def _check_one(obj: Obj) -> bool:
    from karmada.interpreter.lua.rules import RULES, script_of
    from karmada.interpreter.lua.script import LuaScript

    problem = problem_of(obj)
    if problem:
        click.echo(f"ERROR: {problem}")
        return False
    target = obj["spec"]["target"]
    click.echo(f"TARGET: {target['apiVersion']} {target['kind']}")
    click.echo("RULERS:")
    good = True
    width = max(map(len, RULES)) + 3
    for operation in RULES:
        script = script_of(obj, operation)
        wrong = LuaScript(script).problem() if script else ""
        good = good and not wrong
        verdict = f"ERROR: {wrong}" if wrong else "PASS" if script else "UNSET"
        click.echo(f"    {operation + ':':<{width}}{verdict}")
    return good


# execute


def _operation(word: str) -> Operation:
    from karmada.interpreter.lua.rules import RULES

    if not word:
        raise connect.failure("operation is not set for executing")
    for operation in RULES:
        if operation.lower() == word.lower():
            return operation
    raise connect.failure(f"operation {word} is not supported. Use one of: {', '.join(RULES)}")


def _execute(operation: Operation, customizations: Sequence[Customization], flags: dict[str, Any]) -> None:
    from karmada.interpreter.lua.library import Library
    from karmada.interpreter.operations import RETAIN, InterpreterError
    from karmada.kube.objects.gvk import gvk_of

    for customization in customizations:
        problem = problem_of(customization.obj)
        if problem:
            raise connect.failure(f"{customization.source}: {problem}")
    desired, observed = _object(flags["desired_file"]), _object(flags["observed_file"])
    if operation == RETAIN:
        if desired is None or observed is None:
            raise connect.failure("both --desired-file and --observed-file must be set for Retain")
        obj = desired
    else:
        if (desired is None) == (observed is None):
            raise connect.failure(
                f"one of --desired-file and --observed-file must be set for {operation}, and not both"
            )
        obj = desired or observed or {}
    items = _status_items(flags["status_file"])
    library = Library(printed=lambda line: click.echo(line, err=True))
    layer = _interpreter([customization.obj for customization in customizations], library)
    try:
        if not layer.enabled(gvk_of(obj), operation):
            raise InterpreterError("rule is not enabled")
        results = connect.run(_CALLS[operation](layer, _Inputs(obj, observed or {}, items, flags["desired_replica"])))
    except InterpreterError as error:
        click.echo(f"Execute {operation} error: {error}", err=True)
        return
    _show(results, flags)


@dataclass(frozen=True, slots=True)
class _Inputs:
    obj: Obj
    observed: Obj
    items: list[Obj]
    replicas: int


def _object(path: str) -> Obj | None:
    if not path:
        return None
    found = read_files([path])
    if len(found) != 1:
        raise connect.failure(f"{path} must hold one object, and it holds {len(found)}")
    return found[0].obj


def _status_items(path: str) -> list[Obj]:
    if not path:
        return []
    items = read_documents(path)
    if not all(isinstance(item, dict) for item in items):
        raise connect.failure(f"{path}: items of aggregatedStatus must be objects")
    return items


async def _replicas(layer: Declarative | Interpreter, given: _Inputs) -> dict[str, Any]:
    replicas, requirements = await layer.get_replicas(given.obj)
    return {"replica": replicas, "requires": requirements}


async def _components(layer: Declarative | Interpreter, given: _Inputs) -> dict[str, Any]:
    return {"components": await layer.get_components(given.obj)}


async def _revised(layer: Declarative | Interpreter, given: _Inputs) -> dict[str, Any]:
    return {"revised": await layer.revise_replica(given.obj, given.replicas)}


async def _retained(layer: Declarative | Interpreter, given: _Inputs) -> dict[str, Any]:
    return {"retained": await layer.retain(given.obj, given.observed)}


async def _status(layer: Declarative | Interpreter, given: _Inputs) -> dict[str, Any]:
    return {"status": await layer.reflect_status(given.obj)}


async def _aggregated(layer: Declarative | Interpreter, given: _Inputs) -> dict[str, Any]:
    return {"aggregatedStatus": await layer.aggregate_status(given.obj, given.items)}


async def _healthy(layer: Declarative | Interpreter, given: _Inputs) -> dict[str, Any]:
    return {"healthy": await layer.interpret_health(given.obj)}


async def _dependencies(layer: Declarative | Interpreter, given: _Inputs) -> dict[str, Any]:
    return {"dependencies": await layer.get_dependencies(given.obj)}


_CALLS: dict[str, Callable[[Declarative | Interpreter, _Inputs], Any]] = {
    "InterpretReplica": _replicas,
    "InterpretComponent": _components,
    "ReviseReplica": _revised,
    "Retain": _retained,
    "InterpretStatus": _status,
    "AggregateStatus": _aggregated,
    "InterpretHealth": _healthy,
    "InterpretDependency": _dependencies,
}


def _show(results: dict[str, Any], flags: dict[str, Any]) -> None:
    for place, (name, value) in enumerate(results.items(), start=1):
        click.echo(f"---\n# [{place}/{len(results)}] {name}:")
        click.echo(_text(value, flags), nl=False)


def _text(value: Any, flags: dict[str, Any]) -> str:
    from karmada.cli.output.documents import to_yaml
    from karmada.kube.objects.go_json import to_json

    if flags["output"] not in ("", "yaml") or flags["template"]:
        if flags["output"] == "json":
            return to_json(value)
        if isinstance(value, dict):
            from karmada.cli.output.printing import printer

            missing, managed = flags["allow_missing_template_keys"], flags["show_managed_fields"]
            return printer(flags["output"], flags["template"], missing, managed)(value)
    return to_yaml(value).removesuffix("...\n")
