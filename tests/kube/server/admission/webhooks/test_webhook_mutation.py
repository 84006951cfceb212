"""Patches of webhooks, and configurations that change."""

from __future__ import annotations

import base64
from typing import Any

import orjson

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import InternalError
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import DELETE, UPDATE
from karmada.kube.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from tests.kube.server.admission.webhooks.hooks import (
    Hooks,
    config_map,
    deployment,
    labelling,
    patching,
    refusal,
    respond,
    run,
    write,
)
from tests.support.cases import cases
from tests.support.counting import counted_calls
from tests.support.tls_backend import resource_of

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


@cases(("", "status"), ("status", "spec"))
async def test_a_write_of_one_part_stays_one(
    subresource: str, kept: str, hooks: Hooks, mutating: MutatingWebhooks
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


@cases(
    [{"op": "remove", "path": "/data/missing"}],
    [{"op": "test", "path": "/data/a", "value": "2"}],
    [{"op": "replace", "path": "/data", "value": [1]}],
    [{"op": "add", "path": "/metadata", "value": None}],
    [{"op": "jump", "path": "/data"}],
    "text",
    {"op": "add"},
)
async def test_a_patch_that_cannot_be_applied_stops_the_write_whatever_the_policy(
    operations: Any, hooks: Hooks, mutating: MutatingWebhooks
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
    with counted_calls() as calls:
        validating.handles(attributes)
    assert calls.count < 15
