"""Roles and bindings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from karmada.cli.output.describing.sheet import Sheet, shown
from karmada.cli.output.describing.words import at, head

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj


class Rule(NamedTuple):
    """A rule taken apart: one resource or one URL, by one name or none."""

    verbs: tuple[str, ...]
    group: str | None
    resource: str | None
    name: str | None
    url: str | None

    def order(self) -> str:
        """Rules are shown in the order of this text."""
        parts = [
            ("Verbs", self.verbs),
            ("APIGroups", _listed(self.group)),
            ("Resources", _listed(self.resource)),
            ("ResourceNames", _listed(self.name)),
            ("NonResourceURLs", _listed(self.url)),
        ]
        return ",".join(f"{title}:{shown(values)}" for title, values in parts)


def _listed(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


async def role(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj, namespaced=False)
    sheet.row(0, "PolicyRule:")
    sheet.heads(1, "Resources", "Non-Resource URLs", "Resource Names", "Verbs")
    for rule in sorted(joined_rules(obj.get("rules") or []), key=Rule.order):
        resource = _full_name(rule)
        sheet.row(1, resource, shown(_listed(rule.url)), shown(_listed(rule.name)), shown(rule.verbs))


def _full_name(rule: Rule) -> str:
    if rule.resource is None:
        return ""
    if not rule.group:
        return rule.resource
    resource, slash, subresource = rule.resource.partition("/")
    return f"{resource}.{rule.group}{slash}{subresource}"


def joined_rules(rules: list[Obj]) -> list[Rule]:
    """Taken apart, and of the same resource put together again; URLs stay apart."""
    verbs: dict[tuple[str | None, str | None, str | None], list[str]] = {}
    apart: list[Rule] = []
    for rule in rules:
        for one in _apart(rule):
            if one.url is not None:
                apart.append(one)
            else:
                verbs.setdefault((one.group, one.resource, one.name), []).extend(one.verbs)
    together = [Rule(tuple(dict.fromkeys(found)), *place, None) for place, found in verbs.items()]
    return [*together, *apart]


def _apart(rule: Obj) -> Iterator[Rule]:
    names = rule.get("resourceNames") or [None]
    for group, resource in product(rule.get("apiGroups") or (), rule.get("resources") or ()):
        for verb, name in product(rule.get("verbs") or (), names):
            yield Rule((verb,), group, resource, name, None)
    for verb, url in product(rule.get("verbs") or (), rule.get("nonResourceURLs") or ()):
        yield Rule((verb,), None, None, None, url)


async def role_binding(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj, namespaced=False)
    sheet.row(0, "Role:")
    sheet.field("Kind", at(obj, "roleRef.kind"), 1)
    sheet.field("Name", at(obj, "roleRef.name"), 1)
    sheet.row(0, "Subjects:")
    sheet.heads(1, "Kind", "Name", "Namespace")
    for subject in obj.get("subjects") or ():
        sheet.row(1, subject.get("kind") or "", subject.get("name") or "", subject.get("namespace") or "")
