from __future__ import annotations

import asyncio
from typing import Any

import pytest

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.authentication import Authenticator, parse_token_file
from karmada.kube.server.auth.jwt import KeySet, SigningKey
from karmada.kube.server.auth.pki import generate_key_pem
from karmada.kube.server.auth.reviews import review
from karmada.kube.server.auth.service_accounts import ServiceAccountTokens
from karmada.kube.server.auth.tokens import DEFAULT_ISSUER, TokenIssuer
from karmada.kube.server.auth.user import User
from tests.kube.server.auth.auth_fakes import NOW, FakeReader, account, authorizer, binding, role, rule, urls
from tests.support.cases import cases

ME = User("me", "uid-1", ("dev", "system:authenticated"), {"k": ("v",)})
KEY = SigningKey(generate_key_pem())
READER = FakeReader([
    account(),
    role("reader", rule("get list", "", "pods"), rule("get", "apps", "deployments", "web"), urls("get", "/metrics")),
    role("local", rule("create", "", "configmaps"), namespace="ns"),
    binding("dev", "ClusterRole/reader", "group:dev"),
    binding("local", "Role/local", "user:me", namespace="ns"),
    binding("broken", "ClusterRole/gone", "user:lost"),
])  # fmt: skip


def authorize(
    kind: str, spec: Obj | None = None, *, user: User = ME, namespace: str = "", metadata: Obj | None = None
) -> Obj:
    tokens = ServiceAccountTokens(KeySet([KEY.public]), [DEFAULT_ISSUER], [DEFAULT_ISSUER], READER, lambda: NOW)
    authenticator = Authenticator(
        READER,
        now=lambda: NOW,
        service_accounts=tokens,
        static_tokens=parse_token_file("static,ann,uid-2"),
        audiences=[DEFAULT_ISSUER],
    )
    obj: Obj = {"apiVersion": "x/v1", "kind": kind, "metadata": metadata or {}, "spec": spec or {}}
    return asyncio.run(review(kind, obj, user, authorizer(READER), authenticator, namespace=namespace, now=NOW))


def resource(verb: str, plural: str, **more: Any) -> Obj:
    return {"resourceAttributes": {"verb": verb, "resource": plural, **more}}


ALLOWED = 'RBAC: allowed by ClusterRoleBinding "dev" of ClusterRole "reader" to Group "dev"'


@cases(
    (resource("get", "pods"), {"allowed": True, "reason": ALLOWED}),
    (resource("delete", "pods", namespace="ns"), {"allowed": False}),
    (resource("get", "deployments", group="apps", name="web"), {"allowed": True, "reason": ALLOWED}),
    (resource("get", "deployments", group="apps"), {"allowed": False}),
    ({"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}, {"allowed": True, "reason": ALLOWED}),
    ({"nonResourceAttributes": {"path": "/logs", "verb": "get"}}, {"allowed": False}),
)
def test_access_is_reviewed(spec: Obj, status: Obj) -> None:
    answer = authorize("SelfSubjectAccessReview", spec)
    assert answer["status"] == status
    assert answer["spec"] == spec
    assert answer["apiVersion"] == "x/v1"
    about_others = {**spec, "user": "else", "groups": ["dev"]}
    assert authorize("SubjectAccessReview", about_others, user=User("x"))["status"] == status


def test_a_missing_role_is_the_reason_of_a_denial() -> None:
    answer = authorize("SubjectAccessReview", {**resource("get", "pods"), "user": "lost"})
    why = 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert answer["status"] == {"allowed": False, "reason": why}


def test_a_local_review_stays_in_its_namespace() -> None:
    spec = {**resource("create", "configmaps", namespace="ns"), "user": "me"}
    assert authorize("LocalSubjectAccessReview", spec, namespace="ns", metadata={"namespace": "ns"})["status"][
        "allowed"
    ]
    assert authorize("LocalSubjectAccessReview", spec, namespace="ns")["status"]["allowed"]


BOTH = {**resource("get", "pods"), "nonResourceAttributes": {"path": "/x", "verb": "get"}}


@cases(
    (
        "SelfSubjectAccessReview",
        {},
        {},
        "spec.resourceAttributes: Invalid value: null: "
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
    ),
    (
        "SelfSubjectAccessReview",
        BOTH,
        {},
        'spec.nonResourceAttributes: Invalid value: {"path":"/x","verb":"get"}: '
        "cannot be specified in combination with resourceAttributes",
    ),
    (
        "SubjectAccessReview",
        resource("get", "pods"),
        {},
        'spec.user: Invalid value: "": at least one of user or group must be specified',
    ),
    (
        "SubjectAccessReview",
        {**resource("get", "pods"), "user": "x"},
        {"name": "n"},
        'metadata: Invalid value: {"name":"n"}: must be empty',
    ),
    (
        "LocalSubjectAccessReview",
        {**resource("get", "pods", namespace="other"), "user": "x"},
        {"namespace": "ns"},
        'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace',
    ),
    (
        "LocalSubjectAccessReview",
        {"nonResourceAttributes": {"path": "/x"}, "user": "x"},
        {"namespace": "ns"},
        'spec.nonResourceAttributes: Invalid value: {"path":"/x"}: disallowed on this kind of request',
    ),
    (
        "LocalSubjectAccessReview",
        {**resource("get", "pods", namespace="ns"), "user": "x"},
        {"namespace": "ns", "name": "n"},
        'metadata: Invalid value: {"namespace":"ns","name":"n"}: must be empty except for namespace',
    ),
)
def test_bad_questions_are_invalid(kind: str, spec: Obj, metadata: Obj, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        authorize(kind, spec, namespace="ns", metadata=metadata)
    assert caught.value.http_code == 422
    assert caught.value.message == f'.authorization.k8s.io "" is invalid: {message}'


def test_a_local_review_for_another_namespace_than_the_address_names_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        authorize(
            "LocalSubjectAccessReview",
            {**resource("get", "pods"), "user": "x"},
            namespace="a",
            metadata={"namespace": "b"},
        )
    assert caught.value.http_code == 400


def test_the_rules_review_lists_what_one_may_do() -> None:
    status = authorize("SelfSubjectRulesReview", {"namespace": "ns"})["status"]
    assert status == {
        "resourceRules": [
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"]},
            {"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]},
        ],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}],
        "incomplete": False,
    }
    lost = authorize("SelfSubjectRulesReview", {"namespace": "ns"}, user=User("lost"))["status"]
    assert lost["evaluationError"] == 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    with pytest.raises(ApiError, match="no namespace on request"):
        authorize("SelfSubjectRulesReview")


def test_the_self_review_says_who_one_is() -> None:
    answer = authorize("SelfSubjectReview")
    assert answer["metadata"] == {"creationTimestamp": "2023-11-14T22:13:20Z"}
    assert answer["status"]["userInfo"] == {
        "username": "me",
        "uid": "uid-1",
        "groups": ["dev", "system:authenticated"],
        "extra": {"k": ["v"]},
    }


def bound(*audiences: str, seconds: int = 3600, start: float = NOW) -> str:
    return TokenIssuer(KEY, now=lambda: start).bound_token(account(), audiences or [DEFAULT_ISSUER], seconds)


def test_a_token_review_says_whose_token_it_is() -> None:
    status = authorize("TokenReview", {"token": bound()})["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:default:robot"
    assert status["user"]["groups"][-1] == "system:authenticated"
    assert status["audiences"] == [DEFAULT_ISSUER]
    assert authorize("TokenReview", {"token": bound("vault", "x"), "audiences": ["vault"]})["status"]["audiences"] == [
        "vault"
    ]
    static = authorize("TokenReview", {"token": "static", "audiences": [DEFAULT_ISSUER, "y"]})["status"]
    assert (static["user"]["username"], static["audiences"]) == ("ann", [DEFAULT_ISSUER])


@cases(
    ({"token": "nobody's"}, "invalid bearer token"),
    ({"token": bound(start=NOW - 7200)}, "[invalid bearer token, service account token has expired]"),
    ({"token": bound("vault")}, "[invalid bearer token, token audiences do not include the target audiences]"),
    (
        {"token": "static", "audiences": ["vault"]},
        "[invalid bearer token, token audiences do not include the target audiences]",
    ),
)
def test_a_token_review_of_a_bad_token_reports_why(spec: Obj, error: str) -> None:
    assert authorize("TokenReview", spec)["status"] == {"user": {}, "error": error}


def test_a_token_review_needs_a_token() -> None:
    with pytest.raises(ApiError) as caught:
        authorize("TokenReview", {})
    assert caught.value.http_code == 400
