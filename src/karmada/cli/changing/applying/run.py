"""Apply the objects of files, one after another, and report each result.

A failure does not stop the others; all failures are reported at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from karmada.cli.changing import writing
from karmada.cli.changing.applying.client_side import ClientSide
from karmada.cli.changing.applying.item import Item
from karmada.cli.changing.applying.server_side import ServerSide
from karmada.cli.output.printing import Printer, printer
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import Source
from karmada.cli.targeting.session import Session
from karmada.kube.objects.types import Obj

FORMATS = (
    "go-template", "go-template-file", "json", "jsonpath", "jsonpath-as-json", "jsonpath-file", "kyaml", "name",
    "template", "templatefile", "yaml",
)  # fmt: skip


class Reporter:
    """Prints one line per object; with -o json and the like, all objects at the end."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self._flags = flags
        self._printers: dict[str, Printer] = {}
        self._whole = flags["output"] not in ("", "name") or bool(flags["template"])
        self._objects: list[Obj] = []
        self._printer("")

    def report(self, obj: Obj, word: str) -> None:
        if self._whole:
            self._objects.append(obj)
        else:
            click.echo(self._printer(word)(obj), nl=False)

    def pruned(self, obj: Obj) -> None:
        click.echo(self._printer("pruned")(obj), nl=False)

    def finish(self) -> None:
        if not self._objects:
            return
        listed = {"apiVersion": "v1", "items": self._objects, "kind": "List", "metadata": {}}
        click.echo(self._printer("")(self._objects[0] if len(self._objects) == 1 else listed), nl=False)

    def _printer(self, word: str) -> Printer:
        if word not in self._printers:
            flags = self._flags
            self._printers[word] = printer(
                flags["output"],
                flags["template"],
                flags["allow_missing_template_keys"],
                flags["show_managed_fields"],
                writing.did(word, flags["dry_run"]),
                formats=FORMATS,
            )
        return self._printers[word]


async def apply_sources(sources: Sequence[Source], flags: dict[str, Any]) -> None:
    reporter = Reporter(flags)
    failures = writing.Failures()
    async with flags["way"].open(flags["namespace"]) as session:
        if flags["prune"]:
            from karmada.cli.changing.applying.prune import check_allowlist

            check_allowlist(flags["prune_allowlist"])
        items = await _items(session, _selected(sources, flags["selector"]), failures)
        if not items and not failures:
            raise connect.failure("no objects passed to apply")
        if flags["all_clusters"] or flags["clusters"]:
            from karmada.cli.changing.applying.policies import with_policies

            items = await with_policies(session, items, flags["clusters"])
        way = ServerSide(session, flags) if flags["server_side"] else ClientSide(session, flags)
        applied: list[Obj] = []
        for item in items:
            with failures.collecting():
                if "generateName" in item.obj["metadata"] and not item.name:
                    raise connect.failure(
                        f"from {item.obj['metadata']['generateName']}: cannot use generate name with apply"
                    )
                done = await way.apply(item, failures)
                if done is not None:
                    applied.append(done.obj)
                    reporter.report(done.obj, done.word)
        failures.show()
        reporter.finish()
        if flags["prune"]:
            from karmada.cli.changing.applying.prune import prune

            await prune(session, flags, items, applied, reporter.pruned, failures)
    failures.show()


def _selected(sources: Sequence[Source], selector: str) -> list[Source]:
    if not selector:
        return list(sources)
    from karmada.kube.objects.selectors import parse_labels

    try:
        wanted = parse_labels(selector)
    except ValueError as error:
        raise connect.failure(f'the provided selector "{selector}" is not valid: {error}') from error
    return [source for source in sources if wanted.matches((source.obj.get("metadata") or {}).get("labels") or {})]


async def _items(session: Session, sources: Sequence[Source], failures: writing.Failures) -> list[Item]:
    items = []
    for source in sources:
        with failures.collecting():
            mapping = await writing.mapping_of(session.client, source.obj, source.name)
            obj = writing.placed(source.obj, mapping, session.namespace, session.namespace_given)
            items.append(Item({**obj, "metadata": obj.get("metadata") or {}}, mapping, source.name))
    return items
