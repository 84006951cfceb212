"""`karmadactl interpret --edit`: edit all scripts of a customization as one Lua file.

Comments with an @ hold the name, the target and the start of each operation's script. The edited text is parsed until
it is valid and then written back: to its file, to the server, or to standard output if it came from there or a URL.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.changing.editor import Comments, Draft, Rejected, edit_until_accepted
from karmada.cli.commands.interpret import API_VERSION, KIND, Customization
from karmada.cli.output.printing import qualified_name
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import STDIN

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

_HEADER = (
    "-- The scripts of a customization. Each begins after its @rule line; a rule without a script is not",
    "-- set. Keep the lines with an @. Saving without a change cancels the edit.",
)
_DOCS: dict[str, tuple[str, ...]] = {
    "Retain": (
        "-- Retain returns desiredObj with the values that are kept from observedObj, the object in the cluster.",
        "-- function Retain(desiredObj, observedObj) ... return desiredObj end",
    ),
    "InterpretReplica": (
        "-- GetReplicas returns the number of replicas and the requirements of one replica (nil if none).",
        "-- function GetReplicas(desiredObj) ... return replicas, requirements end",
    ),
    "InterpretComponent": (
        "-- GetComponents returns the pod groups of the object: a list of {name, replicas, replicaRequirements}.",
        "-- function GetComponents(desiredObj) ... return components end",
    ),
    "ReviseReplica": (
        "-- ReviseReplica returns the object with the given number of replicas.",
        "-- function ReviseReplica(desiredObj, desiredReplica) ... return desiredObj end",
    ),
    "InterpretStatus": (
        "-- ReflectStatus returns the status of the object in a cluster, as the control plane stores it.",
        "-- function ReflectStatus(observedObj) ... return status end",
    ),
    "AggregateStatus": (
        "-- AggregateStatus returns the object with one status made of those of all clusters. Each item has",
        "-- clusterName, status, applied, appliedMessage and health.",
        "-- function AggregateStatus(desiredObj, statusItems) ... return desiredObj end",
    ),
    "InterpretHealth": (
        "-- InterpretHealth returns whether the object in a cluster is healthy.",
        "-- function InterpretHealth(observedObj) ... return true end",
    ),
    "InterpretDependency": (
        "-- GetDependencies returns the objects that must be propagated with it: {apiVersion, kind, namespace, name}.",
        "-- function GetDependencies(desiredObj) ... return dependencies end",
    ),
}
_OURS = frozenset((*_HEADER, *(line for lines in _DOCS.values() for line in lines)))
_ERROR = "-- error: "
_FIELDS = ("name", "apiVersion", "kind")


def edit(customizations: list[Customization], flags: dict[str, Any]) -> None:
    customization = _only(customizations, flags)
    edited = connect.run(_edited(to_lua(customization.obj, docs=flags["show_doc"]), customization))
    if edited is not None:
        _save(customization, edited, flags)


def _only(customizations: list[Customization], flags: dict[str, Any]) -> Customization:
    if not customizations and len(flags["filenames"]) == 1:
        return Customization(
            {"apiVersion": API_VERSION, "kind": KIND, "metadata": {}, "spec": {}}, flags["filenames"][0]
        )
    if len(customizations) != 1:
        raise connect.failure(f"only one customization can be edited, and there are {len(customizations)}")
    obj = customizations[0].obj
    if (obj.get("apiVersion"), obj.get("kind")) != (API_VERSION, KIND):
        raise connect.failure(f"{customizations[0].source}: only a {KIND} of {API_VERSION} can be edited")
    return customizations[0]


# objects and texts


def to_lua(obj: Obj, *, docs: bool = False) -> str:
    from karmada.interpreter.lua.rules import RULES, script_of

    target = (obj.get("spec") or {}).get("target") or {}
    values = ((obj.get("metadata") or {}).get("name"), target.get("apiVersion"), target.get("kind"))
    lines = [*_HEADER, ""]
    lines += [f"---@{field}: {value or ''}".rstrip() for field, value in zip(_FIELDS, values, strict=True)]
    for operation in RULES:
        lines += ["", f"---@rule: {operation}", *(_DOCS[operation] if docs else ())]
        script = script_of(obj, operation)
        if script:
            lines += script.rstrip("\n").splitlines()
    return "\n".join(lines) + "\n"


def from_lua(text: str, before: Obj) -> Obj:
    """Return the customization as the text has it; what the text says nothing of stays. Raises Rejected."""
    from karmada.interpreter.lua.rules import RULES

    fields: dict[str, str] = {}
    scripts: dict[str, list[str]] = {}
    rule = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("---@"):
            field, _, value = line.removeprefix("---@").partition(":")
            if field != "rule":
                fields[field.strip()] = value.strip()
                continue
            rule = _rule(value.strip(), number, scripts)
        elif rule:
            if line not in _OURS and not line.startswith(_ERROR):
                scripts[rule].append(line)
        elif line.strip() and not line.startswith("--"):
            raise Rejected(f"line {number}: text before the first ---@rule line: {line.strip()}")
    missing = [field for field in _FIELDS if not fields.get(field)]
    if missing:
        raise Rejected(f"---@{missing[0]} is not set")
    texts = {RULES[name]: "\n".join(lines).strip("\n") for name, lines in scripts.items()}  # type: ignore[index]
    spec = {
        **(before.get("spec") or {}),
        "customizations": {name: {"luaScript": script + "\n"} for name, script in texts.items() if script.strip()},
        "target": {"apiVersion": fields["apiVersion"], "kind": fields["kind"]},
    }
    return {**before, "metadata": {**(before.get("metadata") or {}), "name": fields["name"]}, "spec": spec}


def _rule(name: str, number: int, scripts: dict[str, list[str]]) -> str:
    from karmada.interpreter.lua.rules import RULES

    if name not in RULES:
        raise Rejected(f"line {number}: there is no rule {name}; use one of: {', '.join(RULES)}")
    if name in scripts:
        raise Rejected(f"line {number}: rule {name} is set twice")
    scripts[name] = []
    return name


# editing


async def _edited(text: str, customization: Customization) -> Obj | None:
    """Return the edited customization; None when the edit was cancelled."""

    async def accept(edited: str) -> Obj:
        try:
            obj = from_lua(edited, customization.obj)
            _judge(obj, customization)
        except Rejected as error:
            click.echo(f"error: {error}", err=True)
            raise
        return obj

    draft = Draft(text, suffix=".lua", comments=Comments(mark=_ERROR, error=_ERROR, header=""))
    found = await edit_until_accepted(draft, accept)
    if found is not None:
        draft.discard()
    return found


def _judge(obj: Obj, customization: Customization) -> None:
    from karmada.interpreter.lua.rules import RULES, script_of
    from karmada.interpreter.lua.script import LuaScript

    for operation in RULES:
        script = script_of(obj, operation)
        problem = LuaScript(script).problem() if script else ""
        if problem:
            raise Rejected(f"{operation}: {problem}")
    if not customization.path and (obj["metadata"]["name"], obj["spec"]["target"]) != (
        customization.name,
        customization.obj["spec"]["target"],
    ):
        raise Rejected("name, apiVersion and kind of a customization on the server cannot be changed")


# saving


def _save(customization: Customization, obj: Obj, flags: dict[str, Any]) -> None:
    path = customization.path
    if not path:
        connect.run(_send(customization, obj, flags))
    elif path == STDIN or path == "-" or path.startswith(("http://", "https://")):
        click.echo(_written(obj, is_json=False), nl=False)
        return
    else:
        file = Path(path)
        is_json = file.read_text().lstrip().startswith("{")
        _replace(file, _written(obj, is_json=is_json))
    click.echo(f"{qualified_name(obj)} edited")


def _written(obj: Obj, *, is_json: bool) -> str:
    from karmada.cli.output.documents import to_yaml
    from karmada.kube.objects.go_json import to_json

    return to_json(obj) if is_json else to_yaml(obj)


def _replace(path: Path, text: str) -> None:
    """At once: whoever reads the file sees the old text or the new one."""
    import os
    import tempfile

    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(name, target.stat().st_mode & 0o777)
        os.replace(name, target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise connect.failure(f"cannot write {path}: {error.strerror}") from error


async def _send(customization: Customization, obj: Obj, flags: dict[str, Any]) -> None:
    from karmada.api.config import ResourceInterpreterCustomization
    from karmada.kube.patch.mergepatch import create_merge_patch

    patch = create_merge_patch(customization.obj, obj)
    async with flags["way"].open() as session:
        await session.client.patch(
            ResourceInterpreterCustomization.gvr, customization.name, "", patch, field_manager="karmadactl-interpret"
        )
