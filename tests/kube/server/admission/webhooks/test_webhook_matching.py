"""Which webhooks a write is sent to, and what is sent."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.errors import Forbidden, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import DELETE, UPDATE
from karmada.kube.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from tests.kube.server.admission.webhooks.hooks import Hooks, config_map, deployment, patching, refusal, run, write
from tests.support.cases import cases
from tests.support.objects import kube_object

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
    await run(validating, write(kube_object("v1", "Namespace", "shop")))
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


@cases(
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
)
def test_rules_match(
    parts: Obj, subresource: str, expected: bool, hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", rules=[rule(resources=["secrets"]), rule(**parts)]))
    assert validating.handles(write(config_map(), subresource=subresource)) is expected


@cases(("Cluster", True), ("Namespaced", False), ("*", True))
def test_namespaces_are_cluster_scoped(
    scope: str, expected: bool, hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", rules=[rule(resources=["namespaces"], scope=scope)]))
    namespace = kube_object("v1", "Namespace", "shop")
    assert validating.handles(write(namespace)) is expected


async def test_webhook_configurations_never_go_through_webhooks(hooks: Hooks, validating: ValidatingWebhooks) -> None:
    hooks.configure("Validating", "a", hooks.hook("see"))
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    assert not validating.handles(write({**kind, "metadata": {"name": "a"}}))


@cases(({"env": "prod"}, 1), ({"env": "test"}, 0), ({}, 0))
async def test_the_namespace_selector_looks_at_the_namespace_of_the_object(
    labels: dict[str, str], received: int, hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    selector = {"matchLabels": {"env": "prod"}}
    hooks.configure("Validating", "a", hooks.hook("see", namespaceSelector=selector))
    hooks.state.put(kube_object("v1", "Namespace", "shop", labels=labels))
    await run(validating, write(config_map()))
    assert len(hooks.requests) == received


async def test_namespaces_are_selected_by_their_own_new_labels_and_other_cluster_objects_always(
    hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    selector = {"matchLabels": {"env": "prod"}}
    hooks.configure("Validating", "a", hooks.hook("see", namespaceSelector=selector))
    for labels in ({"env": "prod"}, {"env": "test"}):
        await run(validating, write(kube_object("v1", "Namespace", "shop", labels=labels)))
    await run(validating, write(kube_object("v1", "Node", "n1")))
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
    return kube_object(api_version, "HorizontalPodAutoscaler", "web", "shop", spec=spec)


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


@cases(
    ("object.metadata.labels.app == 'web'", 1),
    ("object.metadata.labels.app == 'db'", 0),
    ("oldObject == null && request.operation == 'CREATE'", 1),
    ("request.userInfo.username == 'ann' && 'devs' in request.userInfo.groups", 1),
    ("request.subResource == '' && !request.dryRun", 1),
    ("authorizer.group('').resource('configmaps').namespace('shop').check('delete').allowed()", 0),
    ("!authorizer.requestResource.check('breakglass').allowed()", 1),
    ("!authorizer.path('/healthz').check('get').allowed()", 1),
)
async def test_all_match_conditions_must_hold(
    expression: str, received: int, hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", matchConditions=condition(expression)))
    await run(validating, write(config_map()))
    assert len(hooks.requests) == received


@cases("object.spec.missing == 1", "object.(", "nothing == 1")
async def test_a_condition_that_fails_is_what_the_failure_policy_says(
    expression: str, hooks: Hooks, validating: ValidatingWebhooks
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
