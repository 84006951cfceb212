"""The edit loop: open a text in an editor until it is valid.

The editor is $KUBE_EDITOR or $EDITOR. An invalid text is opened again with the errors above it, as long as it changes.
The user's text is never discarded unless it was used.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

T = TypeVar("T")
_HEADER = """\
# The saved text is sent to the server. Lines that begin with a '#' are ignored, and an empty file cancels
# the edit. If the server rejects it, this file opens again with the error.
#
"""


@dataclass(frozen=True, slots=True)
class Comments:
    """How errors stand in a text: each line after `error`; lines that begin with `mark` are not part of the text."""

    mark: str = "#"
    error: str = "# "
    header: str = _HEADER

    def remove(self, text: str) -> str:
        return "".join(f"{line}\n" for line in text.splitlines() if not line.startswith(self.mark))

    def above(self, reasons: Sequence[str], *, header: bool) -> str:
        errors = "".join(f"{self.error}{line}\n" for reason in reasons for line in reason.splitlines())
        if not self.header:
            return errors
        return self.header + (f"{errors}{self.mark}\n" if errors else "") if header or errors else ""


class Rejected(Exception):
    """The edited text cannot be used."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


def editor_command() -> tuple[str, list[str]]:
    """Return the editor's name and its command line."""
    name = os.environ.get("KUBE_EDITOR") or os.environ.get("EDITOR") or "vi"
    if any(mark in name for mark in "\"'\\"):
        return name, [os.environ.get("SHELL") or "/bin/sh", "-c", f'{name} "$0"']
    return name, name.split()


def launch(path: Path) -> None:
    """Run the editor on the file."""
    import subprocess

    name, words = editor_command()
    try:
        done = subprocess.run([*words, str(path)], check=False)
    except OSError as error:
        raise connect.failure(f'unable to launch the editor "{name}"') from error
    if done.returncode != 0:
        raise connect.failure(f'there was a problem with the editor "{name}"')


class Draft:
    """A text being edited; `open` returns the edited text."""

    def __init__(
        self,
        text: str,
        *,
        suffix: str = ".yaml",
        windows_line_endings: bool = False,
        comments: Comments = Comments(),  # noqa: B008 - it is frozen
    ) -> None:
        self._comments = comments
        self._original = comments.remove(text)
        self._text = text
        self._suffix = suffix
        self._newline = "\r\n" if windows_line_endings else "\n"
        self._path: Path | None = None

    def open(self, reasons: Sequence[str] = ()) -> str | None:
        """Return the text without comments; None when the edit was cancelled, which is reported.

        `reasons` are the errors of the last text. Failure when it comes back unchanged.
        """
        before = self._comments.remove(self._text)
        edited = self._edited(reasons)
        if edited == self._original:
            click.echo("Edit cancelled, no changes made.", err=True)
            self.discard()
            return None
        if not edited.strip():
            click.echo("Edit cancelled, saved file was empty.", err=True)
            self.discard()
            return None
        self._text = edited
        if reasons and edited == before:
            self.keep()
            raise connect.failure("Edit cancelled, no valid changes were saved.")
        return edited

    def _edited(self, reasons: Sequence[str]) -> str:
        import tempfile

        self.discard()
        comments = self._comments.above(reasons, header=self._suffix != ".json")
        handle, name = tempfile.mkstemp(prefix="karmadactl-edit-", suffix=self._suffix)
        self._path = Path(name)
        with os.fdopen(handle, "w", newline=self._newline, encoding="utf-8") as file:
            file.write(comments + self._text)
        try:
            launch(self._path)
        except connect.Failure:
            self.discard()
            raise
        try:
            return self._comments.remove(self._path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            self.keep()
            raise connect.failure("what was saved is not UTF-8") from error

    def keep(self) -> None:
        """Keep the file and print its path."""
        click.echo(f'A copy of your changes has been stored to "{self._path}"', err=True)

    @property
    def path(self) -> Path | None:
        return self._path

    def discard(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None


async def edit_until_accepted(draft: Draft, accept: Callable[[str], Awaitable[T]]) -> T | None:
    """Return the result of `accept`; as long as it raises Rejected the editor opens again.

    None when the edit was cancelled. The file stays for the caller to discard or to keep.
    """
    reasons: Sequence[str] = ()
    while True:
        text = draft.open(reasons)
        if text is None:
            return None
        try:
            return await accept(text)
        except Rejected as rejected:
            reasons = rejected.reasons


async def edit_objects(
    objs: Sequence[Obj],
    *,
    output: str = "yaml",
    windows_line_endings: bool = False,
    check: Callable[[list[Obj]], None] = lambda _objs: None,
) -> list[Obj] | None:
    """Return the edited objects, which `check` may reject; None when nothing was changed."""

    async def accept(text: str) -> list[Obj]:
        found = parsed(text)
        check(found)
        return found

    draft = Draft(as_text(objs, output), suffix=f".{output}", windows_line_endings=windows_line_endings)
    found = await edit_until_accepted(draft, accept)
    if found is not None:
        draft.discard()
    return found


def parsed(text: str) -> list[Obj]:
    """Return the objects of an edited text; Rejected when it is malformed."""
    from karmada.cli.targeting.files import parse_objects

    try:
        return parse_objects(text.encode(), "the edited file")
    except connect.Failure as error:
        raise Rejected(connect.reason(error)) from error


def as_text(objs: Sequence[Obj], output: str) -> str:
    """Return one object, or a List of several, in YAML or JSON."""
    from karmada.cli.output.documents import to_yaml
    from karmada.kube.objects.go_json import to_json

    shown = objs[0] if len(objs) == 1 else {"apiVersion": "v1", "items": list(objs), "kind": "List", "metadata": {}}
    return to_json(shown) if output == "json" else to_yaml(shown)
