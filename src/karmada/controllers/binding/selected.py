"""Which bindings an override policy concerns."""

from __future__ import annotations

from collections.abc import Iterator

from karmada.api.matching import MISMATCH, selectors_priority
from karmada.controllers.templates import Templates
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of


def concerned(policy: Obj, bindings: Informer, templates: Templates) -> Iterator[Key]:
    """Bindings whose template a policy may select: those of its namespace, or all for one that has none."""
    selectors = (policy.get("spec") or {}).get("resourceSelectors") or ()
    for binding in bindings.list(policy["metadata"].get("namespace", "")):
        if not selectors or any(_selects(selector, binding["spec"]["resource"], templates) for selector in selectors):
            yield key_of(binding)


def _selects(selector: Obj, reference: Obj, templates: Templates) -> bool:
    """Labels are looked up only where nothing else says no; a template that is not known may have any."""
    obj = {
        "apiVersion": reference.get("apiVersion"),
        "kind": reference.get("kind"),
        "metadata": {"namespace": reference.get("namespace", ""), "name": reference.get("name", "")},
    }
    labels = selector.get("labelSelector")
    if labels is None or selector.get("name"):
        return selectors_priority((selector,), obj) != MISMATCH
    if selectors_priority(({**selector, "labelSelector": None},), obj) == MISMATCH:
        return False
    template = templates.light(reference)
    return template is None or selectors_priority((selector,), template) != MISMATCH
