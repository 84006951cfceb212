from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.objects.types import Obj
from tests.support.objects import kube_object

PATH = "validate-resourceinterpreterwebhookconfiguration"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": ["*"]}
URL = {"url": "https://example.com/hook"}
SUPPORTED = (
    'supported values: "*", "AggregateStatus", "InterpretComponent", "InterpretDependency", "InterpretHealth", '
    '"InterpretReplica", "InterpretStatus", "Retain", "ReviseReplica"'
)


def webhook(**more: Any) -> Obj:
    return {
        "name": "hook.example.com",
        "clientConfig": URL,
        "rules": [RULE],
        "interpreterContextVersions": ["v1alpha1"],
        **more,
    }


def ruled(**more: Any) -> Obj:
    return webhook(rules=[{**RULE, **more}])


def service(**more: Any) -> Obj:
    return webhook(clientConfig={"service": {"name": "s", "namespace": "n", **more}})


AT = "webhooks[0]"
DESIRED = "; desired format: https://host[/path]"
RULES: list[tuple[str, Obj, str]] = [
    ("nothing", webhook(), ""),
    ("two segments with a dot behind", webhook(name="hook.com."), ""),
    ("no name", webhook(name=""), f"{AT}.name: Required value"),
    (
        "one segment",
        webhook(name="hook"),
        f'{AT}.name: Invalid value: "hook": should be a domain with at least two segments separated by dots',
    ),
    (
        "long segment",
        webhook(name=f"{'h' * 64}.com"),
        f'{AT}.name: Invalid value: "{"h" * 64}": must be no more than 63 bytes',
    ),
    ("no operations", ruled(operations=[]), f"{AT}.rules[0].operations: Required value"),
    (
        "all and one operation",
        ruled(operations=["*", "Retain"]),
        f'{AT}.rules[0].operations: Invalid value: ["*","Retain"]: '
        "if '*' is present, must not specify other operations",
    ),
    (
        "unknown operation",
        ruled(operations=["Prune"]),
        f'{AT}.rules[0].operations[0]: Unsupported value: "Prune": {SUPPORTED}',
    ),
    ("no groups", ruled(apiGroups=[]), f"{AT}.rules[0].apiGroups: Required value"),
    (
        "all and one group",
        ruled(apiGroups=["*", "a"]),
        f'{AT}.rules[0].apiGroups: Invalid value: ["*","a"]: if \'*\' is present, must not specify other API groups',
    ),
    (
        "empty version and kind",
        ruled(apiVersions=[""], kinds=["", "*"]),
        f'[{AT}.rules[0].apiVersions[0]: Required value, {AT}.rules[0].kinds: Invalid value: ["","*"]: '
        f"if '*' is present, must not specify other kinds, {AT}.rules[0].kinds[0]: Required value]",
    ),
    (
        "timeout",
        webhook(timeoutSeconds=31),
        f"{AT}.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
    ),
    (
        "two places",
        webhook(clientConfig={**URL, "service": {}}),
        f"{AT}.clientConfig: Required value: exactly one of url or service is required",
    ),
    (
        "no TLS",
        webhook(clientConfig={"url": "http://example.com"}),
        f"{AT}.clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme{DESIRED}",
    ),
    (
        "too much in the URL",
        webhook(clientConfig={"url": "https://u@example.com?a=b#c"}),
        f'[{AT}.clientConfig.url: Invalid value: "u": user information is not permitted in the URL, '
        f'{AT}.clientConfig.url: Invalid value: "c": fragments are not permitted in the URL, '
        f'{AT}.clientConfig.url: Invalid value: "a=b": query parameters are not permitted in the URL]',
    ),
    ("service", service(path="/a/b.c/"), ""),
    (
        "port",
        service(port=0),
        f"{AT}.clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
    ),
    (
        "relative path",
        service(path="a"),
        f"{AT}.clientConfig.service.path: Invalid value: \"a\": must start with a '/'",
    ),
    (
        "empty segment",
        service(path="/a//b"),
        f'{AT}.clientConfig.service.path: Invalid value: "/a//b": segment[1] may not be empty',
    ),
    (
        "no versions",
        webhook(interpreterContextVersions=[]),
        f"{AT}.interpreterContextVersions: Required value: must specify one of v1alpha1",
    ),
    (
        "version twice",
        webhook(interpreterContextVersions=["v1alpha1", "v1alpha1"]),
        f'{AT}.interpreterContextVersions[1]: Invalid value: "v1alpha1": duplicate version',
    ),
    (
        "unknown version",
        webhook(interpreterContextVersions=["v1"]),
        f'{AT}.interpreterContextVersions: Invalid value: ["v1"]: must include at least one of v1alpha1',
    ),
]


def configuration(*webhooks: Obj) -> Obj:
    return kube_object(
        "config.karmada.io/v1alpha1", "ResourceInterpreterWebhookConfiguration", "c", webhooks=list(webhooks)
    )


@pytest.mark.parametrize(("hook", "text"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
async def test_a_configuration_is_refused_for(hook: Obj, text: str, refused: Any) -> None:
    assert await refused(PATH, configuration(hook)) == text


async def test_names_are_unique(refused: Any) -> None:
    text = await refused(PATH, configuration(webhook(), webhook()))
    assert text == 'webhooks[1].name: Duplicate value: "hook.example.com"'


async def test_a_segment_is_a_domain(refused: Any) -> None:
    text = await refused(PATH, configuration(service(path="/A")))
    assert text.startswith('webhooks[0].clientConfig.service.path: Invalid value: "/A": segment[0]: a lowercase RFC')
