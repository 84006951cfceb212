"""Shared by commands that write: dry run, validation, field manager, and aggregated errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.client.discovery import Mapping
    from karmada.kube.objects.types import Obj

F = TypeVar("F", bound=Callable[..., Any])
NONE, SERVER, CLIENT = "none", "server", "client"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SUFFIX = {NONE: "", SERVER: " (server dry run)", CLIENT: " (dry run)"}
_VALIDATION = {"strict": "Strict", "true": "Strict", "warn": "Warn", "ignore": "Ignore", "false": "Ignore"}


# flags


class _DryRun(click.ParamType[str]):
    name = "none|server|client"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        word = str(value)
        if word in _SUFFIX:
            return word
        if word in ("unchanged", "true"):
            click.echo("Warning: --dry-run is deprecated and can be replaced with --dry-run=client.", err=True)
            return CLIENT
        if word == "false":
            return NONE
        raise connect.failure(f'Invalid dry-run value ({word}). Must be "none", "server", or "client".')


class _Validation(click.ParamType[str]):
    """The fieldValidation parameter of the request."""

    name = "strict|warn|ignore"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        word = str(value)
        if word in _VALIDATION.values():
            return word
        if word not in _VALIDATION:
            raise connect.failure(
                f'invalid - validate option "{word}"; must be one of: strict (or true), warn, ignore (or false)'
            )
        return _VALIDATION[word]


def dry_run_flag(command: F) -> F:
    """--dry-run, which the command gets as NONE, SERVER or CLIENT."""
    return click.option(
        "--dry-run",
        is_flag=False,
        flag_value="unchanged",
        type=_DryRun(),
        default=NONE,
        show_default=True,
        help="client: print the request without sending it; server: the server processes it without storing.",
    )(command)


def manager_flag(manager: str) -> Callable[[F], F]:
    return click.option("--field-manager", default=manager, show_default=True, help="The field manager.")


def validate_flag(command: F) -> F:
    return click.option(
        "--validate",
        is_flag=False,
        flag_value="strict",
        type=_Validation(),
        default="strict",
        show_default=True,
        help="Unknown and duplicate fields: strict refuses them, warn reports them, ignore drops them.",
    )(command)


def save_config_flag(command: F) -> F:
    return click.option(
        "--save-config", is_flag=True, help="Save the configuration in an annotation for a later apply."
    )(command)


def did(word: str, dry_run: str) -> str:
    """Return the result word, with its dry-run suffix."""
    return word + _SUFFIX[dry_run]


# objects


def with_last_applied(obj: Obj, *, generated: bool = False) -> Obj:
    """Return the object with its own text in the annotation that apply compares with.

    The text of an object from a file has a map of annotations even when it is empty, that of a generated one has not.
    """
    from karmada.kube.objects.go_json import compact_json

    metadata = {**(obj.get("metadata") or {})}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    if annotations or not generated:
        metadata["annotations"] = annotations
    text = compact_json({**obj, "metadata": metadata}) + "\n"
    return {**obj, "metadata": {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}}


async def mapping_of(client: Client, obj: Obj, source: str = "") -> Mapping:
    """Return the resource of an object of a file; Failure in kubectl's words when the server has no such kind."""
    from karmada.kube.client.discovery import NoMatch
    from karmada.kube.objects.gvk import GVK

    try:
        return await client.mapper.mapping(GVK.parse(obj["apiVersion"], obj["kind"]))
    except NoMatch as error:
        metadata = obj.get("metadata") or {}
        raise connect.failure(
            f'resource mapping not found for name: "{metadata.get("name", "")}" '
            f'namespace: "{metadata.get("namespace", "")}" from "{source}": '
            f'no matches for kind "{obj["kind"]}" in version "{obj["apiVersion"]}"\nensure CRDs are installed first'
        ) from error


def placed(obj: Obj, mapping: Mapping, namespace: str, given: bool) -> Obj:
    """Return the object in its namespace; Failure when the file and --namespace disagree."""
    metadata = obj.get("metadata") or {}
    own = metadata.get("namespace", "")
    if not mapping.namespaced:
        return obj
    if own and given and own != namespace:
        raise connect.failure(
            f'the namespace from the provided object "{own}" does not match the namespace "{namespace}". '
            f"You must pass '--namespace={own}' to perform this operation."
        )
    return obj if own else {**obj, "metadata": {**metadata, "namespace": namespace}}


async def raw(client: Client, method: str, path: str, body: Obj | None = None) -> None:
    """Send a raw request and print the response body."""
    from urllib.parse import parse_qsl

    from karmada.kube.objects.go_json import compact_json

    path, _, query = path.partition("?")
    if not path.startswith("/"):
        raise connect.failure(f"--raw must be a server path that begins with /: {path}")
    answer = await client.raw(method, path, query=dict(parse_qsl(query)), body=body)
    click.echo(answer if isinstance(answer, str | bytes) else compact_json(answer))


# errors


class Failures:
    """Collects the errors of several objects; they are raised together at the end."""

    def __init__(self) -> None:
        self._errors: list[tuple[str, str]] = []
        """Each error as printed alone, and among others."""

    def __bool__(self) -> bool:
        return bool(self._errors)

    @contextmanager
    def collecting(self, doing: str = "", source: str = "") -> Iterator[None]:
        """Collect a failure of the block; `doing` and `source` describe the step and its file."""
        from karmada.kube.objects.errors import ApiError

        try:
            yield
        except ApiError as error:
            place = f'error when {doing} "{source}": ' if source else ""
            reason = f" ({error.status_reason})" if error.status_reason else ""
            among = f"Error from server{reason}: {place}{error.message}"
            invalid = error.status_reason == "Invalid"
            self._errors.append((connect.describe(error) if invalid or not source else among, among))
        except connect.Failure as error:
            self._errors.append((error.message, error.message.removeprefix("error: ")))

    def show(self) -> None:
        """Raise them as one, each once; nothing happens when there are none."""
        errors = list(dict.fromkeys(self._errors))
        if len(errors) == 1:
            raise connect.Failure(errors[0][0])
        if errors:
            raise connect.Failure("\n".join(among for _, among in errors))


def last_applied(obj: Obj) -> str:
    return str(((obj.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED) or "")
