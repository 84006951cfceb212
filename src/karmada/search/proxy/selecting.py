"""Which objects a list or watch of the proxy selects: labels, and the fields that a kind has for selectors.

Members evaluate the selectors of live lists themselves. What comes from caches is matched here, by the same fields: a
watch of the pods of one node gets just these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.selectors import FieldSelector
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.options import ListOptions

_NAMES = ("metadata.name", "metadata.namespace")
Matches = Callable[[Doc], bool]


def check_fields(resource: Resource, fields: FieldSelector | None) -> None:
    """BadRequest for a field by which objects of this kind cannot be selected."""
    known = _known(resource)
    for requirement in fields.requirements if fields is not None else ():
        if requirement.path in _NAMES or requirement.path in known:
            continue
        if known:
            raise BadRequest(f"field label not supported: {requirement.path}")
        raise BadRequest(
            f'"{requirement.path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )


def matching(resource: Resource, options: ListOptions) -> Matches | None:
    """Return whether an object is selected; None: all are."""
    labels, fields = options.labels, options.fields
    if fields is None or fields.everything:
        return None if labels is None else lambda entry: labels.matches(entry.labels)
    known = _known(resource)

    def matches(entry: Doc) -> bool:
        if labels is not None and not labels.matches(entry.labels):
            return False
        return fields.matches(lambda path: _value(entry, path, known))

    return matches


def _known(resource: Resource) -> Mapping[str, Callable[[Obj], str]]:
    """Kinds outside of core/v1 can be selected by name and namespace only."""
    return resource.strategy.fields if resource.gvk.group_version == ("", "v1") else {}


def _value(entry: Doc, path: str, known: Mapping[str, Callable[[Obj], str]]) -> str:
    if path == "metadata.name":
        return entry.name
    return entry.namespace if path == "metadata.namespace" else known[path](entry.object())
