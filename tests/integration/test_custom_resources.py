"""Custom resources over the wire: defaults, validation, CEL, subresources, versions, and the end of their CRD."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.samples import (
    CRDS,
    WIDGETS,
    YAML,
    apply,
    crd,
    install,
    ok,
    patch,
    quiet_revision,
    refused,
    revision,
    widget,
)
from tests.support.eventually import eventually
from tests.support.wire import Http

PATH = f"{WIDGETS}/w"


@pytest.fixture
async def widgets(http: Http) -> Http:
    await install(http, crd())
    return http


async def test_a_custom_resource_gets_its_defaults_and_loses_its_status(widgets: Http) -> None:
    created = ok(await widgets("POST", WIDGETS, widget(status={"phase": "x"})), 201)
    assert created["spec"] == {"size": 1, "colour": "red"}
    assert "status" not in created
    assert (created["metadata"]["generation"], created["apiVersion"]) == (1, "example.io/v1")
    nulled = ok(await widgets("POST", WIDGETS, widget("n", {"size": 1, "colour": None, "code": None})), 201)
    assert nulled["spec"] == {"size": 1, "colour": "red"}


FORBIDDEN: list[tuple[Any, str]] = [
    ({}, "spec.size: Required value"),
    ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
    ({"size": 0}, "spec.size in body should be greater than or equal to 1"),
    ({"size": 1, "colour": "green"}, 'spec.colour: Unsupported value: "green": supported values: "red", "blue"'),
    ({"size": 1, "code": "A"}, "spec.code: Invalid value: \"A\": spec.code in body should match '^[a-z]+$'"),
    ({"size": 1, "code": "abcdef"}, "spec.code: Too long: may not be more than 5 bytes"),
    ({"size": 1, "tags": ["a", "b", "c"]}, "spec.tags: Too many: 3: must have at most 2 items"),
    ({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}, 'spec.parts[1]: Duplicate value: {"name":"a"}'),
    ({"size": 1, "replicas": 11}, "spec: Invalid value: too many replicas"),
]


async def test_what_the_schema_forbids_is_invalid(widgets: Http) -> None:
    before = await quiet_revision(widgets)
    for spec, text in FORBIDDEN:
        status = refused(await widgets("POST", WIDGETS, widget(spec=spec)), 422, "Invalid", text)
        assert status["message"].startswith('Widget.example.io "w" is invalid: ')
        assert status["details"]["kind"] == "Widget"
    assert await revision(widgets) == before


async def test_structural_errors_keep_rules_from_being_checked(widgets: Http) -> None:
    refused(
        await widgets("POST", WIDGETS, widget(spec={"size": "x", "replicas": 100})),
        422,
        "Invalid",
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation",
    )


async def test_transition_rules_apply_to_updates_only(widgets: Http) -> None:
    ok(await widgets("POST", WIDGETS, widget(spec={"size": 1, "fixed": "a"})), 201)
    ok(await patch(widgets, PATH, {"spec": {"size": 2}}))
    refused(await patch(widgets, PATH, {"spec": {"fixed": "b"}}), 422, "Invalid", "fixed may not change")


async def test_a_put_needs_a_version_and_creates_nothing(widgets: Http) -> None:
    refused(await widgets("PUT", PATH, widget()), 404, "NotFound", 'widgets.example.io "w" not found')
    created = ok(await widgets("POST", WIDGETS, widget()), 201)
    refused(
        await widgets("PUT", PATH, widget(spec={"size": 2})),
        422,
        "Invalid",
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
    )
    updated = ok(await widgets("PUT", PATH, {**created, "spec": {"size": 2}}))
    assert (updated["metadata"]["generation"], updated["spec"]) == (2, {"size": 2, "colour": "red"})


async def test_only_status_goes_through_the_status_endpoint(widgets: Http) -> None:
    created = ok(await widgets("POST", WIDGETS, widget()), 201)
    body = {**created, "spec": {"size": 9}, "status": {"phase": "Ready"}}
    body["metadata"] = {**created["metadata"], "labels": {"a": "b"}, "annotations": {"c": "d"}}
    updated = ok(await widgets("PUT", f"{PATH}/status", body))
    assert (updated["spec"], updated["status"]) == (created["spec"], {"phase": "Ready"})
    assert not {"labels", "annotations"} & updated["metadata"].keys()
    assert updated["metadata"]["generation"] == 1
    main = ok(await patch(widgets, PATH, {"status": {"phase": "Lost"}, "spec": {"size": 3}}))
    assert (main["status"], main["spec"]["size"]) == ({"phase": "Ready"}, 3)
    applied = ok(await apply(widgets, f"{PATH}/status", widget(spec={}, status={"selector": "a=b"}), "ctl"))
    assert applied["status"] == {"phase": "Ready", "selector": "a=b"}
    refused(await patch(widgets, f"{PATH}/status", {"status": {"phase": 7}}), 422, "Invalid", "status.phase")


async def test_without_the_subresource_status_is_ordinary_data(http: Http) -> None:
    await install(http, crd(subresources=False))
    created = ok(await http("POST", WIDGETS, widget(status={"phase": "x"})), 201)
    assert created["status"] == {"phase": "x"}
    changed = ok(await patch(http, PATH, {"status": {"phase": "y"}}))
    assert (changed["status"], changed["metadata"]["generation"]) == ({"phase": "y"}, 2)
    refused(await patch(http, f"{PATH}/status", {}), 404, "NotFound")
    refused(await http("GET", f"{PATH}/scale"), 404, "NotFound")


async def test_a_custom_resource_is_scaled_by_its_paths(widgets: Http) -> None:
    ok(await widgets("POST", WIDGETS, widget(spec={"size": 9})), 201)
    status = refused(await widgets("GET", f"{PATH}/scale"), 500, "InternalError")
    assert 'the spec replicas field ".spec.replicas" does not exist' in status["message"]
    scaled = ok(await patch(widgets, f"{PATH}/scale", {"spec": {"replicas": 5}}))
    assert scaled["spec"] == {"replicas": 5}
    live = ok(await widgets("GET", PATH))
    assert (live["spec"]["replicas"], live["metadata"]["generation"]) == (5, 2)
    ok(await patch(widgets, f"{PATH}/status", {"status": {"replicas": 3, "selector": "a=b"}}))
    scale = ok(await widgets("GET", f"{PATH}/scale"))
    assert scale["status"] == {"replicas": 3, "selector": "a=b"}
    ok(await widgets("PUT", f"{PATH}/scale", {**scale, "spec": {"replicas": 6}}))
    refused(await widgets("PUT", f"{PATH}/scale", {**scale, "spec": {"replicas": 7}}), 409, "Conflict")
    refused(
        await patch(widgets, f"{PATH}/scale", {"spec": {"replicas": -1}}), 422, "Invalid", "greater than or equal to 0"
    )
    refused(await patch(widgets, f"{PATH}/scale", {"spec": {"replicas": 1000}}), 422, "Invalid", "too many replicas")


async def test_what_was_wrong_before_may_stay(widgets: Http) -> None:
    ok(await widgets("POST", WIDGETS, widget(spec={"size": 1, "code": "abc"})), 201)
    definition = ok(await widgets("GET", f"{CRDS}/widgets.example.io"))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["code"]["maxLength"] = 2
    ok(await widgets("PUT", f"{CRDS}/widgets.example.io", definition))

    async def stricter() -> bool:
        answer = await widgets("POST", f"{WIDGETS}?dryRun=All", widget("x", {"size": 1, "code": "abc"}))
        return answer.code == 422

    await eventually(stricter)
    ok(await patch(widgets, PATH, {"spec": {"size": 2}}))
    refused(await patch(widgets, PATH, {"spec": {"code": "abd"}}), 422, "Invalid", "spec.code: Too long")


async def test_a_bare_finalizer_is_warned_of(widgets: Http) -> None:
    body = widget()
    body["metadata"]["finalizers"] = ["bare"]
    answer = await widgets("POST", WIDGETS, body)
    ok(answer, 201)
    [warning] = answer.warnings
    assert "prefer a domain-qualified finalizer name including a path (/)" in warning


async def test_yaml_is_fine_and_list_items_have_their_type(widgets: Http) -> None:
    text = b"apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 2}\n"
    ok(await widgets("POST", WIDGETS, text, content_type=YAML), 201)
    listed = ok(await widgets("GET", WIDGETS))
    assert listed["kind"] == "WidgetList"
    assert listed["items"][0]["kind"] == "Widget"


async def test_other_verbs_without_a_namespace_are_not_found(widgets: Http) -> None:
    answer = await widgets("POST", "/apis/example.io/v1/widgets", widget())
    assert (answer.code, answer.body) == (404, b"404 page not found\n")


async def test_all_versions_show_one_object(http: Http) -> None:
    definition = crd()
    second = {**definition["spec"]["versions"][0], "name": "v2", "storage": False}
    definition["spec"]["versions"].append(second)
    await install(http, definition)
    created = ok(await http("POST", WIDGETS, widget()), 201)
    other = WIDGETS.replace("/v1/", "/v2/")
    seen = ok(await http("GET", f"{other}/w"))
    assert (seen["apiVersion"], seen["metadata"]["uid"]) == ("example.io/v2", created["metadata"]["uid"])
    changed = ok(await patch(http, f"{other}/w", {"spec": {"size": 4}}))
    assert (changed["apiVersion"], changed["metadata"]["generation"]) == ("example.io/v2", 2)
    live = ok(await http("GET", PATH))
    assert (live["apiVersion"], live["spec"]["size"]) == ("example.io/v1", 4)
    refused(await http("POST", other, widget("x")), 400, "BadRequest", "does not match the expected API version")
    deleted = ok(await http("DELETE", other))
    assert deleted["items"][0]["apiVersion"] == "example.io/v2"


async def test_while_the_crd_goes_nothing_new_comes_by_any_way(widgets: Http) -> None:
    body = widget()
    body["metadata"]["finalizers"] = ["example.io/hold"]
    ok(await widgets("POST", WIDGETS, body), 201)
    ok(await widgets("DELETE", f"{CRDS}/widgets.example.io"))

    async def closed() -> bool:
        return (await widgets("POST", f"{WIDGETS}?dryRun=All", widget("x"))).code == 403

    await eventually(closed)
    why = "create not allowed while custom resource definition is terminating"
    refused(await widgets("POST", WIDGETS, widget("late")), 403, "Forbidden", why)
    refused(await apply(widgets, f"{WIDGETS}/late", widget("late")), 403, "Forbidden", why)
    ok(await patch(widgets, PATH, {"metadata": {"finalizers": None}}))

    async def gone() -> bool:
        return (await widgets("GET", WIDGETS)).body == b"404 page not found\n"

    await eventually(gone)
