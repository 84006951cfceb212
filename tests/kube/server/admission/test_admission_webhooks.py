from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from karmada.kube.client.client import Client
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError, BadRequest, Forbidden, InternalError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.addresses.service_routing import ServiceRouter
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import CREATE, DELETE, UPDATE, Attributes
from karmada.kube.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.user import User
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.outbound.webhooks import WebhookClient
from tests.support.tls_backend import State, TlsBackend, authority, builtin_registry, resource_of

CA = base64.b64encode(authority().cert_pem).decode()
Answer = Callable[[Obj], Any]


class Hooks:
    """A webhook server: one answer for each path, and the requests it got."""

    def __init__(self, backend: TlsBackend, state: State) -> None:
        self.port = backend.port
        self.state = state
        self.answers: dict[str, Answer] = {}
        self.requests: list[tuple[str, Obj]] = []
        backend.handler = self._serve

    async def _serve(self, raw: web.BaseRequest) -> web.Response:
        review = orjson.loads(await raw.read())
        name = raw.path.strip("/")
        self.requests.append((name, review))
        answer = self.answers.get(name, allow)(review)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, web.Response):
            return answer
        return web.Response(body=orjson.dumps(answer))

    @property
    def order(self) -> list[str]:
        return [name for name, _ in self.requests]

    def hook(self, name: str, answer: Answer | None = None, **more: Any) -> Obj:
        if answer is not None:
            self.answers[name] = answer
        rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
        return {
            "name": f"{name}.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/{name}", "caBundle": CA},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [rule],
        } | more

    def configure(self, kind: str, name: str, *hooks: Obj) -> None:
        meta = {"name": name}
        self.state.put({"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
                        "metadata": meta, "webhooks": list(hooks)})  # fmt: skip


def respond(review: Obj, **response: Any) -> Obj:
    head = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
    return {**head, "response": {"uid": review["request"]["uid"], "allowed": True} | response}


def allow(review: Obj) -> Obj:
    return respond(review)


def patching(*operations: Obj) -> Answer:
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return lambda review: respond(review, patch=patch, patchType="JSONPatch")


def labelling(key: str, value: str = "yes") -> Answer:
    return patching({"op": "add", "path": f"/metadata/labels/{key}", "value": value})


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
async def hooks(state: State) -> AsyncIterator[Hooks]:
    async with TlsBackend() as backend:
        yield Hooks(backend, state)


@pytest.fixture
async def client(state: State) -> AsyncIterator[WebhookClient]:
    client = WebhookClient(ServiceRouter(state))
    yield client
    await client.close()


@pytest.fixture
def mutating(state: State, client: WebhookClient) -> MutatingWebhooks:
    return MutatingWebhooks(state, builtin_registry(), client)


@pytest.fixture
def validating(state: State, client: WebhookClient) -> ValidatingWebhooks:
    return ValidatingWebhooks(state, builtin_registry(), client)


def config_map(**labels: str) -> Obj:
    meta = {"name": "settings", "namespace": "shop", "labels": {"app": "web", **labels}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}


def write(
    obj: Obj | None, operation: str = CREATE, old: Obj | None = None, subresource: str = "", dry_run: bool = False
) -> Attributes:
    one = obj or old
    assert one is not None
    meta = one["metadata"]
    user = User("ann", uid="7", groups=("devs",), extra={"team": ("a", "b")})
    return Attributes(
        operation, resource_of(one), subresource, meta.get("namespace", ""), meta["name"], obj, old, user,
        dry_run=dry_run, options=lambda: {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    )  # fmt: skip


async def run(plugin: MutatingWebhooks | ValidatingWebhooks, attributes: Attributes) -> Obj | None:
    if plugin.handles(attributes):
        await plugin.admit(attributes)
        await plugin.validate(attributes)
    return attributes.obj


async def refusal(plugin: MutatingWebhooks | ValidatingWebhooks, attributes: Attributes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await run(plugin, attributes)
    return caught.value


# the request


async def test_a_review_has_everything_about_the_write(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("see"))
    old, new = config_map(), config_map(tier="gold")
    await run(validating, write(new, UPDATE, old, dry_run=True))
    [(_, review)] = hooks.requests
    request = review["request"]
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert len(request.pop("uid")) == 36
    assert request == {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "settings",
        "namespace": "shop",
        "operation": "UPDATE",
        "userInfo": {"username": "ann", "uid": "7", "groups": ["devs"], "extra": {"team": ["a", "b"]}},
        "object": new,
        "oldObject": old,
        "dryRun": True,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


async def test_a_delete_has_no_object_and_a_create_no_old_one(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("see"))
    await run(validating, write(config_map()))
    await run(validating, write(None, DELETE, config_map()))
    first, second = (review["request"] for _, review in hooks.requests)
    assert (first["oldObject"], second["object"]) == (None, None)
    assert second["oldObject"]["data"] == {"a": "1"}


async def test_the_review_of_a_namespace_has_its_own_name(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("see"))
    await run(validating, write({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
    [(_, review)] = hooks.requests
    assert review["request"]["namespace"] == "shop"


async def test_a_webhook_that_knows_only_v1beta1_is_called_with_it(
    hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    def lax(review: Obj) -> Obj:
        return {"response": {"allowed": False, "status": {"message": "old and lax"}}}

    hooks.configure("Validating", "a", hooks.hook("see", lax, admissionReviewVersions=["v9", "v1beta1"]))
    error = await refusal(validating, write(config_map()))
    assert hooks.requests[0][1]["apiVersion"] == "admission.k8s.io/v1beta1"
    assert error.message == 'admission webhook "see.example.com" denied the request: old and lax'


def deployment(replicas: int) -> Obj:
    meta = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": replicas}}


async def test_a_webhook_on_scale_sees_and_changes_the_scale(hooks: Hooks, mutating: MutatingWebhooks) -> None:
    rule = {"operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"]}
    fewer = patching({"op": "replace", "path": "/spec/replicas", "value": 3})
    hooks.configure("Mutating", "a", hooks.hook("cap", fewer, rules=[rule]))
    live, wanted = deployment(1), deployment(100)
    changed = await run(mutating, write(wanted, UPDATE, live, "scale"))
    request = hooks.requests[0][1]["request"]
    assert request["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert request["object"]["spec"] == {"replicas": 100}
    assert request["subResource"] == request["requestSubResource"] == "scale"
    assert changed is not None
    assert changed["kind"] == "Deployment"
    assert changed["spec"]["replicas"] == 3


# matching


def rule(**parts: Any) -> Obj:
    whole = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    return whole | parts


@pytest.mark.parametrize(
    ("parts", "subresource", "expected"),
    [
        ({}, "", True),
        ({"operations": ["UPDATE", "DELETE"]}, "", False),
        ({"operations": ["*"]}, "", True),
        ({"apiGroups": ["apps"]}, "", False),
        ({"apiVersions": ["v2"]}, "", False),
        ({"resources": ["*"]}, "", True),
        ({"resources": ["*"]}, "status", False),
        ({"resources": ["*/*"]}, "status", True),
        ({"resources": ["*/*"]}, "", True),
        ({"resources": ["configmaps/*"]}, "status", True),
        ({"resources": ["configmaps/*"]}, "", True),
        ({"resources": ["configmaps/status"]}, "", False),
        ({"resources": ["configmaps/status"]}, "status", True),
        ({"resources": ["*/status"]}, "status", True),
        ({"scope": "Namespaced"}, "", True),
        ({"scope": "Cluster"}, "", False),
    ],
)
def test_rules_match(
    hooks: Hooks, validating: ValidatingWebhooks, parts: Obj, subresource: str, expected: bool
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", rules=[rule(resources=["secrets"]), rule(**parts)]))
    assert validating.handles(write(config_map(), subresource=subresource)) is expected


@pytest.mark.parametrize(("scope", "expected"), [("Cluster", True), ("Namespaced", False), ("*", True)])
def test_namespaces_are_cluster_scoped(
    hooks: Hooks, validating: ValidatingWebhooks, scope: str, expected: bool
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", rules=[rule(resources=["namespaces"], scope=scope)]))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert validating.handles(write(namespace)) is expected


async def test_webhook_configurations_never_go_through_webhooks(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("see"))
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    assert not validating.handles(write({**kind, "metadata": {"name": "a"}}))


@pytest.mark.parametrize(("labels", "received"), [({"env": "prod"}, 1), ({"env": "test"}, 0), ({}, 0)])
async def test_the_namespace_selector_looks_at_the_namespace_of_the_object(
    hooks: Hooks, validating: ValidatingWebhooks, labels: dict[str, str], received: int
) -> None:
    selector = {"matchLabels": {"env": "prod"}}
    hooks.configure("Validating", "a", hooks.hook("see", namespaceSelector=selector))
    hooks.state.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}})
    await run(validating, write(config_map()))
    assert len(hooks.requests) == received


async def test_namespaces_are_selected_by_their_own_new_labels_and_other_cluster_objects_always(
    hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    selector = {"matchLabels": {"env": "prod"}}
    hooks.configure("Validating", "a", hooks.hook("see", namespaceSelector=selector))
    for labels in ({"env": "prod"}, {"env": "test"}):
        await run(
            validating, write({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}})
        )
    await run(validating, write({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))
    assert [review["request"]["kind"]["kind"] for _, review in hooks.requests] == ["Namespace", "Node"]


async def test_a_namespace_that_does_not_exist_cannot_be_selected(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", namespaceSelector={"matchLabels": {"env": "prod"}}))
    error = await refusal(validating, write(config_map()))
    assert isinstance(error, NotFound)
    assert error.message == 'namespaces "shop" not found'


async def test_the_object_selector_looks_at_the_new_and_at_the_old_object(
    hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", objectSelector={"matchLabels": {"tier": "gold"}}))
    gold, plain = config_map(tier="gold"), config_map()
    await run(validating, write(plain))
    assert hooks.requests == []
    await run(validating, write(plain, UPDATE, gold))
    await run(validating, write(gold, UPDATE, plain))
    await run(validating, write(None, DELETE, gold))
    assert len(hooks.requests) == 3


def autoscaler(api_version: str) -> Obj:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "maxReplicas": 3}
    meta = {"name": "web", "namespace": "shop"}
    return {"apiVersion": api_version, "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}


async def test_an_equivalent_rule_sees_the_object_in_the_version_it_names(
    hooks: Hooks, mutating: MutatingWebhooks
) -> None:
    wanted = rule(apiGroups=["autoscaling"], apiVersions=["v1"], resources=["horizontalpodautoscalers"])
    percent = patching({"op": "add", "path": "/spec/targetCPUUtilizationPercentage", "value": 80})
    hooks.configure("Mutating", "a", hooks.hook("see", percent, rules=[wanted], matchPolicy="Equivalent"))
    changed = await run(mutating, write(autoscaler("autoscaling/v2")))
    request = hooks.requests[0][1]["request"]
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
    assert (request["resource"]["version"], request["requestResource"]["version"]) == ("v1", "v2")
    assert request["object"]["apiVersion"] == "autoscaling/v1"
    assert changed is not None
    assert changed["apiVersion"] == "autoscaling/v2"
    assert changed["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80


def test_an_exact_rule_does_not_match_through_other_versions(hooks: Hooks, mutating: MutatingWebhooks) -> None:
    wanted = rule(apiGroups=["autoscaling"], apiVersions=["v1"], resources=["horizontalpodautoscalers"])
    hooks.configure("Mutating", "a", hooks.hook("see", rules=[wanted], matchPolicy="Exact"))
    assert not mutating.handles(write(autoscaler("autoscaling/v2")))
    assert mutating.handles(write(autoscaler("autoscaling/v1")))


# conditions


def condition(expression: str) -> list[Obj]:
    return [{"name": "c", "expression": expression}]


@pytest.mark.parametrize(
    ("expression", "received"),
    [
        ("object.metadata.labels.app == 'web'", 1),
        ("object.metadata.labels.app == 'db'", 0),
        ("oldObject == null && request.operation == 'CREATE'", 1),
        ("request.userInfo.username == 'ann' && 'devs' in request.userInfo.groups", 1),
        ("request.subResource == '' && !request.dryRun", 1),
        ("authorizer.group('').resource('configmaps').namespace('shop').check('delete').allowed()", 0),
        ("!authorizer.requestResource.check('breakglass').allowed()", 1),
        ("!authorizer.path('/healthz').check('get').allowed()", 1),
    ],
)
async def test_all_match_conditions_must_hold(
    hooks: Hooks, validating: ValidatingWebhooks, expression: str, received: int
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", matchConditions=condition(expression)))
    await run(validating, write(config_map()))
    assert len(hooks.requests) == received


@pytest.mark.parametrize("expression", ["object.spec.missing == 1", "object.(", "nothing == 1"])
async def test_a_condition_that_fails_is_what_the_failure_policy_says(
    hooks: Hooks, validating: ValidatingWebhooks, expression: str
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", matchConditions=condition(expression), failurePolicy="Ignore"))
    await run(validating, write(config_map()))
    hooks.configure("Validating", "a", hooks.hook("see", matchConditions=condition(expression), failurePolicy="Fail"))
    error = await refusal(validating, write(config_map()))
    assert isinstance(error, Forbidden)
    assert error.message.startswith('configmaps "settings" is forbidden: ')
    assert hooks.requests == []


async def test_a_false_condition_decides_even_when_another_fails(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    both = [*condition("object.spec.missing == 1"), {"name": "d", "expression": "false"}]
    hooks.configure("Validating", "a", hooks.hook("see", matchConditions=both))
    await run(validating, write(config_map()))
    assert hooks.requests == []


# verdicts


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        ({"message": "no", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", ": no"),
        ({"message": "no"}, 400, "", ": no"),
        ({"message": "no", "code": 200}, 400, "", ": no"),
        ({"message": "no", "code": 422}, 422, "", ": no"),
        ({"reason": "Because"}, 400, "Because", ": Because"),
        (None, 400, "", " without explanation"),
    ],
)
async def test_a_refusal_carries_the_status_of_the_webhook(
    hooks: Hooks, validating: ValidatingWebhooks, status: Obj | None, code: int, reason: str, message: str
) -> None:
    hooks.configure("Validating", "a", hooks.hook("no", lambda review: respond(review, allowed=False, status=status)))
    error = await refusal(validating, write(config_map()))
    shown = error.status()
    assert shown["message"] == f'admission webhook "no.example.com" denied the request{message}'
    assert (shown["code"], shown.get("reason", ""), shown["status"]) == (code, reason, "Failure")


async def test_failure_policy_ignore_does_not_cover_refusals(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    deny = lambda review: respond(review, allowed=False)
    hooks.configure("Validating", "a", hooks.hook("no", deny, failurePolicy="Ignore"))
    assert (await refusal(validating, write(config_map()))).http_code == 400


async def test_warnings_of_webhooks_reach_the_client_once(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("one", lambda review: respond(review, warnings=["old", "odd"])))
    hooks.configure("Validating", "b", hooks.hook("two", lambda review: respond(review, warnings=["old"])))
    attributes = write(config_map())
    await run(validating, attributes)
    assert sorted(attributes.warnings) == ["odd", "old"]


def without(key: str) -> Answer:
    def answer(review: Obj) -> Obj:
        whole = respond(review)
        del whole[key]
        return whole

    return answer


PREFIX = 'Internal error occurred: failed calling webhook "bad.example.com": '
INVALID = PREFIX + "received invalid webhook response: "
CALL = PREFIX + "failed to call webhook: "
REVIEW = "admission.k8s.io/v1, Kind=AdmissionReview"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (without("response"), INVALID + "webhook response was absent"),
        (without("kind"), f"{INVALID}expected webhook response of {REVIEW}, got admission.k8s.io/v1, Kind="),
        (without("apiVersion"), f"{INVALID}expected webhook response of {REVIEW}, got /, Kind=AdmissionReview"),
        (lambda review: respond(review, patchType="JSONPatch"),
         INVALID + "webhook returned response.patchType but not response.patch"),
        (lambda review: respond(review, patch="W10="),
         INVALID + "webhook returned response.patch but not response.patchType"),
        (lambda review: respond(review, patch="W10=", patchType="Merge"), PREFIX + 'unsupported patch type "Merge"'),
        (lambda _: web.Response(text="x", status=404), CALL + "the server could not find the requested resource"),
        (lambda _: web.Response(text="boom", status=500),
         CALL + 'an error on the server ("boom") has prevented the request from succeeding'),
    ],
)  # fmt: skip
async def test_an_answer_that_cannot_be_used_is_a_failed_call(
    hooks: Hooks, mutating: MutatingWebhooks, answer: Answer, message: str
) -> None:
    hooks.configure("Mutating", "a", hooks.hook("bad", answer, failurePolicy="Fail"))
    error = await refusal(mutating, write(config_map()))
    assert isinstance(error, InternalError)
    assert error.message == message
    assert error.status()["details"]["causes"] == [{"message": message.removeprefix("Internal error occurred: ")}]
    hooks.configure("Mutating", "a", hooks.hook("bad", answer, failurePolicy="Ignore"))
    before = config_map()
    assert await run(mutating, write(copy_json(before))) == before


async def test_an_answer_to_another_question_does_not_count(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("bad", lambda review: respond(review, uid="other")))
    error = await refusal(validating, write(config_map()))
    uid = hooks.requests[0][1]["request"]["uid"]
    assert error.message == f'{INVALID}expected response.uid="{uid}", got "other"'


async def test_text_that_is_no_json_is_a_failed_call(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("bad", lambda _: web.Response(text="<html>")))
    error = await refusal(validating, write(config_map()))
    assert error.message.startswith(CALL + "couldn't get version/kind; json parse error: ")


@pytest.mark.parametrize(
    ("response", "field"), [({"patch": "W10="}, "patch"), ({"patchType": "JSONPatch"}, "patchType")]
)
async def test_a_validating_webhook_may_not_patch(
    hooks: Hooks, validating: ValidatingWebhooks, response: Obj, field: str
) -> None:
    hooks.configure("Validating", "a", hooks.hook("bad", lambda review: respond(review, **response)))
    error = await refusal(validating, write(config_map()))
    assert error.message == f"{INVALID}validating webhook may not return response.{field}"


async def hang(_review: Obj) -> Obj:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def test_a_slow_webhook_stops_the_write_or_is_passed_over(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("bad", hang, timeoutSeconds=0.05, failurePolicy="Fail"))
    error = await refusal(validating, write(config_map()))
    url = f"https://127.0.0.1:{hooks.port}/bad?timeout=50ms"
    assert error.message == f'{CALL}Post "{url}": context deadline exceeded'
    assert error.http_code == 500
    hooks.configure("Validating", "a", hooks.hook("bad", hang, timeoutSeconds=0.05, failurePolicy="Ignore"))
    await run(validating, write(config_map()))


async def test_a_webhook_that_is_not_there_stops_the_write_or_is_passed_over(
    hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    gone: dict[str, Any] = {"clientConfig": {"url": "https://127.0.0.1:1", "caBundle": CA}}
    hooks.configure("Validating", "a", hooks.hook("bad", **gone))
    error = await refusal(validating, write(config_map()))
    refused = "dial tcp 127.0.0.1:1: connect: connection refused"
    assert error.message == f'{CALL}Post "https://127.0.0.1:1/?timeout=10s": {refused}'
    hooks.configure("Validating", "a", hooks.hook("bad", **gone, failurePolicy="Ignore"))
    await run(validating, write(config_map()))


async def test_validating_webhooks_run_at_the_same_time_and_the_first_refusal_counts(
    hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    second_answered = asyncio.Event()

    async def slow(review: Obj) -> Obj:
        await second_answered.wait()
        return respond(review, allowed=False, status={"message": "slow"})

    def quick(review: Obj) -> Obj:
        asyncio.get_running_loop().call_later(0.02, second_answered.set)
        return respond(review, allowed=False, status={"message": "quick"})

    hooks.configure("Validating", "a", hooks.hook("one", slow), hooks.hook("two", quick))
    error = await refusal(validating, write(config_map()))
    assert error.message == 'admission webhook "two.example.com" denied the request: quick'
    assert sorted(hooks.order) == ["one", "two"]


# dry run


@pytest.mark.parametrize("side_effects", ["None", "NoneOnDryRun"])
async def test_harmless_webhooks_take_part_in_dry_runs(
    hooks: Hooks, validating: ValidatingWebhooks, side_effects: str
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", sideEffects=side_effects))
    await run(validating, write(config_map(), dry_run=True))
    assert hooks.requests[0][1]["request"]["dryRun"] is True


@pytest.mark.parametrize("side_effects", ["Some", "Unknown"])
async def test_a_dry_run_is_refused_where_a_webhook_has_side_effects(
    hooks: Hooks, validating: ValidatingWebhooks, side_effects: str
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", sideEffects=side_effects, failurePolicy="Ignore"))
    error = await refusal(validating, write(config_map(), dry_run=True))
    assert isinstance(error, BadRequest)
    assert error.message == 'admission webhook "see.example.com" does not support dry run'
    await run(validating, write(config_map()))


# mutation


async def test_a_patch_changes_the_object_in_place_and_defaults_are_set_again(
    hooks: Hooks, mutating: MutatingWebhooks
) -> None:
    container = {"name": "side", "image": "proxy"}
    inject = patching({"op": "add", "path": "/spec/containers/-", "value": container})
    hooks.configure("Mutating", "a", hooks.hook("inject", inject))
    pod: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"},
                "spec": {"containers": [{"name": "main", "image": "web:1"}]}}  # fmt: skip
    meta = pod["metadata"]
    changed = await run(mutating, write(pod))
    assert changed is pod
    assert pod["metadata"] is meta
    assert [c["name"] for c in pod["spec"]["containers"]] == ["main", "side"]
    assert pod["spec"]["containers"][1]["imagePullPolicy"] == "Always"


async def test_identity_cannot_be_patched(hooks: Hooks, mutating: MutatingWebhooks) -> None:
    steal = patching(
        {"op": "replace", "path": "/metadata/name", "value": "other"},
        {"op": "replace", "path": "/metadata/namespace", "value": "other"},
        {"op": "add", "path": "/metadata/uid", "value": "forged"},
        {"op": "replace", "path": "/kind", "value": "Secret"},
        {"op": "add", "path": "/metadata/labels/seen", "value": "yes"},
    )
    hooks.configure("Mutating", "a", hooks.hook("steal", steal))
    changed = await run(mutating, write(config_map()))
    assert changed == config_map(seen="yes")


@pytest.mark.parametrize(("subresource", "kept"), [("", "status"), ("status", "spec")])
async def test_a_write_of_one_part_stays_one(
    hooks: Hooks, mutating: MutatingWebhooks, subresource: str, kept: str
) -> None:
    wanted = {"operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["*", "*/status"]}
    both = patching(
        {"op": "add", "path": "/spec/paused", "value": True},
        {"op": "add", "path": "/status/readyReplicas", "value": 9},
    )
    hooks.configure("Mutating", "a", hooks.hook("both", both, rules=[wanted]))
    old = {**deployment(1), "status": {"replicas": 1}}
    resource_of(old).strategy.default(old)
    changed = await run(mutating, write(copy_json(old), UPDATE, old, subresource))
    assert changed is not None
    assert changed[kept] == old[kept]
    assert changed != old


async def test_fields_that_the_kind_does_not_have_are_dropped_from_patches(
    hooks: Hooks, mutating: MutatingWebhooks
) -> None:
    hooks.configure("Mutating", "a", hooks.hook("odd", patching({"op": "add", "path": "/wheels", "value": 4})))
    assert await run(mutating, write(config_map())) == config_map()


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "remove", "path": "/data/missing"}],
        [{"op": "test", "path": "/data/a", "value": "2"}],
        [{"op": "replace", "path": "/data", "value": [1]}],
        [{"op": "add", "path": "/metadata", "value": None}],
        [{"op": "jump", "path": "/data"}],
        "text",
        {"op": "add"},
    ],
)
async def test_a_patch_that_cannot_be_applied_stops_the_write_whatever_the_policy(
    hooks: Hooks, mutating: MutatingWebhooks, operations: Any
) -> None:
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    answer = lambda review: respond(review, patch=patch, patchType="JSONPatch")
    hooks.configure("Mutating", "a", hooks.hook("bad", answer, failurePolicy="Ignore"))
    obj = config_map()
    assert isinstance(await refusal(mutating, write(obj)), InternalError)
    assert obj == config_map()


async def test_what_is_deleted_cannot_be_patched(hooks: Hooks, mutating: MutatingWebhooks) -> None:
    hooks.configure("Mutating", "a", hooks.hook("late", labelling("x")))
    error = await refusal(mutating, write(None, DELETE, config_map()))
    what = "attempted to modify the object, which is not supported for this operation"
    assert error.message == f'Internal error occurred: admission webhook "late.example.com" {what}'


async def test_webhooks_run_by_name_of_configuration_then_in_their_order_each_on_the_last_result(
    hooks: Hooks, mutating: MutatingWebhooks
) -> None:
    hooks.configure("Mutating", "b", hooks.hook("third", labelling("c")))
    hooks.configure("Mutating", "a", hooks.hook("first", labelling("a")), hooks.hook("second", labelling("b")))
    await run(mutating, write(config_map()))
    assert hooks.order == ["first", "second", "third"]
    labels = [set(review["request"]["object"]["metadata"]["labels"]) - {"app"} for _, review in hooks.requests]
    assert labels == [set(), {"a"}, {"a", "b"}]


async def test_earlier_webhooks_are_reinvoked_after_later_changes_if_needed(
    hooks: Hooks, mutating: MutatingWebhooks
) -> None:
    again: dict[str, Any] = {"reinvocationPolicy": "IfNeeded"}
    hooks.configure(
        "Mutating", "a",
        hooks.hook("never", reinvocationPolicy="Never"),
        hooks.hook("again", labelling("a"), **again),
        hooks.hook("changes", labelling("b")),
        hooks.hook("after", **again),
    )  # fmt: skip
    await Chain([mutating]).admit(write(config_map()))
    assert hooks.order == ["never", "again", "changes", "after", "again"]
    assert hooks.requests[-1][1]["request"]["object"]["metadata"]["labels"] == {"app": "web", "a": "yes", "b": "yes"}


async def test_no_webhook_is_called_again_when_nothing_changed(hooks: Hooks, mutating: MutatingWebhooks) -> None:
    same = patching({"op": "replace", "path": "/metadata/labels/app", "value": "web"})
    again: dict[str, Any] = {"reinvocationPolicy": "IfNeeded"}
    hooks.configure("Mutating", "a", hooks.hook("one", **again), hooks.hook("two", same, **again))
    await Chain([mutating]).admit(write(config_map()))
    assert hooks.order == ["one", "two"]


async def test_a_refusal_by_a_mutating_webhook_stops_the_others(hooks: Hooks, mutating: MutatingWebhooks) -> None:
    deny = lambda review: respond(review, allowed=False, status={"message": "no", "code": 403})
    hooks.configure("Mutating", "a", hooks.hook("one", deny), hooks.hook("two"))
    assert (await refusal(mutating, write(config_map()))).http_code == 403
    assert hooks.order == ["one"]


# configurations


async def test_changed_and_removed_configurations_count_from_the_next_request(
    hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    attributes = write(config_map())
    assert not validating.handles(attributes)
    hooks.configure("Validating", "a", hooks.hook("one"))
    await run(validating, attributes)
    hooks.configure("Validating", "a", hooks.hook("two"))
    await run(validating, attributes)
    assert hooks.order == ["one", "two"]
    hooks.state.remove(validating.configurations, "", "a")
    assert not validating.handles(attributes)


async def test_a_request_without_webhooks_costs_next_to_nothing(validating: ValidatingWebhooks) -> None:
    attributes = write(config_map())
    validating.handles(attributes)
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        validating.handles(attributes)
    finally:
        sys.setprofile(None)
    assert calls < 10


# in a server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    server = ApiServer(ServerConfig(data_dir=tmp_path, storage="memory://", port=0, controllers=False))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def api(server: ApiServer) -> Client:
    client = server.client()
    await client.create(
        GVR("", "v1", "namespaces"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    )
    return client


async def configure(api: Client, kind: str, *hooks: Obj) -> None:
    gvr = GVR("admissionregistration.k8s.io", "v1", f"{kind.lower()}webhookconfigurations")
    meta = {"name": "hooks"}
    obj = {
        "apiVersion": gvr.api_version,
        "kind": f"{kind}WebhookConfiguration",
        "metadata": meta,
        "webhooks": list(hooks),
    }
    await api.create(gvr, obj)


CONFIG_MAPS = GVR("", "v1", "configmaps")
ON_CONFIG_MAPS: list[Obj] = [
    {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
]


async def test_what_a_webhook_changes_is_stored_and_the_server_still_sets_the_metadata(
    api: Client, hooks: Hooks
) -> None:
    await configure(api, "Mutating", hooks.hook("label", labelling("seen"), rules=ON_CONFIG_MAPS))
    made = await api.create(CONFIG_MAPS, config_map())
    assert made["metadata"]["labels"] == {"app": "web", "seen": "yes"}
    assert made["metadata"]["uid"]
    assert made["metadata"]["creationTimestamp"]
    changed = await api.patch(CONFIG_MAPS, "settings", "shop", {"metadata": {"labels": {"seen": None, "more": "x"}}})
    assert changed["metadata"]["labels"] == {"app": "web", "seen": "yes", "more": "x"}
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert [review["request"]["operation"] for _, review in hooks.requests] == ["CREATE", "UPDATE"]
    assert await api.get(CONFIG_MAPS, "settings", "shop") == changed


async def test_what_a_webhook_refuses_is_not_written(api: Client, hooks: Hooks) -> None:
    def only_creates(review: Obj) -> Obj:
        fine = review["request"]["operation"] == "CREATE"
        return respond(review, allowed=fine, status={"message": "frozen", "code": 403, "reason": "Forbidden"})

    await configure(api, "Validating", hooks.hook("freeze", only_creates, rules=ON_CONFIG_MAPS))
    made = await api.create(CONFIG_MAPS, config_map())
    message = 'admission webhook "freeze.example.com" denied the request: frozen'
    with pytest.raises(Forbidden) as caught:
        await api.update(CONFIG_MAPS, {**made, "data": {}})
    assert caught.value.message == message
    with pytest.raises(Forbidden) as caught:
        await api.delete(CONFIG_MAPS, "settings", "shop")
    assert caught.value.message == message
    with pytest.raises(Forbidden):
        await api.delete_collection(CONFIG_MAPS, "shop")
    assert await api.get(CONFIG_MAPS, "settings", "shop") == made
