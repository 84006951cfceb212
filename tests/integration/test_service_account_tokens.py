"""Tokens of service accounts over the wire: requested, kept in Secrets, void once what they stand on is gone."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.callers import Caller, encoded, server_with_clock, status_with
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.wire import Http

ISSUER = "https://kubernetes.default.svc.cluster.local"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
TOKEN_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"


async def make_account(http: Http, name: str = "robot") -> Obj:
    answer = await http("POST", ACCOUNTS, {"metadata": {"name": name}})
    assert answer.code == 201, answer.body
    made: Obj = answer.json()
    return made


async def request_token(http: Http, name: str = "robot", **spec: Any) -> Obj:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = await http("POST", f"{ACCOUNTS}/{name}/token", body)
    assert answer.code == 201, answer.body
    made: Obj = answer.json()
    return made


async def token_of(http: Http, name: str = "robot", **spec: Any) -> str:
    return str((await request_token(http, name, **spec))["status"]["token"])


def claims(token: str) -> Obj:
    part = token.split(".")[1]
    found: Obj = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


async def test_a_requested_token_says_who_and_for_whom(server: ApiServer, http: Http) -> None:
    account = await make_account(http)
    answer = await request_token(http, expirationSeconds=1200)
    assert answer["kind"] == "TokenRequest"
    assert (answer["metadata"]["name"], answer["metadata"]["namespace"]) == ("robot", "default")
    assert answer["spec"]["audiences"] == [ISSUER]
    said = claims(answer["status"]["token"])
    assert said["iss"] == ISSUER
    assert said["aud"] == [ISSUER]
    assert said["sub"] == "system:serviceaccount:default:robot"
    assert said["exp"] - said["iat"] == 1200
    assert said["jti"]
    expected = {"namespace": "default", "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]}}
    assert said["kubernetes.io"] == expected


async def test_its_bearer_is_the_account(server: ApiServer, http: Http) -> None:
    account = await make_account(http)
    token = await token_of(http)
    async with Caller(server, token=token) as caller:
        who = await caller.who()
        refused = await caller("GET", PODS)
    assert who["username"] == "system:serviceaccount:default:robot"
    assert who["uid"] == account["metadata"]["uid"]
    assert set(who["groups"]) == {
        "system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated",
    }  # fmt: skip
    assert who["extra"]["authentication.kubernetes.io/credential-id"] == [f"JTI={claims(token)['jti']}"]
    assert refused.code == 403
    assert refused.json()["message"] == (
        'pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" '
        'in API group "" in the namespace "default"'
    )


@cases("Bearer", "bearer", "BEARER")
async def test_the_scheme_may_be_written_in_any_case(scheme: str, http: Http) -> None:
    await make_account(http)
    token = await token_of(http)
    answer = await http("GET", "/api", headers={"Authorization": f"{scheme} {token}"}, anonymous=True)
    assert answer.code == 200


@cases("Basic dXNlcjpwYXNz", "Digest x", "Bearer ")
async def test_a_header_that_is_no_bearer_token_is_ignored(authorization: str, http: Http) -> None:
    headers = {"Authorization": authorization}
    assert (await http("GET", "/version", headers=headers, anonymous=True)).code == 200
    answer = await http("GET", "/api/v1/namespaces", headers=headers, anonymous=True)
    assert (answer.code, "system:anonymous" in answer.json()["message"]) == (403, True)


@cases("Bearer nonsense", "Bearer a.b.c", "Bearer abcdef.0123456789abcdef")
async def test_bad_credentials_are_401_and_never_anonymous(authorization: str, http: Http) -> None:
    answer = await http("GET", "/version", headers={"Authorization": authorization}, anonymous=True)
    assert answer.code == 401
    body = answer.json()
    assert (body["reason"], body["message"], body["code"]) == ("Unauthorized", "Unauthorized", 401)
    assert (await http("GET", "/version", anonymous=True)).code == 200


@cases(
    ({"expirationSeconds": 10},
     "spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes"),
    ({"expirationSeconds": 2**32 + 1}, "may not specify a duration larger than 2^32 seconds"),
)  # fmt: skip
async def test_lifetimes_have_limits(spec: Obj, text: str, http: Http) -> None:
    await make_account(http)
    answer = await http("POST", f"{ACCOUNTS}/robot/token", {"spec": spec})
    assert answer.code == 422
    assert text in answer.json()["message"]


async def test_a_token_of_a_missing_account_is_not_to_be_had(http: Http) -> None:
    answer = await http("POST", f"{ACCOUNTS}/nobody/token", {"spec": {}})
    assert answer.code == 404
    assert answer.json()["message"] == 'serviceaccounts "nobody" not found'


async def test_a_token_for_others_does_not_let_in_here(server: ApiServer, http: Http) -> None:
    await make_account(http)
    token = await token_of(http, audiences=["https://elsewhere"])
    assert await status_with(server, token) == 401
    review = await http("POST", REVIEWS, {"spec": {"token": token, "audiences": ["https://elsewhere"]}})
    status = review.json()["status"]
    assert status["authenticated"] is True
    assert status["audiences"] == ["https://elsewhere"]
    assert status["user"]["username"] == "system:serviceaccount:default:robot"
    here = (await http("POST", REVIEWS, {"spec": {"token": token}})).json()["status"]
    assert not here.get("authenticated")
    assert here["error"]


async def test_a_token_ends_with_its_time(certificates: Path) -> None:
    async with server_with_clock(certificates) as (server, clock):
        http = Http(server)
        await make_account(http)
        token = await token_of(http, expirationSeconds=600)
        assert await status_with(server, token) == 200
        await clock.advance(minutes=11)
        assert await status_with(server, token) == 401
        await http.close()


async def test_deleting_the_account_voids_its_tokens_at_once(server: ApiServer, http: Http) -> None:
    await make_account(http)
    token = await token_of(http)
    async with Caller(server, token=token) as caller:
        assert (await caller("GET", "/api")).code == 200
        assert (await http("DELETE", f"{ACCOUNTS}/robot")).code == 200
        assert (await caller("GET", "/api")).code == 401
        await make_account(http)
        assert (await caller("GET", "/api")).code == 401, "an account of the same name is another one"


@cases("Pod", "Secret", "Node")
async def test_a_token_lives_and_dies_with_the_object_it_is_bound_to(kind: str, server: ApiServer, http: Http) -> None:
    await make_account(http)
    container = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "robot"}
    path, body = {
        "Pod": (PODS, {"metadata": {"name": "bound"}, "spec": container}),
        "Secret": (SECRETS, {"metadata": {"name": "bound"}}),
        "Node": ("/api/v1/nodes", {"metadata": {"name": "bound"}}),
    }[kind]
    bound = (await http("POST", path, body)).json()
    reference = {"apiVersion": "v1", "kind": kind, "name": "bound", "uid": bound["metadata"]["uid"]}
    token = await token_of(http, boundObjectRef=reference)
    assert claims(token)["kubernetes.io"][kind.lower()] == {"name": "bound", "uid": bound["metadata"]["uid"]}
    async with Caller(server, token=token) as caller:
        extra = (await caller.who())["extra"]
        if kind != "Secret":
            assert extra[f"authentication.kubernetes.io/{kind.lower()}-name"] == ["bound"]
            assert extra[f"authentication.kubernetes.io/{kind.lower()}-uid"] == [bound["metadata"]["uid"]]
        assert (await http("DELETE", f"{path}/bound?gracePeriodSeconds=0")).code == 200
        assert (await caller("GET", "/api")).code == 401


async def test_a_token_cannot_be_bound_to_another_object_of_the_name(http: Http) -> None:
    await make_account(http)
    await http("POST", SECRETS, {"metadata": {"name": "bound"}})
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "bound", "uid": "another"}
    answer = await http("POST", f"{ACCOUNTS}/robot/token", {"spec": {"boundObjectRef": reference}})
    assert answer.code == 409
    assert (
        "the UID in the bound object reference (another) does not match the UID in record" in answer.json()["message"]
    )


# token Secrets


def token_secret(name: str = "robot-token", account: str = "robot") -> Obj:
    return {"metadata": {"name": name, "annotations": {ACCOUNT_NAME: account}}, "type": TOKEN_TYPE}


def stored_secret(server: ApiServer, name: str = "robot-token") -> Obj | None:
    return server.cache.get(GVR("", "v1", "secrets").group_resource, "default", name)


def filled(server: ApiServer, name: str = "robot-token") -> str:
    data = (stored_secret(server, name) or {}).get("data") or {}
    return base64.b64decode(data.get("token") or "").decode()


async def test_a_token_secret_is_filled(server: ApiServer, http: Http) -> None:
    account = await make_account(http)
    assert (await http("POST", SECRETS, token_secret())).code == 201
    token = await eventually(lambda: filled(server))
    secret = stored_secret(server)
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
    assert base64.b64decode(secret["data"]["ca.crt"]) == server.pki.ca.cert_pem
    assert base64.b64decode(secret["data"]["namespace"]) == b"default"
    said = claims(token)
    assert said["iss"] == "kubernetes/serviceaccount"
    assert "exp" not in said
    prefix = "kubernetes.io/serviceaccount/"
    assert said[f"{prefix}namespace"] == "default"
    assert said[f"{prefix}secret.name"] == "robot-token"
    assert said[f"{prefix}service-account.name"] == "robot"
    assert said[f"{prefix}service-account.uid"] == account["metadata"]["uid"]
    async with Caller(server, token=token) as caller:
        assert (await caller.who())["username"] == "system:serviceaccount:default:robot"


async def test_a_token_secret_made_before_its_account_is_deleted(server: ApiServer, http: Http) -> None:
    await http("POST", SECRETS, token_secret(account="nobody"))
    await eventually(lambda: stored_secret(server) is None)


async def test_what_is_taken_out_of_a_token_secret_comes_back(server: ApiServer, http: Http) -> None:
    await make_account(http)
    await http("POST", SECRETS, token_secret())
    await eventually(lambda: filled(server))
    patch = {"data": {"ca.crt": encoded("forged"), "token": None}}
    await http("PATCH", f"{SECRETS}/robot-token", patch, content_type="application/merge-patch+json")
    await eventually(lambda: filled(server) and stored_secret(server)["data"]["ca.crt"] != encoded("forged"))


async def test_a_token_secret_goes_with_its_account_and_its_token_at_once(server: ApiServer, http: Http) -> None:
    await make_account(http)
    await http("POST", SECRETS, token_secret())
    token = await eventually(lambda: filled(server))
    assert await status_with(server, token) == 200
    await http("DELETE", f"{ACCOUNTS}/robot")
    assert await status_with(server, token) == 401
    await eventually(lambda: stored_secret(server) is None)


async def test_deleting_the_secret_voids_its_token_at_once(server: ApiServer, http: Http) -> None:
    await make_account(http)
    await http("POST", SECRETS, token_secret())
    token = await eventually(lambda: filled(server))
    await http("DELETE", f"{SECRETS}/robot-token")
    assert await status_with(server, token) == 401


async def test_a_token_secret_without_an_account_is_refused(http: Http) -> None:
    answer = await http("POST", SECRETS, {"metadata": {"name": "x"}, "type": TOKEN_TYPE})
    assert answer.code == 422
    assert f"metadata.annotations[{ACCOUNT_NAME}]: Required value" in answer.json()["message"]


async def test_no_token_secret_is_made_without_being_requested(server: ApiServer, http: Http) -> None:
    await make_account(http)
    assert "secrets" not in (await http("GET", f"{ACCOUNTS}/robot")).json()
    assert (await http("GET", f"{SECRETS}?fieldSelector=type={TOKEN_TYPE}")).json()["items"] == []


async def test_others_can_verify_tokens_by_the_published_keys(server: ApiServer, http: Http) -> None:
    config = (await http("GET", "/.well-known/openid-configuration")).json()
    assert config["issuer"] == ISSUER
    keys = await http("GET", "/openid/v1/jwks", headers={"Accept": "*/*"})
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    await make_account(http)
    header = (await token_of(http)).split(".")[0]
    kid = json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))["kid"]
    assert kid in [key["kid"] for key in keys.json()["keys"]]
