"""-o: how objects are written, with kubectl's formats and texts.

`printer` turns an output format into a function from an object to the text to be written, complete with its line end
where there is one. A printer remembers what it has written: between two YAML documents stands a line of dashes, and
columns have one header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from karmada.cli.targeting import connect
from karmada.kube.objects.go_values import go_value
from karmada.kube.objects.quoting import go_quote
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.kube.objects.jsonpath_template import Template

Printer = Callable[[Obj], str]
F = TypeVar("F", bound=Callable[..., Any])

FORMATS = (
    "custom-columns", "custom-columns-file", "go-template", "go-template-file", "json", "jsonpath", "jsonpath-as-json",
    "jsonpath-file", "kyaml", "name", "template", "templatefile", "yaml",
)  # fmt: skip
FLAGS = ("output", "template", "allow_missing_template_keys", "show_managed_fields")
"""The names of the parameters that `print_flags` adds."""
_NO_TEMPLATE = "template format specified but no template given"


def print_flags(command: F, formats: tuple[str, ...] = FORMATS) -> F:
    """--output, --template, --allow-missing-template-keys and --show-managed-fields."""
    for option in (
        click.option("--show-managed-fields", is_flag=True, help="Keep managedFields in JSON and YAML."),
        click.option(
            "--allow-missing-template-keys",
            is_flag=True,
            default=True,
            help="Do not fail when a template names a field that the object lacks.",
        ),
        click.option("--template", default="", help="The template or its file, for -o go-template and the like."),
        click.option("-o", "--output", default="", help=f"Output format: {', '.join(formats)}."),
    ):
        command = option(command)
    return command


def printer(
    output: str,
    template: str = "",
    allow_missing: bool = True,
    managed_fields: bool = False,
    did: str = "created",
    *,
    no_headers: bool = False,
    formats: tuple[str, ...] = FORMATS,
) -> Printer:
    """Failure for a format there is not, or a template that makes no sense; `did` is what "" says was done."""
    name, equals, argument = output.partition("=")
    if not output:
        name, argument = ("go-template", template) if template else ("", "")
    if name == "":
        return lambda obj: _names(obj, f" {did}" if did else "")
    if name == "name" and not equals:
        return lambda obj: _names(obj, "")
    if name in _WHOLE and not equals:
        return _whole(name, managed_fields)
    if name in _TEMPLATED:
        make, from_file = _TEMPLATED[name]
        text = _template_text(argument or template, from_file)
        return make(text, allow_missing, managed_fields)
    if name in ("custom-columns", "custom-columns-file"):
        return _custom_columns(name, argument or template, no_headers)
    raise connect.failure(
        f'unable to match a printer suitable for the output format "{output}", allowed formats are: {",".join(formats)}'
    )


class Results:
    """Prints objects with the result of an operation, in the format of `print_flags`.

    The format is checked first: nothing is done whose result cannot be printed.
    """

    def __init__(self, flags: Mapping[str, Any]) -> None:
        self.formatted = bool(flags["output"] or flags["template"])
        self._print = printer(
            flags["output"], flags["template"], flags["allow_missing_template_keys"], flags["show_managed_fields"]
        )

    def show(self, obj: Obj, did: str) -> None:
        click.echo(self._print(obj) if self.formatted else _names(obj, f" {did}"), nl=False)


# names


def _names(obj: Obj, done: str) -> str:
    items = obj.get("items")
    if isinstance(items, list) and str(obj.get("kind", "")).endswith("List"):
        return "".join(_names(item, done) for item in items)
    return f"{qualified_name(obj)}{done}\n"


def qualified_name(obj: Obj) -> str:
    """Return the name with its resource: `deployment.apps/web`."""
    group, slash, _ = str(obj.get("apiVersion", "")).rpartition("/")
    kind = str(obj.get("kind", "")).lower() or "<unknown>"
    name = (obj.get("metadata") or {}).get("name", "")
    return f"{kind}.{group}/{name}" if slash else f"{kind}/{name}"


# whole objects


def shown(obj: Obj, managed_fields: bool) -> Obj:
    """Without managedFields, also in items of lists, unless they are wanted."""
    if managed_fields:
        return obj
    result = obj
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        result = {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
    if isinstance(obj.get("items"), list):
        result = {**result, "items": [shown(item, False) if isinstance(item, dict) else item for item in obj["items"]]}
    return result


def _json(obj: Obj) -> str:
    from karmada.kube.objects.go_json import to_json

    return to_json(obj)


def _yaml(obj: Obj) -> str:
    from karmada.cli.output.documents import to_yaml

    return to_yaml(obj)


def _kyaml(obj: Obj) -> str:
    from karmada.cli.output.documents import to_kyaml

    return to_kyaml(obj)


_WHOLE: dict[str, Printer] = {"json": _json, "yaml": _yaml, "kyaml": _kyaml}


def _whole(name: str, managed_fields: bool) -> Printer:
    write = _WHOLE[name]
    count = 0

    def one(obj: Obj) -> str:
        nonlocal count
        count += 1
        separator = "---\n" if count > 1 and name == "yaml" else ""
        return separator + write(shown(obj, managed_fields))

    return one


# templates


def _template_text(given: str, from_file: bool) -> str:
    if not given:
        raise connect.failure(_NO_TEMPLATE)
    return _read("template", given) if from_file else given


def _read(what: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise connect.failure(f"error reading --{what} {path}, open {path}: {reason}") from error
    except UnicodeDecodeError as error:
        raise connect.failure(f"error reading --{what} {path}, it is not UTF-8") from error


def _jsonpath(text: str, allow_missing: bool, managed_fields: bool) -> Printer:
    template = _parsed(text)
    return lambda obj: _executed(template, template.render, shown(obj, managed_fields), allow_missing)


def _jsonpath_as_json(text: str, allow_missing: bool, managed_fields: bool) -> Printer:
    template = _parsed(text)
    return lambda obj: _executed(template, template.as_json, shown(obj, managed_fields), allow_missing)


def _parsed(text: str) -> Template:
    from karmada.kube.objects.jsonpath import JSONPathError
    from karmada.kube.objects.jsonpath_template import parse

    try:
        return parse(text)
    except JSONPathError as error:
        raise connect.failure(f"error parsing jsonpath {text}, {error}") from error


def _executed(template: Template, render: Callable[..., str], obj: Obj, allow_missing: bool) -> str:
    from karmada.kube.objects.jsonpath import JSONPathError

    try:
        return render(obj, allow_missing=allow_missing)
    except JSONPathError as error:
        quoted = go_quote(template.text)
        raise connect.failure(f"error executing jsonpath {quoted}: Error executing template: {error}") from error


def _go_template(text: str, allow_missing: bool, managed_fields: bool) -> Printer:
    from karmada.cli.output.gotemplate import TemplateError, parse

    try:
        template = parse(text)
    except TemplateError as error:
        raise connect.failure(f"error parsing template {text}, {error}") from error

    def one(obj: Obj) -> str:
        try:
            return template.render(shown(obj, managed_fields), allow_missing=allow_missing)
        except TemplateError as error:
            raise connect.failure(f"error executing template {go_quote(text)}: {error}") from error

    return one


_TEMPLATED: dict[str, tuple[Callable[[str, bool, bool], Printer], bool]] = {
    "jsonpath": (_jsonpath, False),
    "jsonpath-file": (_jsonpath, True),
    "jsonpath-as-json": (_jsonpath_as_json, False),
    "go-template": (_go_template, False),
    "template": (_go_template, False),
    "go-template-file": (_go_template, True),
    "templatefile": (_go_template, True),
}


# columns


def _custom_columns(name: str, argument: str, no_headers: bool) -> Printer:
    from karmada.cli.output.columns import columns

    if not argument:
        raise connect.failure(f"{name} format specified but no custom columns given")
    specs = _columns_of_file(argument) if name.endswith("-file") else _columns_of(argument)
    paths = [(header, _column(path)) for header, path in specs]
    pending = not no_headers

    def many(obj: Obj) -> str:
        nonlocal pending
        items = obj.get("items")
        listed = items if isinstance(items, list) and str(obj.get("kind", "")).endswith("List") else [obj]
        rows = [[_cell(path, item) for _, path in paths] for item in listed]
        if pending:
            rows.insert(0, [header for header, _ in paths])
            pending = False
        return columns(rows)

    return many


def _columns_of(text: str) -> list[tuple[str, str]]:
    found = []
    for part in text.split(","):
        header, colon, path = part.partition(":")
        if not colon:
            raise connect.failure(f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
        found.append((header, path))
    return found


def _columns_of_file(path: str) -> list[tuple[str, str]]:
    lines = _read("template", path).splitlines()
    if len(lines) < 2:
        raise connect.failure(
            "invalid format: expected a line of headers and a line of paths, found " + str(len(lines))
        )
    headers, paths = lines[0].split(), lines[1].split()
    if len(headers) != len(paths):
        raise connect.failure(f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't match")
    return list(zip(headers, paths, strict=True))


def _column(path: str) -> Template:
    from karmada.kube.objects.jsonpath import JSONPathError
    from karmada.kube.objects.jsonpath_template import parse, relaxed

    try:
        return parse(relaxed(path))
    except JSONPathError as error:
        raise connect.failure(str(error)) from error


def _cell(path: Template, obj: Obj) -> str:
    from karmada.kube.objects.jsonpath import JSONPathError

    try:
        values = path.find(obj)
    except JSONPathError as error:
        raise connect.failure(str(error)) from error
    return ",".join(go_value(value) if value is not None else "<none>" for value in values) or "<none>"
