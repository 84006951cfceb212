"""What becomes of the answers of webhooks, and of those that do not come."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import BadRequest, InternalError
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks
from tests.kube.server.admission.webhooks.hooks import CA, Answer, Hooks, config_map, refusal, respond, run, write
from tests.support.cases import cases

# verdicts


@cases(
    ({"message": "no", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", ": no"),
    ({"message": "no"}, 400, "", ": no"),
    ({"message": "no", "code": 200}, 400, "", ": no"),
    ({"message": "no", "code": 422}, 422, "", ": no"),
    ({"reason": "Because"}, 400, "Because", ": Because"),
    (None, 400, "", " without explanation"),
)
async def test_a_refusal_carries_the_status_of_the_webhook(
    status: Obj | None, code: int, reason: str, message: str, hooks: Hooks, validating: ValidatingWebhooks
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


@cases(
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
)  # fmt: skip
async def test_an_answer_that_cannot_be_used_is_a_failed_call(
    answer: Answer, message: str, hooks: Hooks, mutating: MutatingWebhooks
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


@cases(({"patch": "W10="}, "patch"), ({"patchType": "JSONPatch"}, "patchType"))
async def test_a_validating_webhook_may_not_patch(
    response: Obj, field: str, hooks: Hooks, validating: ValidatingWebhooks
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


@cases("None", "NoneOnDryRun")
async def test_harmless_webhooks_take_part_in_dry_runs(
    side_effects: str, hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", sideEffects=side_effects))
    await run(validating, write(config_map(), dry_run=True))
    assert hooks.requests[0][1]["request"]["dryRun"] is True


@cases("Some", "Unknown")
async def test_a_dry_run_is_refused_where_a_webhook_has_side_effects(
    side_effects: str, hooks: Hooks, validating: ValidatingWebhooks
) -> None:
    hooks.configure("Validating", "a", hooks.hook("see", sideEffects=side_effects, failurePolicy="Ignore"))
    error = await refusal(validating, write(config_map(), dry_run=True))
    assert isinstance(error, BadRequest)
    assert error.message == 'admission webhook "see.example.com" does not support dry run'
    await run(validating, write(config_map()))
