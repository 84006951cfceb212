from __future__ import annotations

import base64
from typing import Any

import pytest

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.jwt import KeySet, SigningKey, TokenError, read_token
from karmada.kube.server.auth.pki import generate_key_pem
from karmada.kube.server.auth.service_accounts import ServiceAccountTokens, split_username
from karmada.kube.server.auth.tokens import (
    DEFAULT_ISSUER,
    TokenIssuer,
    openid_configuration,
    orphaned,
    populate,
    request_token,
)
from tests.kube.server.auth.auth_fakes import NOW, FakeReader, account
from tests.support.cases import cases

KEY = SigningKey(generate_key_pem())
OTHER = SigningKey(generate_key_pem())
OWN = (DEFAULT_ISSUER,)


def claims_of(token: str) -> dict[str, Any]:
    return read_token(token)[1]


def pod(**more: Any) -> Obj:
    spec = {"serviceAccountName": "robot", "nodeName": "n1"}
    return {"kind": "Pod", "metadata": {"name": "p", "namespace": "default", "uid": "pod-1", **more}, "spec": spec}


def node(uid: str = "node-1") -> Obj:
    return {"kind": "Node", "metadata": {"name": "n1", "uid": uid}}


def secret(uid: str = "secret-1", **more: Any) -> Obj:
    meta = {"name": "s", "namespace": "default", "uid": uid}
    return {"kind": "Secret", "metadata": meta, "type": "kubernetes.io/service-account-token", **more}


class Setup:
    def __init__(self) -> None:
        self.time = NOW
        self.reader = FakeReader([account(), pod(), node(), secret()])
        self.issuer = TokenIssuer(KEY, now=lambda: self.time)
        self.tokens = ServiceAccountTokens(KeySet([KEY.public]), OWN, OWN, self.reader, lambda: self.time)

    def request(self, spec: Obj | None = None, **more: Any) -> Obj:
        return request_token(account(), {"spec": spec or {}}, self.issuer, self.reader, **more)

    def token(self, **spec: Any) -> str:
        return str(self.request(spec)["status"]["token"])


@pytest.fixture
def setup() -> Setup:
    return Setup()


def bound_to(kind: str, name: str, **more: Any) -> Obj:
    return {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, **more}}


# --- requesting


def test_a_token_request_is_answered_with_its_defaults(setup: Setup) -> None:
    answer = setup.request()
    assert answer["apiVersion"] == "authentication.k8s.io/v1"
    assert answer["spec"] == {"audiences": [DEFAULT_ISSUER], "expirationSeconds": 3600}
    assert answer["metadata"]["name"] == "robot"
    assert answer["metadata"]["namespace"] == "default"
    assert answer["metadata"]["uid"]
    assert answer["status"]["expirationTimestamp"] == "2023-11-14T23:13:20Z"
    claims = claims_of(answer["status"]["token"])
    assert claims.pop("jti")
    assert claims == {
        "iss": DEFAULT_ISSUER,
        "sub": "system:serviceaccount:default:robot",
        "aud": [DEFAULT_ISSUER],
        "iat": NOW,
        "nbf": NOW,
        "exp": NOW + 3600,
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": "sa-1"}},
    }


@cases(
    (
        {"expirationSeconds": 10},
        422,
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: '
        "may not specify a duration less than 10 minutes",
    ),
    ({"expirationSeconds": 0}, 422, None),
    ({"expirationSeconds": 2**32 + 1}, 422, None),
    (bound_to("ConfigMap", "x"), 400, "cannot bind token to object of type v1, Kind=ConfigMap"),
    (bound_to("Pod", "gone"), 404, 'pods "gone" not found'),
    (bound_to("Secret", "gone"), 404, 'secrets "gone" not found'),
    (bound_to("Node", "gone"), 404, 'nodes "gone" not found'),
    (bound_to("Pod", "p", uid="other"), 409, None),
)
def test_a_bad_token_request_is_refused(spec: Obj, code: int, message: str | None, setup: Setup) -> None:
    with pytest.raises(ApiError) as caught:
        setup.request(spec)
    assert caught.value.http_code == code
    if message:
        assert caught.value.message == message


@cases({"namespace": "other"}, {"name": "other"})
def test_a_token_request_for_another_account_than_the_address_names_is_refused(metadata: Obj, setup: Setup) -> None:
    with pytest.raises(ApiError) as caught:
        request_token(account(), {"metadata": metadata, "spec": {}}, setup.issuer, setup.reader)
    assert caught.value.http_code == 400


def test_a_pod_of_another_account_cannot_be_bound(setup: Setup) -> None:
    other = account("other", uid="sa-2")
    with pytest.raises(ApiError, match='serviceaccount "other" to pod running with different serviceaccount name'):
        request_token(other, {"spec": bound_to("Pod", "p")}, setup.issuer, setup.reader)


def test_the_server_shortens_what_is_too_long_and_says_so(setup: Setup) -> None:
    warnings: list[str] = []
    answer = setup.request({"expirationSeconds": 90000}, warnings=warnings, max_seconds=7200)
    assert answer["spec"]["expirationSeconds"] == 7200
    assert warnings == ["requested expiration of 90000 seconds shortened to 7200 seconds"]


def test_tokens_that_admission_mounts_into_pods_live_longer_than_they_say(setup: Setup) -> None:
    answer = setup.request({"expirationSeconds": 3607, **bound_to("Pod", "p")})
    claims = claims_of(answer["status"]["token"])
    assert claims["exp"] == NOW + 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] == NOW + 3607
    assert answer["status"]["expirationTimestamp"] == "2023-11-14T23:13:27Z"
    plain = setup.request({"expirationSeconds": 3607})
    assert claims_of(plain["status"]["token"])["exp"] == NOW + 3607


# --- verifying


def test_a_pod_token_carries_pod_and_node(setup: Setup) -> None:
    user, audiences = setup.tokens.authenticate(setup.token(**bound_to("Pod", "p", uid="pod-1")))
    assert user.uid == "sa-1"
    assert audiences == OWN
    credential = user.extra["authentication.kubernetes.io/credential-id"]
    assert credential[0].startswith("JTI=")
    assert {key.rpartition("/")[2]: value for key, value in user.extra.items() if "credential" not in key} == {
        "pod-name": ("p",),
        "pod-uid": ("pod-1",),
        "node-name": ("n1",),
        "node-uid": ("node-1",),
    }


def test_a_verified_token_gives_the_same_user_again(setup: Setup) -> None:
    token = setup.token()
    assert setup.tokens.authenticate(token)[0] is setup.tokens.authenticate(token)[0]


def test_a_token_ends_with_its_time(setup: Setup) -> None:
    token = setup.token(expirationSeconds=600)
    setup.time = NOW + 599
    setup.tokens.authenticate(token)
    setup.time = NOW + 600
    with pytest.raises(TokenError, match="expired"):
        setup.tokens.authenticate(token)


def test_a_token_from_the_future_is_refused(setup: Setup) -> None:
    token = setup.token()
    setup.time = NOW - 59
    setup.tokens.authenticate(token)
    setup.time = NOW - 61
    with pytest.raises(TokenError, match="not valid yet"):
        setup.tokens.authenticate(token)


@cases(
    (["vault"], (), None),
    (["vault"], ("vault",), ("vault",)),
    (["vault", DEFAULT_ISSUER], (), OWN),
    ([DEFAULT_ISSUER], ("vault",), None),
    (["a", "b"], ("b", "c"), ("b",)),
)
def test_a_token_is_good_for_its_audiences_only(
    audiences: list[str], wanted: tuple[str, ...], common: tuple[str, ...] | None, setup: Setup
) -> None:
    token = setup.token(audiences=audiences)
    if common is None:
        with pytest.raises(TokenError, match="audiences"):
            setup.tokens.authenticate(token, wanted)
    else:
        assert setup.tokens.authenticate(token, wanted)[1] == common


@cases(
    ({}, account(uid="sa-2")),
    ({}, ("ServiceAccount", "default", "robot")),
    (bound_to("Pod", "p"), pod(uid="pod-2")),
    (bound_to("Pod", "p"), pod(deletionTimestamp="2023-11-14T22:12:00Z")),
    (bound_to("Pod", "p"), ("Pod", "default", "p")),
    (bound_to("Secret", "s"), secret("secret-2")),
    (bound_to("Secret", "s"), ("Secret", "default", "s")),
    (bound_to("Node", "n1"), node("node-2")),
    (bound_to("Node", "n1"), ("Node", "", "n1")),
)
def test_a_token_dies_at_once_with_what_it_is_bound_to(bound: Obj, change: Any, setup: Setup) -> None:
    token = setup.token(**bound)
    setup.tokens.authenticate(token)
    if isinstance(change, tuple):
        setup.reader.remove(*change)
    else:
        setup.reader.put(change)
    with pytest.raises(TokenError):
        setup.tokens.authenticate(token)


def test_a_pod_token_survives_its_node_and_its_pods_last_minute(setup: Setup) -> None:
    token = setup.token(**bound_to("Pod", "p"))
    setup.reader.remove("Node", "", "n1")
    setup.reader.put(pod(deletionTimestamp="2023-11-14T22:13:00Z"))
    setup.tokens.authenticate(token)


def _claims(**changes: Any) -> dict[str, Any]:
    claims = {
        "iss": DEFAULT_ISSUER,
        "sub": "system:serviceaccount:default:robot",
        "aud": [DEFAULT_ISSUER],
        "exp": NOW + 3600,
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": "sa-1"}},
        **changes,
    }
    return {key: value for key, value in claims.items() if value is not None}


@cases(
    (OTHER, _claims()),
    (KEY, _claims(iss="https://elsewhere")),
    (KEY, _claims(iss=None)),
    (KEY, _claims(sub="system:serviceaccount:default:admin")),
    (KEY, _claims(exp=None)),
    (KEY, _claims(exp="soon")),
    (KEY, _claims(aud=None)),
    (KEY, _claims(aud=[])),
    (KEY, _claims(**{"kubernetes.io": None})),
    (KEY, _claims(**{"kubernetes.io": {"namespace": "default"}})),
    (KEY, _claims(**{"kubernetes.io": "x"})),
    (KEY, {"iss": "kubernetes/serviceaccount"}),
)
def test_tokens_with_wrong_claims_are_refused(key: SigningKey, claims: dict[str, Any], setup: Setup) -> None:
    setup.tokens.authenticate(KEY.sign(_claims()))
    with pytest.raises(TokenError):
        setup.tokens.authenticate(key.sign(claims))


# --- token Secrets


def filled(setup: Setup) -> tuple[Obj, str]:
    made = populate(secret(), account(), setup.issuer, b"CA")
    assert made is not None
    setup.reader.put(made)
    return made, base64.b64decode(made["data"]["token"]).decode()


def test_a_token_secret_is_filled_once(setup: Setup) -> None:
    made, token = filled(setup)
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/service-account.name": "robot",
        "kubernetes.io/service-account.uid": "sa-1",
    }
    assert base64.b64decode(made["data"]["ca.crt"]) == b"CA"
    assert base64.b64decode(made["data"]["namespace"]) == b"default"
    assert claims_of(token) == {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:default:robot",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "s",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": "sa-1",
    }
    assert populate(made, account(), setup.issuer, b"CA") is None
    renewed = populate(made, account(), setup.issuer, b"NEW CA")
    assert renewed is not None
    assert renewed["data"]["token"] == made["data"]["token"]


def test_a_token_secret_goes_with_its_account() -> None:
    annotated = secret()
    annotated["metadata"]["annotations"] = {"kubernetes.io/service-account.uid": "sa-1"}
    assert orphaned(annotated, None)
    assert orphaned(annotated, account(uid="sa-2"))
    assert not orphaned(annotated, account())
    assert not orphaned(secret(), account())


def test_a_legacy_token_never_ends(setup: Setup) -> None:
    _, token = filled(setup)
    setup.time = NOW + 1e9
    user, audiences = setup.tokens.authenticate(token)
    assert user.name == "system:serviceaccount:default:robot"
    assert audiences == OWN


def test_a_legacy_token_is_good_while_its_secret_holds_it(setup: Setup) -> None:
    made, token = filled(setup)
    setup.tokens.authenticate(token)
    for change in (
        {**made, "data": {**made["data"], "token": base64.b64encode(b"other").decode()}},
        {**made, "data": {}},
        {
            **made,
            "metadata": {**made["metadata"], "labels": {"kubernetes.io/legacy-token-invalid-since": "2023-01-01"}},
        },
    ):
        setup.reader.put(change)
        with pytest.raises(TokenError):
            setup.tokens.authenticate(token)
    setup.reader.put(made)
    setup.tokens.authenticate(token)
    setup.reader.remove("Secret", "default", "s")
    with pytest.raises(TokenError):
        setup.tokens.authenticate(token)


# --- names and documents


@cases(
    ("system:serviceaccount:ns:n", ("ns", "n")),
    ("system:serviceaccount:ns:", None),
    ("system:serviceaccount::n", None),
    ("system:serviceaccount:ns:n:x", None),
    ("ns:n", None),
)
def test_user_names_of_service_accounts(user: str, parts: tuple[str, str] | None) -> None:
    assert split_username(user) == parts


def test_the_issuer_document_points_to_the_keys() -> None:
    document = openid_configuration(DEFAULT_ISSUER, KeySet([KEY.public]), "https://10.0.0.1:5443/")
    assert document == {
        "issuer": DEFAULT_ISSUER,
        "jwks_uri": "https://10.0.0.1:5443/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
