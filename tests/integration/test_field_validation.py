"""fieldValidation=Ignore|Warn|Strict on every way in, for built-in kinds and custom resources."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.samples import (
    CONFIGMAPS,
    DEPLOYMENTS,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    WIDGETS,
    YAML,
    apply,
    configmap,
    crd,
    deployment,
    install,
    ok,
    patch,
    refused,
    revision,
    widget,
)
from tests.support.cases import cases
from tests.support.wire import Http


def odd_deployment() -> Any:
    body = deployment()
    body["spec"]["foo"] = 1
    body["spec"]["template"]["spec"]["containers"][0]["bar"] = {"deep": True}
    return body


BAR = "spec.template.spec.containers[0].bar"
STRICT, IGNORE = "fieldValidation=Strict", "fieldValidation=Ignore"


async def test_unknown_fields_are_warned_of_by_default_and_not_stored(http: Http) -> None:
    answer = await http("POST", DEPLOYMENTS, odd_deployment())
    created = ok(answer, 201)
    assert sorted(answer.warnings) == [f'299 - "unknown field \\"{path}\\""' for path in ("spec.foo", BAR)]
    assert "foo" not in created["spec"]
    assert "bar" not in created["spec"]["template"]["spec"]["containers"][0]
    put = await http("PUT", f"{DEPLOYMENTS}/web", odd_deployment())
    assert ok(put) == created
    assert len(put.warnings) == 2


async def test_strict_creates_and_updates_are_refused(http: Http) -> None:
    before = await revision(http)
    status = refused(await http("POST", f"{DEPLOYMENTS}?{STRICT}", odd_deployment()), 400, "BadRequest")
    head = 'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
    assert status["message"].startswith(head)
    assert 'unknown field "spec.foo"' in status["message"]
    assert f'unknown field "{BAR}"' in status["message"]
    assert await revision(http) == before
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    refused(await http("PUT", f"{DEPLOYMENTS}/web?{STRICT}", odd_deployment()), 400, "BadRequest", head)
    assert ok(await http("GET", f"{DEPLOYMENTS}/web")) == created


async def test_ignored_fields_are_dropped_in_silence(http: Http) -> None:
    answer = await http("POST", f"{DEPLOYMENTS}?{IGNORE}", odd_deployment())
    assert "foo" not in ok(answer, 201)["spec"]
    assert answer.warnings == []


@cases(
    (MERGE, {"spec": {"foo": 1}}),
    (STRATEGIC, {"spec": {"foo": 1}}),
    (JSON_PATCH, [{"op": "add", "path": "/spec/foo", "value": 1}]),
)
async def test_patches_are_strict_in_their_own_words(kind: str, change: Any, http: Http) -> None:
    created = ok(await http("POST", DEPLOYMENTS, deployment()), 201)
    path = f"{DEPLOYMENTS}/web"
    status = refused(await patch(http, path, change, kind, f"?{STRICT}"), 422, "Invalid")
    value = "map[" if kind == STRATEGIC else "{"
    assert status["message"].startswith(f' "" is invalid: patch: Invalid value: "{value}')
    assert status["message"].endswith('strict decoding error: unknown field "spec.foo"')
    assert ("foo:1" if kind == STRATEGIC else '\\"foo\\":1') in status["message"]
    [cause] = status["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("patch", "FieldValueInvalid")
    warned = await patch(http, path, change, kind)
    assert warned.warnings == ['299 - "unknown field \\"spec.foo\\""']
    silent = await patch(http, path, change, kind, f"?{IGNORE}")
    assert silent.warnings == []
    assert ok(await http("GET", path)) == created


DUPLICATE = b'{"metadata":{"name":"c","labels":{"a":"1","a":"2"}},"data":{"k":"1","k":"2"}}'
DUPLICATE_YAML = b"metadata:\n  name: c\n  labels: {a: '1', a: '2'}\ndata:\n  k: '1'\n  k: '2'\n"


@cases("POST", "PUT")
async def test_duplicate_fields_in_json(method: str, http: Http) -> None:
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/c"
    if method == "PUT":
        ok(await http("POST", CONFIGMAPS, configmap()), 201)
    before = await revision(http)
    refused(
        await http(method, f"{path}?{STRICT}", DUPLICATE),
        400,
        "BadRequest",
        'strict decoding error: duplicate field "metadata.labels.a", duplicate field "data.k"',
    )
    assert await revision(http) == before
    answer = await http(method, path, DUPLICATE)
    assert ok(answer, 201 if method == "POST" else 200)["data"] == {"k": "2"}
    assert answer.warnings == [
        '299 - "duplicate field \\"metadata.labels.a\\""',
        '299 - "duplicate field \\"data.k\\""',
    ]


async def test_duplicate_fields_in_yaml(http: Http) -> None:
    strict = await http("POST", f"{CONFIGMAPS}?{STRICT}", DUPLICATE_YAML, content_type=YAML)
    status = refused(strict, 400, "BadRequest", "strict decoding error: yaml: unmarshal errors:")
    assert 'line 3: key "a" already set in map' in status["message"]
    assert 'line 6: key "k" already set in map' in status["message"]
    warned = await http("POST", CONFIGMAPS, DUPLICATE_YAML, content_type=YAML)
    assert ok(warned, 201)["data"] == {"k": "2"}
    assert len(warned.warnings) == 1


async def test_duplicate_fields_in_patches(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    before = await revision(http)
    body = b'{"data":{"k":"1","k":"2"}}'
    for kind in (MERGE, STRATEGIC):
        refused(
            await patch(http, f"{CONFIGMAPS}/c", body, kind, f"?{STRICT}"), 422, "Invalid", 'duplicate field "data.k"'
        )
    ops = b'[{"op":"add","path":"/data/k","value":"1","value":"2","note":"x"}]'
    refused(
        await patch(http, f"{CONFIGMAPS}/c", ops, JSON_PATCH, f"?{STRICT}"),
        422,
        "Invalid",
        'json patch duplicate field "[0].value"',
        'json patch unknown field "[0].note"',
    )
    assert await revision(http) == before
    warned = await patch(http, f"{CONFIGMAPS}/c", body)
    assert ok(warned)["data"] == {"a": "1", "k": "2"}
    assert warned.warnings == ['299 - "duplicate field \\"data.k\\""']


async def test_field_names_are_case_sensitive(http: Http) -> None:
    body = deployment()
    body["spec"]["Replicas"] = 7
    answer = await http("POST", DEPLOYMENTS, body)
    assert ok(answer, 201)["spec"]["replicas"] == 2
    assert answer.warnings == ['299 - "unknown field \\"spec.Replicas\\""']


async def test_custom_resources_are_pruned_and_judged_the_same_way(http: Http) -> None:
    await install(http, crd())
    odd = widget(spec={"size": 1, "foo": 1, "free": {"any": {"thing": 1}}, "parts": [{"name": "a", "bar": 1}]})
    before = await revision(http)
    status = refused(await http("POST", f"{WIDGETS}?{STRICT}", odd), 400, "BadRequest", "strict decoding error: ")
    assert 'unknown field "spec.foo"' in status["message"]
    assert 'unknown field "spec.parts[0].bar"' in status["message"]
    assert await revision(http) == before
    answer = await http("POST", WIDGETS, odd)
    created = ok(answer, 201)
    assert len(answer.warnings) == 2
    assert created["spec"] == {
        "size": 1,
        "colour": "red",
        "free": {"any": {"thing": 1}},
        "parts": [{"name": "a"}],
    }
    path = f"{WIDGETS}/w"
    put = {**odd, "metadata": created["metadata"]}
    refused(await http("PUT", f"{path}?{STRICT}", put), 400, "BadRequest", 'unknown field "spec.foo"')
    refused(await patch(http, path, {"spec": {"foo": 1}}, MERGE, f"?{STRICT}"), 422, "Invalid", 'field "spec.foo"')
    assert (await http("PUT", f"{path}?{IGNORE}", put)).warnings == []
    assert len((await patch(http, path, {"spec": {"foo": 1}})).warnings) == 1
    assert ok(await http("GET", path)) == created
    refused(await apply(http, path, widget(spec={"foo": 1})), 500, "", ".spec.foo: field not declared in schema")
    identity = b'"apiVersion":"example.io/v1","kind":"Widget"'
    double = b"{" + identity + b',"metadata":{"name":"v"},"spec":{"size":1,"size":2}}'
    refused(await http("POST", f"{WIDGETS}?{STRICT}", double), 400, "BadRequest", 'duplicate field "spec.size"')


async def test_unknown_metadata_of_custom_resources_is_judged_too(http: Http) -> None:
    await install(http, crd())
    body = widget()
    body["metadata"]["nickname"] = "x"
    refused(await http("POST", f"{WIDGETS}?{STRICT}", body), 400, "BadRequest", 'unknown field "metadata.nickname"')
    answer = await http("POST", WIDGETS, body)
    assert "nickname" not in ok(answer, 201)["metadata"]


async def test_many_long_warnings_are_shortened(http: Http) -> None:
    body = configmap()
    for index in range(20):
        body["x" * 300 + str(index)] = 1
    answer = await http("POST", CONFIGMAPS, body)
    ok(answer, 201)
    assert 1 <= len(answer.warnings) <= 20
    assert all(len(warning) <= 256 + len('299 - ""') + 4 for warning in answer.warnings)


async def test_warnings_have_no_control_characters_and_are_escaped(http: Http) -> None:
    body = json.dumps(configmap() | {'a"\\\n': 1}).encode()
    answer = await http("POST", CONFIGMAPS, body)
    ok(answer, 201)
    [warning] = answer.warnings
    assert warning.isprintable()
    assert '\\"' in warning
