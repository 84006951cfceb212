"""What is kept of templates."""

from __future__ import annotations

from typing import Any

from karmada.controllers.templates import changed, changed_by_user, light_of
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

GUESTBOOK = GVK("webapp.my.domain", "v1", "Guestbook")


def template(spec: Obj | None = None, status: Obj | None = None, **metadata: Any) -> Obj:
    return {
        "metadata": {"namespace": "default", "name": "a", "uid": "u", "resourceVersion": "1", **metadata},
        "spec": spec or {"size": 1},
        "status": status or {},
    }


def test_it_knows_its_kind_where_a_list_does_not_say_it() -> None:
    found = light_of(GUESTBOOK).of(template())
    assert (found["apiVersion"], found["kind"]) == ("webapp.my.domain/v1", "Guestbook")


def test_only_labels_and_claims_are_kept() -> None:
    annotations = {"propagationpolicy.karmada.io/name": "p", "note": "x"}
    found = light_of(GUESTBOOK).of(template(labels={"app": "a"}, annotations=annotations, managedFields=[{}]))
    assert found["metadata"] == {
        "namespace": "default",
        "name": "a",
        "uid": "u",
        "resourceVersion": "1",
        "labels": {"app": "a"},
        "annotations": {"propagationpolicy.karmada.io/name": "p"},
    }


def test_those_who_request_the_same_kind_share() -> None:
    assert light_of(GUESTBOOK) is light_of(GVK("webapp.my.domain", "v1", "Guestbook"))


@cases(
    (template(), False, False),
    (template(status={"ready": True}), False, False),
    (template(managedFields=[{"manager": "x"}], resourceVersion="2"), False, False),
    (template(generation=2), True, False),
    (template(spec={"size": 2}), True, True),
    (template(labels={"app": "a"}), True, True),
    (template(annotations={"note": "x"}), True, True),
    (template(labels={"propagationpolicy.karmada.io/permanent-id": "i"}), True, False),
    (template(annotations={"clusterpropagationpolicy.karmada.io/name": "p"}), True, False),
    (template(labels={"namespace.karmada.io/skip-auto-propagation": "true"}), True, True),
    (template(labels={"karmada.io/managed": "true"}), True, True),
    (template(finalizers=["x"]), True, True),
    (template(deletionTimestamp="2024-01-01T00:00:00Z"), True, True),
)
def test_changes_that_count(new: Obj, counts: bool, by_user: bool) -> None:
    light = light_of(GUESTBOOK)
    old = light.of(template())
    assert changed(old, light.of(new)) is counts
    assert changed_by_user(old, light.of(new)) is by_user


def test_the_order_of_keys_does_not_count() -> None:
    light = light_of(GUESTBOOK)
    assert not changed(light.of(template(spec={"a": 1, "b": 2})), light.of(template(spec={"b": 2, "a": 1})))
