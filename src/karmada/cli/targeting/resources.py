"""What a person names on the command line: `pods`, `deploy/web svc/web`, `pods,svc -l app=web`, `-f file.yaml`.

The words become targets with the help of what the server serves; nothing is fetched yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from karmada.cli.parsing import program
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.client.discovery import Catalog, Mapping


@dataclass(frozen=True, slots=True)
class Target:
    """One resource by its name, or all of a type when `name` is empty. Cluster-scoped types have no namespace."""

    mapping: Mapping
    namespace: str
    name: str = ""


def check_words(words: Sequence[str]) -> None:
    """Failure for words that cannot be, whatever a server has."""
    if any("/" in word for word in words):
        for word in words:
            _split(word)
    else:
        for name in words[1:]:
            connect.check_name(name)


def parse_targets(catalog: Catalog, words: Sequence[str], namespace: str) -> list[Target]:
    """`TYPE[,TYPE…] [NAME…]` or `TYPE/NAME…`; Failure with kubectl's text for what cannot be."""
    if any("/" in word for word in words):
        return [_slashed(catalog, word, namespace) for word in words]
    mappings = [mapping for word in words[0].split(",") for mapping in resource_types(catalog, word)]
    names = words[1:] or [""]
    for name in names:
        connect.check_name(name)
    return [Target(mapping, _namespace(mapping, namespace), name) for mapping in mappings for name in names]


def resource_types(catalog: Catalog, word: str) -> list[Mapping]:
    """Return the type a word names, or all types of the category it names."""
    found = catalog.named(word)
    if found is not None:
        return [found]
    members = [mapping for mapping in catalog.mappings if word in mapping.categories and mapping.allows("list")]
    if not members:
        raise connect.failure(f'the server doesn\'t have a resource type "{word}"')
    return list({mapping.gvr.group_resource: mapping for mapping in reversed(members)}.values())[::-1]


def _slashed(catalog: Catalog, word: str, namespace: str) -> Target:
    kind, name = _split(word)
    [mapping, *_] = resource_types(catalog, kind)
    return Target(mapping, _namespace(mapping, namespace), name)


def _split(word: str) -> tuple[str, str]:
    kind, slash, name = word.partition("/")
    if not slash:
        raise connect.failure(
            "there is no need to specify a resource type as a separate argument when passing arguments in "
            f"resource/name form (e.g. '{program.command()} get resource/<resource_name>' instead of "
            f"'{program.command()} get resource resource/<resource_name>'"
        )
    if "/" in name:
        raise connect.failure("arguments in resource/name form may not have more than one slash")
    if not kind or not name:
        raise connect.failure("arguments in resource/name form must have a single resource and name")
    connect.check_name(name)
    return kind, name


def _namespace(mapping: Mapping, namespace: str) -> str:
    return namespace if mapping.namespaced else ""
