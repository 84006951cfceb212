from __future__ import annotations

import re
from pathlib import Path

import pytest

from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_yaml
from karmada.kube.server.audit.policy import METADATA_ONLY, Level, Policy, parse_policy
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.request import Query, parse_path
from tests.support.cases import cases

JANE = User("jane", groups=("dev", "system:authenticated"))
PODS = "/api/v1/namespaces/shop/pods"


def policy(*rules: Obj, **more: object) -> Policy:
    return parse_policy({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more})


def level(rule: Obj, request: str, user: User | None = JANE) -> Level:
    method, _, path = request.partition(" ")
    path, _, query = path.partition("?")
    return policy(rule).plan(user, parse_path(method, path, Query.parse(query))).level


@cases(
    ({}, f"GET {PODS}", True),
    ({}, "GET /healthz", True),
    ({"users": ["jane"]}, f"GET {PODS}", True),
    ({"users": ["joe"]}, f"GET {PODS}", False),
    ({"userGroups": ["dev", "ops"]}, f"GET {PODS}", True),
    ({"userGroups": ["ops"]}, f"GET {PODS}", False),
    ({"verbs": ["list"]}, f"GET {PODS}", True),
    ({"verbs": ["watch"]}, f"GET {PODS}?watch=1", True),
    ({"verbs": ["delete"]}, f"GET {PODS}", False),
    ({"namespaces": ["shop"]}, f"GET {PODS}", True),
    ({"namespaces": ["other"]}, f"GET {PODS}", False),
    ({"namespaces": [""]}, "GET /api/v1/nodes", True),
    ({"namespaces": [""]}, "GET /healthz", False),
    ({"resources": [{"group": ""}]}, f"GET {PODS}/web/log", True),
    ({"resources": [{"group": "apps"}]}, f"GET {PODS}", False),
    ({"resources": [{"resources": ["pods"]}]}, f"GET {PODS}/web", True),
    ({"resources": [{"resources": ["pods"]}]}, f"GET {PODS}/web/log", False),
    ({"resources": [{"resources": ["pods/log"]}]}, f"GET {PODS}/web/log", True),
    ({"resources": [{"resources": ["pods/*"]}]}, f"GET {PODS}/web/log", True),
    ({"resources": [{"resources": ["*/log"]}]}, f"GET {PODS}/web/log", True),
    ({"resources": [{"resources": ["*/log"]}]}, f"GET {PODS}/web/status", False),
    ({"resources": [{"resources": ["*"]}]}, f"GET {PODS}/web/log", True),
    ({"resources": [{"resources": ["pods"], "resourceNames": ["web"]}]}, f"GET {PODS}/web", True),
    ({"resources": [{"resources": ["pods"], "resourceNames": ["db"]}]}, f"GET {PODS}/web", False),
    ({"resources": [{"resources": ["pods"]}], "namespaces": ["other"]}, f"GET {PODS}", False),
    ({"resources": [{"resources": ["*"]}]}, "GET /healthz", False),
    ({"nonResourceURLs": ["/healthz*"]}, "GET /healthz/ping", True),
    ({"nonResourceURLs": ["/healthz"]}, "GET /healthz/ping", False),
    ({"nonResourceURLs": ["*"]}, "GET /version", True),
    ({"nonResourceURLs": ["*"]}, f"GET {PODS}", False),
)
def test_a_rule_matches(rule: Obj, request_line: str, matches: bool) -> None:
    assert (level({"level": "Request", **rule}, request_line) is Level.REQUEST) is matches


@cases({"users": ["jane"]}, {"userGroups": ["dev"]})
def test_a_rule_about_users_does_not_match_nobody(rule: Obj) -> None:
    assert level({"level": "Metadata", **rule}, f"GET {PODS}", None) is Level.NONE


def test_the_first_rule_that_matches_decides() -> None:
    found = policy({"level": "None", "users": ["jane"]}, {"level": "RequestResponse"})
    info = parse_path("GET", PODS, Query.parse(""))
    assert found.plan(JANE, info).level is Level.NONE
    assert found.plan(User("joe"), info).level is Level.REQUEST_RESPONSE


def test_stages_add_up_and_a_rule_decides_about_managed_fields() -> None:
    found = policy(
        {"level": "Metadata", "verbs": ["list"], "omitStages": ["ResponseStarted"], "omitManagedFields": False},
        {"level": "Metadata"},
        omitStages=["RequestReceived"],
        omitManagedFields=True,
    )
    listed = found.plan(JANE, parse_path("GET", PODS, Query.parse("")))
    assert listed.omit_stages == {"RequestReceived", "ResponseStarted"}
    assert listed.omit_managed_fields is False
    other = found.plan(JANE, parse_path("GET", f"{PODS}/web", Query.parse("")))
    assert other.omit_stages == {"RequestReceived"}
    assert other.omit_managed_fields is True


@cases(
    "/api/v1/namespaces/a/secrets",
    "/api/v1/namespaces/a/secrets/b",
    "/api/v1/namespaces/a/serviceaccounts/b/token",
    "/apis/authentication.k8s.io/v1/tokenreviews",
)
def test_secrets_are_never_more_than_metadata(path: str) -> None:
    assert level({"level": "RequestResponse"}, f"POST {path}") is Level.METADATA
    assert level({"level": "None"}, f"POST {path}") is Level.NONE


def test_without_a_file_every_request_is_one_event_without_bodies() -> None:
    plan = METADATA_ONLY.plan(None, parse_path("GET", PODS, Query.parse("")))
    assert plan.level is Level.METADATA
    assert plan.omit_stages == {"RequestReceived", "ResponseStarted"}


@cases(
    ({"apiVersion": "audit.k8s.io/v1beta1", "kind": "Policy"}, "apiVersion"),
    ({"apiVersion": "audit.k8s.io/v1", "kind": "Event"}, "apiVersion"),
    ({"rules": []}, "rules: at least one"),
    ({"rules": ["x"]}, "rules: must be a list of objects"),
    ({"rules": [{}]}, r"rules\[0\]\.level"),
    ({"rules": [{"level": "Everything"}]}, r"rules\[0\]\.level"),
    ({"rules": [{"level": "Metadata", "user": ["a"]}]}, r"rules\[0\]\.user: unknown field"),
    ({"rules": [{"level": "Metadata", "users": "a"}]}, r"rules\[0\]\.users: must be a list of texts"),
    ({"rules": [{"level": "Metadata", "omitStages": ["Never"]}]}, r"rules\[0\]\.omitStages\[0\]"),
    ({"rules": [{"level": "Metadata"}], "omitStages": ["x"]}, r"omitStages\[0\]"),
    ({"rules": [{"level": "Metadata", "nonResourceURLs": ["a"]}]}, r"nonResourceURLs\[0\]"),
    ({"rules": [{"level": "Metadata", "nonResourceURLs": ["/a*b"]}]}, r"nonResourceURLs\[0\]"),
    ({"rules": [{"level": "Metadata", "nonResourceURLs": ["/a"], "namespaces": ["b"]}]}, "not both"),
    ({"rules": [{"level": "Metadata", "resources": [{"group": "apps/v1"}]}]}, r"resources\[0\]\.group"),
    ({"rules": [{"level": "Metadata", "resources": [{"resourceNames": ["a"]}]}]}, "needs resources"),
    ({"rules": [{"level": "Metadata", "omitManagedFields": "yes"}]}, "true or false"),
)
def test_a_policy_that_makes_no_sense_is_refused_with_its_field(document: Obj, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_policy({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **document})


def test_the_policy_of_the_documentation_is_one() -> None:
    page = (Path(__file__).parents[4] / "docs/security.md").read_text()
    [text] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    documented = parse_policy(load_yaml(text))
    secrets = parse_path("GET", "/api/v1/namespaces/a/secrets", Query.parse(""))
    assert documented.plan(JANE, secrets).level is Level.METADATA
