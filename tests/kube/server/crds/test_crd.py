"""From a definition to resources, and to the status that shows whether it is served."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import InternalError
from karmada.kube.objects.gvk import GVK, GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.crds.compile import (
    ScalePaths,
    crd_resources,
    established_status,
    is_served,
    is_terminating,
    name_conflicts,
    terminating_status,
)
from karmada.kube.server.handlers.versions import same
from tests.support.cases import cases

NOW = 1_700_000_000.0
STAMP = "2023-11-14T22:13:20Z"


def version(name: str, *, storage: bool = False, served: bool = True, **more: Any) -> Obj:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer", "minimum": 0},
                    "color": {"type": "string", "default": "red"},
                    "on": {"type": "boolean"},
                },
            },
            "status": {
                "type": "object",
                "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
            },
        },
    }
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def make(*versions: Obj, plural: str = "widgets", kind: str = "Widget", generation: int = 1, **spec: Any) -> Obj:
    names = {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": kind + "List"}
    return {
        "metadata": {"name": f"{plural}.example.com", "generation": generation},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names | spec.pop("names", {}),
            "versions": list(versions) or [version("v1", storage=True)],
            "conversion": {"strategy": "None"},
            **spec,
        },
    }


def only(crd: Obj) -> Resource:
    [resource] = crd_resources(crd)
    return resource


def widget(api_version: str = "example.com/v1", **spec: Any) -> Obj:
    return {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def test_a_definition_becomes_a_resource() -> None:
    columns = [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}]
    resource = only(
        make(
            version("v1", storage=True, additionalPrinterColumns=columns, subresources={"status": {}}),
            names={"shortNames": ["w"], "categories": ["all"]},
        )
    )
    assert resource.gvk == resource.storage == GVK("example.com", "v1", "Widget")
    assert (resource.plural, resource.singular, resource.list_kind) == ("widgets", "widget", "WidgetList")
    assert (resource.short_names, resource.categories, resource.namespaced) == (("w",), ("all",), True)
    assert resource.storage_resource == GroupResource("example.com", "widgets")
    assert resource.columns == tuple(columns)
    assert resource.has_status
    assert resource.custom
    assert resource.from_storage is None
    assert resource.to_storage is None
    assert not resource.strategy.unconditional_update
    assert resource.strategy.status_only
    assert resource.raw_schema is not None


def test_accepted_names_win_over_wanted_ones() -> None:
    crd = make(names={"shortNames": ["taken"]})
    crd["status"] = {"acceptedNames": {"plural": "widgets", "kind": "Widget", "singular": "widget"}}
    assert only(crd).short_names == ()


def test_a_version_that_is_not_served_makes_no_resource() -> None:
    resources = crd_resources(make(version("v1", served=False), version("v2", storage=True)))
    assert [resource.gvk.version for resource in resources] == ["v2"]


def test_the_strategy_prunes_drops_nulls_and_defaults() -> None:
    obj = widget(replicas=None, extra=1)
    only(make()).strategy.default(obj)
    assert obj["spec"] == {"color": "red"}


def test_the_strategy_validates_and_forgives_what_did_not_change() -> None:
    strategy = only(make()).strategy
    bad = widget(replicas=-1)
    assert [e.field for e in strategy.validate(bad)] == ["spec.replicas"]
    changed = widget(replicas=-1, color="blue")
    assert strategy.validate_ratcheting is not None
    assert strategy.validate_ratcheting(changed, bad) == []
    assert [e.field for e in strategy.validate_ratcheting(widget(replicas=-2), bad)] == ["spec.replicas"]
    assert [e.field for e in strategy.validate_status({**bad, "status": {"replicas": "x"}}, bad)] == ["status.replicas"]


@cases(
    ({"status": {}}, {"spec": {"replicas": 1}}, True),
    ({"status": {}}, {"status": {"replicas": 1}}, False),
    ({"status": {}}, {"metadata": {"name": "w", "labels": {"a": "b"}}}, False),
    ({}, {"status": {"replicas": 1}}, True),
    ({}, {"metadata": {"name": "w", "labels": {"a": "b"}}}, False),
)
def test_the_generation_follows_the_data(subresources: Obj, change: Obj, raises: bool) -> None:
    generation = only(make(version("v1", storage=True, subresources=subresources))).strategy.generation
    assert generation is not None
    before = widget()
    assert (generation(before) != generation({**before, **change})) is raises


def test_selectable_fields_select() -> None:
    fields = only(
        make(version("v1", storage=True, selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.on"}]))
    ).strategy.fields
    assert fields.keys() == {"spec.color", "spec.on"}
    assert fields["spec.color"](widget(color="blue")) == "blue"
    assert fields["spec.color"](widget()) == ""
    assert fields["spec.on"](widget(on=True)) == "true"


def test_other_versions_are_renamed_on_the_way_in_and_out() -> None:
    first, second = crd_resources(make(version("v1"), version("v2", storage=True)))
    assert first.to_storage is not None
    assert first.from_storage is not None
    assert second.to_storage is None
    given = widget("example.com/v1", color="x")
    stored = first.to_storage(given)
    assert stored["apiVersion"] == "example.com/v2"
    assert given["apiVersion"] == "example.com/v1"
    assert first.from_storage(stored) == given
    assert second.from_storage is not None
    assert second.from_storage(stored) is stored


@pytest.mark.parametrize(
    ("stored", "generation", "converted"),
    [(["v2"], 1, False), (["v1", "v2"], 1, True), ([], 1, True), (["v2"], 2, True)],
)
@pytest.mark.parametrize("strategy", ["None", "Webhook"])
def test_what_was_only_ever_stored_in_the_version_requested_is_served_as_it_is(
    strategy: str, stored: list[str], generation: int, converted: bool
) -> None:
    async def convert(objects: list[Obj], _version: str) -> list[Obj]:
        return objects

    crd = make(version("v1"), version("v2", storage=True), generation=generation)
    crd["spec"]["conversion"] = {"strategy": strategy}
    crd["status"] = {"storedVersions": stored}
    first, second = crd_resources(crd, convert)
    assert not same(first)
    assert same(second) is not converted


def test_an_object_stored_in_an_older_storage_version_reads_in_the_present_one() -> None:
    [resource] = crd_resources(make(version("v1", served=False), version("v2", storage=True)))
    assert resource.from_storage is not None
    assert resource.from_storage(widget("example.com/v1", color="x")) == widget("example.com/v2", color="x")


def test_a_changed_schema_applies_to_what_was_stored_before() -> None:
    resource = only(make(generation=2))
    stored = widget(gone=1)
    assert resource.from_storage is not None
    assert resource.from_storage(stored)["spec"] == {"color": "red"}
    assert stored["spec"] == {"gone": 1}


def test_the_storage_version_decides_what_is_kept_and_the_version_requested_what_is_shown() -> None:
    def fields(**properties: Any) -> Obj:
        spec = {"type": "object", "properties": properties}
        return {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}

    text = {"type": "string"}
    crd = make(
        version("v1", **fields(a=text, early={"type": "string", "default": "x"})),
        version("v2", storage=True, **fields(a=text, late={"type": "string", "default": "y"})),
    )
    first, second = crd_resources(crd)
    made = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": "1"}}
    first.strategy.default(made)
    assert made["spec"] == {"a": "1", "early": "x"}
    assert first.to_storage is not None
    assert first.from_storage is not None
    assert second.from_storage is not None
    stored = first.to_storage(made)
    assert (stored["apiVersion"], stored["spec"]) == ("example.com/v2", {"a": "1", "late": "y"})
    assert second.from_storage(stored) is stored
    shown = first.from_storage(stored)
    assert (shown["apiVersion"], shown["spec"]) == ("example.com/v1", {"a": "1"})


async def test_conversion_by_webhook_is_handed_through() -> None:
    async def convert(objects: list[Obj], api_version: str) -> list[Obj]:
        return [{**obj, "apiVersion": api_version} for obj in objects]

    crd = make(version("v1"), version("v2", storage=True), conversion={"strategy": "Webhook", "webhook": {}})
    first, second = crd_resources(crd, convert)
    assert first.convert is convert
    assert second.convert is convert
    assert second.to_storage is None
    with pytest.raises(ValueError, match="converts by webhook"):
        crd_resources(crd)


def test_a_deprecated_version_warns_and_names_the_best_newer_one() -> None:
    plain = only(make(version("v1", storage=True, deprecated=True)))
    assert plain.deprecation == "example.com/v1 Widget is deprecated"
    own = only(make(version("v1", storage=True, deprecated=True, deprecationWarning="use v2")))
    assert own.deprecation == "use v2"
    more = [version("v2beta1"), version("v2"), version("v1alpha1"), version("v3", deprecated=True)]
    first, *others = crd_resources(make(version("v1", storage=True, deprecated=True), *more))
    assert first.deprecation == "example.com/v1 Widget is deprecated; use example.com/v2 Widget"
    assert [other.deprecation for other in others] == ["", "", "", "example.com/v3 Widget is deprecated"]


def test_a_finalizer_without_a_path_warns_once() -> None:
    warnings = only(make()).strategy.warnings
    obj = widget()
    obj["metadata"]["finalizers"] = ["mine", "a.b/c", "orphan"]
    [text] = warnings(obj, None)
    assert text.startswith('metadata.finalizers: "mine": prefer a domain-qualified finalizer name')
    assert warnings(obj, obj) == []


SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def test_scale_reads_by_path() -> None:
    resource = only(make(version("v1", storage=True, subresources={"scale": SCALE})))
    assert resource.subresources["scale"].kind == GVK("autoscaling", "v1", "Scale")
    obj = widget(replicas=3) | {"status": {"replicas": 2, "selector": "app=x"}}
    obj["metadata"] = {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "5", "labels": {"a": "b"}}
    assert resource.strategy.scale is not None
    assert resource.strategy.scale.get(obj) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "5"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=x"},
    }


def test_scale_writes_by_path() -> None:
    paths = ScalePaths(".spec.deep.size", ".status.size")
    obj: Obj = {"metadata": {}}
    paths.set(obj, 4)
    assert obj["spec"] == {"deep": {"size": 4}}
    assert paths.spec_fields == ("spec", "deep", "size")


def test_scale_without_replicas_is_an_error_to_read_and_zero_to_write() -> None:
    paths = ScalePaths.of(SCALE)
    with pytest.raises(InternalError) as caught:
        paths.get(widget())
    assert 'the spec replicas field ".spec.replicas" does not exist' in caught.value.message
    assert paths.view(widget())["spec"] == {"replicas": 0}


@cases(widget(replicas="three"), widget(replicas=1) | {"status": {"selector": 5}})
def test_scale_of_the_wrong_type_is_an_error(obj: Obj) -> None:
    with pytest.raises(InternalError, match="accessor error"):
        ScalePaths.of(SCALE).get(obj)


def accepted(crd: Obj) -> Obj:
    return {**crd, "status": established_status(crd, [], NOW)}


def condition(status: Obj, kind: str) -> Obj:
    [found] = [c for c in status["conditions"] if c["type"] == kind]
    return found


def test_a_definition_without_conflicts_is_established_at_once() -> None:
    crd = make(names={"shortNames": ["w"], "categories": ["all"]})
    status = established_status(crd, [], NOW)
    assert status["acceptedNames"] == crd["spec"]["names"]
    assert status["storedVersions"] == ["v1"]
    assert status["conditions"] == [
        {
            "type": "NamesAccepted",
            "status": "True",
            "reason": "NoConflicts",
            "message": "no conflicts found",
            "lastTransitionTime": STAMP,
        },
        {
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
            "lastTransitionTime": STAMP,
        },
    ]
    assert is_served({**crd, "status": status})


def test_an_established_definition_keeps_its_status() -> None:
    crd = accepted(make())
    assert established_status(crd, [crd], NOW + 500) == crd["status"]


@cases(
    ({"plural": "gadgets", "kind": "X"}, "PluralConflict", '"gadgets" is already in use'),
    ({"singular": "gadget"}, "SingularConflict", '"gadget" is already in use'),
    ({"shortNames": ["g"]}, "ShortNamesConflict", '"g" is already in use'),
    (
        {"shortNames": ["ok", "g", "gadgets"]},
        "ShortNamesConflict",
        '["g" is already in use, "gadgets" is already in use]',
    ),
    ({"kind": "Gadget"}, "KindConflict", '"Gadget" is already in use'),
    ({"listKind": "GadgetList"}, "ListKindConflict", '"GadgetList" is already in use'),
)
def test_a_name_in_use_is_not_accepted(names: Obj, reason: str, message: str) -> None:
    other = accepted(make(plural="gadgets", kind="Gadget", names={"shortNames": ["g"]}))
    crd = make(names=names)
    status = established_status(crd, [other, crd], NOW)
    refused = condition(status, "NamesAccepted")
    assert (refused["status"], refused["reason"], refused["message"]) == ("False", reason, message)
    pending = condition(status, "Established")
    assert (pending["status"], pending["reason"], pending["message"]) == (
        "False",
        "NotAccepted",
        "not all names are accepted",
    )
    assert not is_served({**crd, "status": status})


def test_names_in_another_group_do_not_conflict() -> None:
    other = accepted(make())
    other["spec"]["group"] = "other.com"
    other["metadata"]["name"] = "widgets.other.com"
    assert name_conflicts(make(), [other])[1]["status"] == "True"


def test_a_conflict_after_establishment_keeps_the_old_names_and_the_service() -> None:
    crd = accepted(make(names={"shortNames": ["w"]}))
    other = accepted(make(plural="gadgets", kind="Gadget", names={"shortNames": ["g"]}))
    changed = copy_json(crd)
    changed["spec"]["names"]["shortNames"] = ["g"]
    status = established_status(changed, [other], NOW + 5)
    assert status["acceptedNames"]["shortNames"] == ["w"]
    assert condition(status, "NamesAccepted")["status"] == "False"
    assert condition(status, "NamesAccepted")["lastTransitionTime"] == "2023-11-14T22:13:25Z"
    assert condition(status, "Established")["status"] == "True"
    assert condition(status, "Established")["lastTransitionTime"] == STAMP
    assert is_served({**changed, "status": status})


def test_a_freed_name_is_accepted() -> None:
    other = accepted(make(plural="gadgets", kind="Gadget", names={"shortNames": ["g"]}))
    crd = make(names={"shortNames": ["g"]})
    refused = {**crd, "status": established_status(crd, [other], NOW)}
    status = established_status(refused, [], NOW + 1)
    assert status["acceptedNames"]["shortNames"] == ["g"]
    assert [c["status"] for c in status["conditions"]] == ["True", "True"]


def test_names_that_are_no_longer_wanted_are_given_up() -> None:
    crd = accepted(make(names={"shortNames": ["w"], "categories": ["all"]}))
    crd["spec"]["names"] = {k: v for k, v in crd["spec"]["names"].items() if k not in ("shortNames", "categories")}
    assert established_status(crd, [], NOW)["acceptedNames"].keys() == {"plural", "kind", "singular", "listKind"}


@cases(
    ("https://example.com/approval", "True", "ApprovedAnnotation"),
    ("unapproved, testing", "False", "UnapprovedAnnotation"),
)
def test_a_group_of_kubernetes_shows_its_approval(annotation: str, status: str, reason: str) -> None:
    crd = make()
    crd["spec"]["group"] = "x.k8s.io"
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
    shown = established_status(crd, [], NOW)["conditions"]
    assert [c["type"] for c in shown] == ["NamesAccepted", "Established", "KubernetesAPIApprovalPolicyConformant"]
    assert (shown[2]["status"], shown[2]["reason"]) == (status, reason)


def test_other_conditions_stay() -> None:
    crd = accepted(make())
    crd["status"] = terminating_status(crd, "InstanceDeletionInProgress", "CustomResource deletion is in progress", NOW)
    assert is_terminating(crd)
    again = established_status(crd, [], NOW)
    assert [c["type"] for c in again["conditions"]] == ["NamesAccepted", "Established", "Terminating"]
    done = terminating_status(
        {**crd, "status": again}, "InstanceDeletionCompleted", "removed all instances", NOW, done=True
    )
    assert condition(done, "Terminating")["status"] == "False"
