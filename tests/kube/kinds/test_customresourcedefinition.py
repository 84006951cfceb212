"""What a CustomResourceDefinition may say and change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karmada.kube.kinds.customresourcedefinition import (
    CLEANUP_FINALIZER,
    CUSTOM_RESOURCE_DEFINITION,
    validate,
    validate_status,
    validate_update,
)
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object

AT = "spec.versions[0]"


def make(**spec: Any) -> Obj:
    crd: Obj = kube_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com") | {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", storage=True)],
            **spec,
        },
    }
    CUSTOM_RESOURCE_DEFINITION.default(crd)
    return crd


def version(name: str, *, storage: bool = False, schema: Obj | None = None, **more: Any) -> Obj:
    shape = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema or shape}, **more}


def texts(crd: Obj, old: Obj | None = None) -> list[str]:
    return [str(e) for e in validate(crd, old)]


def test_defaults_complete_the_names_and_the_conversion() -> None:
    spec = make()["spec"]
    assert spec["names"] == {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    assert spec["conversion"] == {"strategy": "None"}


def test_a_schema_found_right_before_is_judged_anew_with_whatever_differs() -> None:
    assert texts(make()) == texts(make()) == []
    unfit = make(versions=[version("v1", storage=True, selectableFields=[{"jsonPath": ".spec.missing"}])])
    assert texts(unfit)
    assert texts(unfit) == texts(unfit), "what was refused once is refused again"
    assert texts(make()) == []


def test_the_port_of_a_webhook_defaults_to_443() -> None:
    webhook = {"clientConfig": {"service": {"name": "s", "namespace": "n"}}, "conversionReviewVersions": ["v1"]}
    crd = make(conversion={"strategy": "Webhook", "webhook": webhook})
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443
    assert texts(crd) == []


def test_a_plain_definition_is_valid() -> None:
    assert texts(make()) == []


Change = Callable[[Obj], Any]


def path(*steps: Any, value: Any) -> Change:
    def change(crd: Obj) -> None:
        place: Any = crd
        for step in steps[:-1]:
            place = place[step]
        place[steps[-1]] = value

    return change


WEBHOOK = {"clientConfig": {"url": "https://h/p"}, "conversionReviewVersions": ["v1"]}
BAD: list[tuple[Change, str]] = [
    (
        path("metadata", "name", value="x"),
        'metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group',
    ),
    (path("spec", "group", value=""), "spec.group: Required value"),
    (
        path("spec", "group", value="nodots"),
        'spec.group: Invalid value: "nodots": should be a domain with at least one dot',
    ),
    (path("spec", "scope", value=""), "spec.scope: Required value"),
    (
        path("spec", "scope", value="Galaxy"),
        'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
    ),
    (
        path("spec", "preserveUnknownFields", value=True),
        "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",  # noqa: E501
    ),
    (
        path("spec", "names", "plural", value="Widgets"),
        'spec.names.plural: Invalid value: "Widgets": a DNS-1035 label must consist of',
    ),
    (
        path("spec", "names", "kind", value="Bad Kind"),
        'spec.names.kind: Invalid value: "Bad Kind": may have mixed case, but should otherwise match: a DNS-1035 label',
    ),
    (
        path("spec", "names", "listKind", value="Widget"),
        'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
    ),
    (path("spec", "names", "shortNames", value=["W"]), 'spec.names.shortNames[0]: Invalid value: "W"'),
    (path("spec", "names", "singular", value=""), "spec.names.singular: Required value"),
    (
        path("spec", "versions", value=[version("v1"), version("v2")]),
        'spec.versions: Invalid value: ["v1","v2"]: must have exactly one version marked as storage version',
    ),
    (
        path("spec", "versions", value=[version("v1", storage=True), version("v1")]),
        'spec.versions: Invalid value: ["v1","v1"]: must contain unique version names',
    ),
    (path("spec", "versions", 0, "name", value="V1"), f'{AT}.name: Invalid value: "V1": a DNS-1035 label'),
    (
        path("spec", "versions", 0, "schema", value={}),
        f"{AT}.schema.openAPIV3Schema: Required value",
    ),
    (
        path("spec", "versions", 0, "schema", "openAPIV3Schema", value={"type": "object", "properties": {"a": {}}}),
        "spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields",  # noqa: E501
    ),
    (
        path(
            "spec",
            "versions",
            0,
            "schema",
            "openAPIV3Schema",
            value={"type": "object", "properties": {"a": {"type": "string", "default": 1}}},
        ),
        'spec.validation.openAPIV3Schema.properties[a].default: Invalid value: "integer"',
    ),
    (
        path(
            "spec",
            "versions",
            0,
            "schema",
            "openAPIV3Schema",
            value={"type": "object", "properties": {"a": {"type": "object", "default": {"u": 1}}}},
        ),
        'spec.validation.openAPIV3Schema.properties[a].default: Invalid value: {"u":1}: must not have unknown fields',
    ),
    (
        path(
            "spec",
            "versions",
            0,
            "schema",
            "openAPIV3Schema",
            value={"type": "object", "x-kubernetes-validations": [{"rule": "self.nope"}]},
        ),
        'spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule: Invalid value: {"rule":"self.nope"}: compilation failed: ERROR: <input>:1:5: undefined field \'nope\'',  # noqa: E501
    ),
    (
        path("spec", "versions", 0, "deprecationWarning", value="old"),
        f'{AT}.deprecationWarning: Invalid value: "old": can only be set for deprecated versions',
    ),
    (
        path(
            "spec",
            "versions",
            0,
            "subresources",
            value={"scale": {"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"}},
        ),
        'spec.subresources.scale.specReplicasPath: Invalid value: ".status.n": should be a json path under .spec',
    ),
    (
        path("spec", "versions", 0, "subresources", value={"scale": {"specReplicasPath": ".spec.n"}}),
        "spec.subresources.scale.statusReplicasPath: Required value",
    ),
    (
        path(
            "spec",
            "versions",
            0,
            "subresources",
            value={"scale": {"specReplicasPath": ".spec.n[0]", "statusReplicasPath": ".status.n"}},
        ),
        'spec.subresources.scale.specReplicasPath: Invalid value: ".spec.n[0]": is not a valid json path',
    ),
    (
        path(
            "spec",
            "versions",
            0,
            "additionalPrinterColumns",
            value=[{"name": "A", "type": "text", "jsonPath": ".spec.n"}],
        ),
        'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',  # noqa: E501
    ),
    (
        path("spec", "versions", 0, "additionalPrinterColumns", value=[{"name": "A", "type": "string"}]),
        "spec.additionalPrinterColumns[0].jsonPath: Required value",
    ),
    (
        path("spec", "versions", 0, "selectableFields", value=[{"jsonPath": ".spec.nope"}]),
        'spec.selectableFields[0].jsonPath: Invalid value: ".spec.nope": is an invalid path: does not refer to a valid field',  # noqa: E501
    ),
    (
        path("spec", "versions", 0, "selectableFields", value=[{"jsonPath": ".spec"}]),
        'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer',  # noqa: E501
    ),
    (
        path("spec", "versions", 0, "selectableFields", value=[{"jsonPath": ".metadata.name"}]),
        'spec.selectableFields[0].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata',
    ),
    (
        path("spec", "versions", 0, "selectableFields", value=[{"jsonPath": ".spec.n"}] * 2),
        'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.n"',
    ),
    (
        path("spec", "conversion", value={"strategy": "Magic"}),
        'spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"',
    ),
    (
        path("spec", "conversion", value={"strategy": "None", "webhook": WEBHOOK}),
        "spec.conversion.webhook: Forbidden: should not be set when strategy is not set to Webhook",
    ),
    (
        path("spec", "conversion", value={"strategy": "Webhook"}),
        "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
    ),
    (
        path(
            "spec",
            "conversion",
            value={"strategy": "Webhook", "webhook": WEBHOOK | {"conversionReviewVersions": ["v7"]}},
        ),
        'spec.conversion.conversionReviewVersions: Invalid value: ["v7"]: must include at least one of v1, v1beta1',
    ),
    (
        path(
            "spec",
            "conversion",
            value={"strategy": "Webhook", "webhook": WEBHOOK | {"clientConfig": {"caBundle": "eA=="}}},
        ),
        "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required",
    ),
    (
        path(
            "spec",
            "conversion",
            value={"strategy": "Webhook", "webhook": WEBHOOK | {"clientConfig": {"url": "http://h"}}},
        ),
        "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme",
    ),
]


@pytest.mark.parametrize(("change", "expected"), BAD)
def test_the_errors_of_a_bad_definition_are_reported(change: Change, expected: str) -> None:
    crd = make()
    change(crd)
    found = texts(crd)
    assert any(text.startswith(expected) for text in found), found


def protected(value: str | None) -> Obj:
    crd = make(group="x.k8s.io")
    crd["metadata"]["name"] = "widgets.x.k8s.io"
    if value is not None:
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": value}
    return crd


@cases(
    (None, ": Required value: protected groups must have approval annotation"),
    ("yes", ': Invalid value: "yes": protected groups must have approval annotation'),
    ("unapproved, testing", None),
    ("https://github.com/kubernetes/kubernetes/pull/1", None),
)
def test_groups_of_kubernetes_need_an_approval(value: str | None, expected: str | None) -> None:
    found = texts(protected(value))
    if expected is None:
        assert found == []
    else:
        assert found[0].startswith("metadata.annotations[api-approved.kubernetes.io]" + expected)


def test_a_group_that_only_looks_like_kubernetes_needs_none() -> None:
    crd = make(group="multicluster.x-k8s.io")
    crd["metadata"]["name"] = "widgets.multicluster.x-k8s.io"
    assert texts(crd) == []


def test_an_update_does_not_judge_an_unchanged_schema_again() -> None:
    bad = make(versions=[version("v1", storage=True, schema={"type": "object", "properties": {"a": {}}})])
    changed = copy_json(bad)
    changed["spec"]["names"]["shortNames"] = ["w"]
    assert texts(bad)
    assert texts(changed, bad) == []
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["b"] = {}
    assert len(texts(changed, bad)) == 2


def test_an_expensive_rule_of_an_unchanged_schema_stays_accepted() -> None:
    rule = {"rule": "self.all(x, self.all(y, x != y))"}
    names = {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [rule]}
    crd = make(versions=[version("v1", storage=True, schema={"type": "object", "properties": {"names": names}})])
    assert any("estimated rule cost exceeds budget" in text for text in texts(crd))
    changed = copy_json(crd)
    changed["spec"]["names"]["shortNames"] = ["w"]
    assert texts(changed, crd) == []
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Widgets."
    assert any("estimated rule cost exceeds budget" in text for text in texts(changed, crd))


def created(**spec: Any) -> Obj:
    crd = make(**spec)
    CUSTOM_RESOURCE_DEFINITION.prepare_create(crd)
    return crd


def test_a_new_definition_remembers_the_version_it_stores() -> None:
    assert created()["status"]["storedVersions"] == ["v1"]


def test_a_changed_storage_version_is_added_without_touching_the_old_object() -> None:
    old = created()
    new = copy_json(old)
    new["status"] = old["status"]
    new["spec"]["versions"] = [version("v1"), version("v2", storage=True)]
    CUSTOM_RESOURCE_DEFINITION.prepare_update(new, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert old["status"]["storedVersions"] == ["v1"]
    assert texts(new, old) == []


def test_a_version_that_may_still_be_stored_cannot_be_removed() -> None:
    crd = created()
    crd["spec"]["versions"] = [version("v2", storage=True)]
    crd["status"]["storedVersions"] = ["v1", "v2"]
    [text] = texts(crd)
    assert text.startswith(
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version'
    )


@cases(
    (["v1"], []),
    ([], ["status.storedVersions: Invalid value: []: must have at least one stored version"]),
    (
        ["v2"],
        [
            "status.storedVersions[0]",
            'status.storedVersions: Invalid value: ["v2"]: must have the storage version v1',
        ],
    ),
)
def test_the_status_must_keep_the_storage_version(stored: list[str], expected: list[str]) -> None:
    crd = created()
    crd["status"]["storedVersions"] = stored
    found = [str(e) for e in validate_status(crd, crd)]
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


def test_an_established_definition_keeps_its_identity() -> None:
    old = created()
    new = copy_json(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Gadget"
    assert validate_update(new, old) == []
    old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    assert [str(e) for e in validate_update(new, old)] == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Gadget": field is immutable',
    ]


def test_a_deletion_begins_with_a_finalizer_and_a_condition() -> None:
    crd = created()
    assert CUSTOM_RESOURCE_DEFINITION.deleting is not None
    assert CUSTOM_RESOURCE_DEFINITION.mark_deleting is not None
    assert CUSTOM_RESOURCE_DEFINITION.deleting(crd)
    crd["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    CUSTOM_RESOURCE_DEFINITION.mark_deleting(crd)
    CUSTOM_RESOURCE_DEFINITION.mark_deleting(crd)
    assert crd["metadata"]["finalizers"] == [CLEANUP_FINALIZER]
    [condition] = crd["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Terminating", "True")
    assert condition["lastTransitionTime"] == "2024-01-01T00:00:00Z"
    assert not CUSTOM_RESOURCE_DEFINITION.deleting(crd)


def test_only_the_spec_raises_the_generation() -> None:
    assert CUSTOM_RESOURCE_DEFINITION.generation is not None
    a, b = created(), created()
    b["status"]["conditions"] = [{"type": "x"}]
    assert CUSTOM_RESOURCE_DEFINITION.generation(a) == CUSTOM_RESOURCE_DEFINITION.generation(b)
    b["spec"]["scope"] = "Cluster"
    assert CUSTOM_RESOURCE_DEFINITION.generation(a) != CUSTOM_RESOURCE_DEFINITION.generation(b)
