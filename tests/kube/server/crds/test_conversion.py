"""Conversion by webhook: the request, and which responses are accepted."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from karmada.kube.objects.errors import InternalError, ServiceUnavailable
from karmada.kube.objects.types import Obj
from karmada.kube.server.crds.conversion import Target, convert_objects
from tests.support.cases import cases

V1, V2 = "example.com/v1", "example.com/v2"


def crd(**webhook: Any) -> Obj:
    client = {"url": "https://hook/convert", "caBundle": base64.b64encode(b"PEM").decode()}
    made = {"clientConfig": client, "conversionReviewVersions": ["v9", "v1"], **webhook}
    return {"spec": {"conversion": {"strategy": "Webhook", "webhook": made}}}


def widget(name: str, api_version: str = V1) -> Obj:
    meta = {"name": name, "namespace": "n", "uid": f"u-{name}", "resourceVersion": "7", "labels": {"a": "b"}}
    return {"apiVersion": api_version, "kind": "Widget", "metadata": meta, "spec": {"name": name}}


class Webhook:
    """Answers as a good webhook does, then lets `spoil` change the answer."""

    def __init__(self, spoil: Callable[[Obj], Any] | None = None) -> None:
        self.spoil = spoil
        self.calls: list[tuple[Target, bytes, Obj, float]] = []

    async def __call__(self, target: Target, ca: bytes, body: bytes, timeout: float) -> bytes:
        review = orjson.loads(body)
        self.calls.append((target, ca, review, timeout))
        request = review["request"]
        converted = [
            {**obj, "apiVersion": request["desiredAPIVersion"], "converted": True} for obj in request["objects"]
        ]
        answer: Any = {
            "kind": "ConversionReview",
            "apiVersion": review["apiVersion"],
            "response": {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}},
        }
        if self.spoil is not None:
            replaced = self.spoil(answer)
            if isinstance(replaced, bytes):
                return replaced
        return orjson.dumps(answer)


async def test_all_objects_go_in_one_call_and_come_back_in_order() -> None:
    hook = Webhook()
    objects = [widget("a"), widget("b", V2), widget("c")]
    converted = await convert_objects(crd(), objects, V2, hook)
    assert [obj["metadata"]["name"] for obj in converted] == ["a", "b", "c"]
    assert [obj["apiVersion"] for obj in converted] == [V2] * 3
    assert converted[1] is objects[1]
    [(target, ca, review, timeout)] = hook.calls
    assert (target, ca, timeout) == ("https://hook/convert", b"PEM", 30.0)
    assert review["kind"] == "ConversionReview"
    assert review["apiVersion"] == "apiextensions.k8s.io/v1"
    assert review["request"]["desiredAPIVersion"] == V2
    assert [obj["metadata"]["name"] for obj in review["request"]["objects"]] == ["a", "c"]


async def test_objects_in_the_right_version_need_no_call() -> None:
    hook = Webhook()
    objects = [widget("a", V2)]
    assert await convert_objects(crd(), objects, V2, hook) is objects
    assert hook.calls == []


async def test_without_a_webhook_only_the_version_changes() -> None:
    hook = Webhook()
    [converted] = await convert_objects({"spec": {"conversion": {"strategy": "None"}}}, [widget("a")], V2, hook)
    assert converted == widget("a", V2)
    assert hook.calls == []


async def test_a_service_is_called_by_reference() -> None:
    hook = Webhook()
    service = {"namespace": "n", "name": "s", "port": 443, "path": "/c"}
    await convert_objects(crd(clientConfig={"service": service}), [widget("a")], V2, hook)
    assert hook.calls[0][:2] == (service, b"")


async def test_labels_and_annotations_are_the_webhooks_other_metadata_is_ours() -> None:
    def relabel(answer: Obj) -> None:
        meta = answer["response"]["convertedObjects"][0]["metadata"]
        meta.update({"labels": {"x": "y"}, "annotations": {"n": "1"}, "resourceVersion": "99", "finalizers": ["f"]})

    [converted] = await convert_objects(crd(), [widget("a")], V2, Webhook(relabel))
    assert converted["metadata"] == {
        "name": "a",
        "namespace": "n",
        "uid": "u-a",
        "resourceVersion": "7",
        "labels": {"x": "y"},
        "annotations": {"n": "1"},
    }


def response(**change: Any) -> Callable[[Obj], Any]:
    return lambda answer: answer["response"].update(change)


def converted_with(**change: Any) -> Callable[[Obj], Any]:
    return lambda answer: answer["response"]["convertedObjects"][0].update(change)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda _: b"not json", "invalid response"),
        (lambda _: b"[]", "invalid response type"),
        (
            lambda answer: answer.update(kind="Other"),
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Other",  # noqa: E501
        ),
        (lambda answer: answer.pop("response"), "no response provided"),
        (response(uid="other"), 'expected response.uid="'),
        (response(result={"status": "Failure", "message": "no way"}), "no way"),
        (response(result={"status": "Failure"}), "webhook refused without a message"),
        (response(result=None), 'response.result.status was "", not "Success"'),
        (response(convertedObjects=[]), "webhook returned 0 objects, expected 1"),
        (response(convertedObjects=[1]), "invalid converted object at index 0: not an object"),
        (
            converted_with(apiVersion=V1),
            f"invalid converted object at index 0: invalid apiVersion (expected {V2}, received {V1})",
        ),
        (
            converted_with(kind="Gadget"),
            "invalid converted object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        (converted_with(metadata=None), "invalid converted object at index 0: invalid metadata of type NoneType"),
        (
            converted_with(metadata={"name": "z", "namespace": "n", "uid": "u-a"}),
            "invalid metadata.name (expected a, received z)",
        ),
        (
            converted_with(metadata={"name": "a", "namespace": "n", "uid": "z"}),
            "invalid metadata.uid (expected u-a, received z)",
        ),
        (
            converted_with(metadata={"name": "a", "namespace": "n", "uid": "u-a", "labels": {"a": 1}}),
            "invalid metadata.labels",
        ),
    ],
)
async def test_a_bad_answer_is_a_failure_of_the_webhook(spoil: Callable[[Obj], Any], why: str) -> None:
    with pytest.raises(InternalError) as caught:
        await convert_objects(crd(), [widget("a")], V2, Webhook(spoil))
    assert caught.value.message.startswith("conversion webhook for example.com/v1, Kind=Widget failed: ")
    assert why in caught.value.message
    assert caught.value.http_code == 500


@cases(
    (ConnectionRefusedError("refused"), "refused"),
    (TimeoutError(), "TimeoutError"),
    (ServiceUnavailable("no endpoints"), "no endpoints"),
)
async def test_a_webhook_that_cannot_be_reached_is_a_failure(error: Exception, why: str) -> None:
    async def call(target: Target, ca: bytes, body: bytes, timeout: float) -> bytes:
        raise error

    with pytest.raises(InternalError, match=f"conversion webhook for example.com/v1, Kind=Widget failed: {why}"):
        await convert_objects(crd(), [widget("a")], V2, call)


async def test_a_webhook_that_speaks_no_known_version_is_not_called() -> None:
    hook = Webhook()
    with pytest.raises(InternalError, match="no supported conversion review versions"):
        await convert_objects(crd(conversionReviewVersions=["v9"]), [widget("a")], V2, hook)
    assert hook.calls == []
