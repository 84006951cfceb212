"""What `label` and `annotate` share: KEY=VALUE and KEY- on the command line, applied to a map in metadata.

The two commands differ in words and in a few checks, which a `Sort` holds. An object is read, changed here, and what
changed is sent as a merge patch, so that nothing else of it can be touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.changing import writing
from karmada.cli.output.printing import Results, print_flags
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import Source, file_flags, read_files
from karmada.cli.targeting.selection import Chosen, Selection, choose

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj


@dataclass(frozen=True, slots=True)
class Sort:
    """Labels or annotations."""

    word: str
    place: str
    """Where they are in metadata."""
    both: Callable[[Sequence[str]], str]
    """The error for keys that are both set and removed."""
    refused: Callable[[Sequence[str]], str]
    """The error for values that exist already."""
    check: Callable[[str, str], None]
    """Failure for a KEY=VALUE word with an invalid value."""
    outcome: Callable[[Obj, Obj, bool], str]
    """The result word for an object, from its old and new state and --overwrite."""
    missing: str = ""
    """The message for a removed key that does not exist."""


@dataclass(frozen=True, slots=True)
class Changes:
    words: tuple[str, ...]
    """The resources."""
    set: Mapping[str, str]
    remove: tuple[str, ...]


def parse_changes(sort: Sort, words: Sequence[str]) -> Changes:
    """Return the words before the first change, which are resources; Failure in kubectl's words."""
    resources: list[str] = []
    wanted: dict[str, str] = {}
    removed: list[str] = []
    changing = False
    for word in words:
        if "=" not in word and not word.endswith("-"):
            if changing:
                raise connect.failure(f"all resources must be specified before {sort.word} changes: {word}")
            resources.append(word)
            continue
        changing = True
        key, equals, value = word.partition("=")
        if not equals:
            removed.append(word[:-1])
            continue
        if not key:
            raise connect.failure(f"unknown {sort.word} spec: {word}")
        sort.check(word, value)
        wanted[key] = value
    both = [key for key in removed if key in wanted]
    if both:
        raise connect.failure(sort.both(both))
    return Changes(tuple(resources), wanted, tuple(removed))


def changed(sort: Sort, obj: Obj, changes: Changes, *, overwrite: bool, resource_version: str = "") -> Obj:
    """Return the changed object; Failure when a value exists and --overwrite is not given."""
    metadata = obj.get("metadata") or {}
    values = dict(metadata.get(sort.place) or {})
    if not overwrite:
        there = [
            f"'{key}' already has a value ({values[key]})"
            for key, value in changes.set.items()
            if key in values and values[key] != value
        ]
        if there:
            raise connect.failure(sort.refused(there))
    values.update(changes.set)
    for key in changes.remove:
        if key not in values and sort.missing:
            click.echo(sort.missing.format(key=key))
        values.pop(key, None)
    new = {**metadata, sort.place: values}
    if not values and sort.place not in metadata:
        del new[sort.place]
    if resource_version:
        new["resourceVersion"] = resource_version
    return {**obj, "metadata": new}


# the commands


def change_flags(command: Any) -> Any:
    for flags in (
        connect.namespace_flag,
        connect.connection_flags,
        print_flags,
        writing.dry_run_flag,
        click.option("-l", "--selector", default="", help="Only resources with these labels."),
        click.option("--resource-version", default="", help="Only if the resource has this resourceVersion."),
        click.option("--overwrite", is_flag=True, help="Replace existing values."),
        click.option("--local", is_flag=True, help="Change the objects in the files, without a server."),
        click.option("--list", "list_", is_flag=True, help="Also print all values."),
        click.option("--field-selector", default="", help="Only resources that match this field selector."),
        click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces."),
        click.option("--all", "all_", is_flag=True, help="All resources of the type in the namespace."),
        file_flags,
    ):
        command = flags(command)
    return click.argument("words", nargs=-1, metavar="(-f FILENAME | TYPE NAME) [KEY=VALUE | KEY-]...")(command)


def change(sort: Sort, words: Sequence[str], flags: dict[str, Any]) -> None:
    """Run `label` and `annotate`: change metadata of the named objects."""
    changes = parse_changes(sort, words)
    _check(sort, changes, flags)
    sources = read_files(flags["filenames"], flags["kustomize"], flags["recursive"])
    if flags["local"]:
        _Change(sort, changes, flags).local(sources)
    else:
        connect.run(_Change(sort, changes, flags).run(sources))


def _check(sort: Sort, changes: Changes, flags: dict[str, Any]) -> None:
    files = bool(flags["filenames"] or flags["kustomize"])
    if flags["all_"] and flags["selector"]:
        raise connect.failure("cannot set --all and --selector at the same time")
    if flags["all_"] and flags["field_selector"]:
        raise connect.failure("cannot set --all and --field-selector at the same time")
    if not flags["local"] and not changes.words and not files:
        raise connect.failure("one or more resources must be specified as <resource> <name> or <resource>/<name>")
    if flags["local"] and (changes.words or not files):
        raise connect.failure("can only use local files by -f pod.yaml or --filename=pod.json when --local=true is set")
    if not changes.set and not changes.remove and not flags["list_"]:
        raise connect.failure(f"at least one {sort.word} update is required")


class _Change:
    def __init__(self, sort: Sort, changes: Changes, flags: dict[str, Any]) -> None:
        self._sort, self._changes, self._flags = sort, changes, flags
        self._failures = writing.Failures()
        self._dry_run = writing.CLIENT if flags["list_"] else flags["dry_run"]
        self._results = Results(flags)

    def local(self, sources: Sequence[Source]) -> None:
        for source in sources:
            with self._failures.collecting():
                new = self._changed(source.obj)
                self._show(source.obj, new, alone=len(sources) == 1)
        self._failures.show()

    async def run(self, sources: Sequence[Source]) -> None:

        flags = self._flags
        selection = Selection(flags["all_"], flags["all_namespaces"], flags["selector"], flags["field_selector"])
        async with flags["way"].open(flags["namespace"]) as session:
            chosen = await choose(session, self._changes.words, sources, selection, self._failures)
            if flags["resource_version"] and len(chosen) > 1:
                raise connect.failure("--resource-version may only be used with a single resource")
            alone = not selection and len(chosen) == 1
            for one in chosen:
                with self._failures.collecting():
                    new = self._changed(one.obj)
                    shown = new if self._dry_run == writing.CLIENT else await self._send(session, one, new)
                    self._show(one.obj, shown, alone=alone)
        self._failures.show()

    def _changed(self, obj: Obj) -> Obj:
        return changed(
            self._sort,
            obj,
            self._changes,
            overwrite=self._flags["overwrite"],
            resource_version=self._flags["resource_version"],
        )

    async def _send(self, session: Session, one: Chosen, new: Obj) -> Obj:
        from karmada.kube.patch.mergepatch import create_merge_patch

        patch = create_merge_patch(one.obj, new)
        if not patch:
            return one.obj
        return await session.client.patch(
            one.mapping.gvr,
            one.name,
            one.namespace,
            patch,
            type="merge",
            dry_run=self._dry_run == writing.SERVER,
            field_manager=self._flags["field_manager"],
        )

    def _show(self, old: Obj, new: Obj, *, alone: bool) -> None:
        flags = self._flags
        if flags["list_"]:
            self._list(new, alone)
            return
        self._results.show(new, writing.did(self._sort.outcome(old, new, flags["overwrite"]), flags["dry_run"]))

    def _list(self, obj: Obj, alone: bool) -> None:
        metadata = obj.get("metadata") or {}
        if not alone:
            group = obj["apiVersion"].rpartition("/")[0]
            click.echo(f"Listing {self._sort.place} for {obj['kind']}.{group}/{metadata.get('name', '')}:")
        for key, value in sorted((metadata.get(self._sort.place) or {}).items()):
            click.echo(f"{'' if alone else ' '}{key}={value}")
