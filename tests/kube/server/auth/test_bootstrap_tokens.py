from __future__ import annotations

import base64
from typing import Any

import pytest

from karmada.kube.objects.bootstrap_tokens import BootstrapToken, detached_signature
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.bootstrap_tokens import (
    authenticate,
    seconds_left,
    sign_cluster_info,
)
from karmada.kube.server.auth.jwt import TokenError
from tests.kube.server.auth.auth_fakes import NOW, FakeReader
from tests.support.cases import cases

TOKEN = "abcdef.0123456789abcdef"
GOOD = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
    "usage-bootstrap-signing": "true",
}


def token_secret(values: dict[str, str], *, kind: str = "bootstrap.kubernetes.io/token", **meta: Any) -> Obj:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    metadata = {"name": "bootstrap-token-abcdef", "namespace": "kube-system", **meta}
    return {"kind": "Secret", "metadata": metadata, "type": kind, "data": data}


def test_a_bootstrap_token_gives_a_user_with_its_groups() -> None:
    extra = "system:bootstrappers:karmada:default-cluster-token,system:bootstrappers:a"
    user = authenticate(TOKEN, FakeReader([token_secret({**GOOD, "auth-extra-groups": extra})]), NOW)
    assert user.name == "system:bootstrap:abcdef"
    assert user.groups == (
        "system:bootstrappers",
        "system:bootstrappers:a",
        "system:bootstrappers:karmada:default-cluster-token",
    )


@cases(
    token_secret({**GOOD, "token-secret": "0123456789abcdeX"}),
    token_secret({**GOOD, "token-id": "ghijkl"}),
    token_secret({**GOOD, "usage-bootstrap-authentication": "false"}),
    token_secret({**GOOD, "expiration": "2023-11-14T22:13:19Z"}),
    token_secret({**GOOD, "expiration": "tomorrow"}),
    token_secret({**GOOD, "auth-extra-groups": "system:masters"}),
    token_secret({**GOOD, "auth-extra-groups": "system:bootstrappers:a,system:bootstrappers:"}),
    token_secret({**GOOD, "auth-extra-groups": "system:bootstrappers:a b"}),
    token_secret(GOOD, kind="Opaque"),
    token_secret(GOOD, deletionTimestamp="2023-11-14T22:13:19Z"),
    token_secret(GOOD, namespace="default"),
    token_secret({}),
)
def test_a_bootstrap_token_that_is_not_good_is_refused(secret: Obj) -> None:
    with pytest.raises(TokenError) as caught:
        authenticate(TOKEN, FakeReader([secret]), NOW)
    assert "0123456789" not in str(caught.value)


@cases("abcdef", "abcdef.0123", "ABCDEF.0123456789abcdef", TOKEN + "\n", "")
def test_other_texts_are_no_bootstrap_tokens(token: str) -> None:
    with pytest.raises(TokenError):
        authenticate(token, FakeReader([token_secret(GOOD)]), NOW)


@cases(("", None), ("2023-11-14T22:14:20Z", 60.0), ("2023-11-14T22:00:00Z", 0.0), ("never", 0.0))
def test_the_cleaner_knows_how_long_a_token_lives(expiration: str, left: float | None) -> None:
    assert seconds_left(token_secret({**GOOD, "expiration": expiration}), NOW) == left


def test_a_detached_signature_has_the_known_form() -> None:
    content = "apiVersion: v1\nkind: Config\n"
    expected = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..vH_kT4yiol-nrAWgjfCYqvum5wsKETXe0S7OOp1VgnE"
    assert detached_signature(content, BootstrapToken("abcdef", "0123456789abcdef")) == expected


def cluster_info(**data: str) -> Obj:
    return {"kind": "ConfigMap", "metadata": {"name": "cluster-info", "namespace": "kube-public"}, "data": data}


def test_cluster_info_gets_the_signatures_of_good_tokens_and_loses_the_others() -> None:
    info = cluster_info(kubeconfig="k", note="stays", **{"jws-kubeconfig-gone00": "old"})
    signed = sign_cluster_info(info, [token_secret(GOOD)], NOW)
    assert signed is not None
    expected = detached_signature("k", BootstrapToken("abcdef", "0123456789abcdef"))
    assert signed["data"] == {"kubeconfig": "k", "note": "stays", "jws-kubeconfig-abcdef": expected}
    assert info["data"]["jws-kubeconfig-gone00"] == "old"
    assert sign_cluster_info(signed, [token_secret(GOOD)], NOW) is None


@cases(
    token_secret({**GOOD, "usage-bootstrap-signing": "false"}),
    token_secret({**GOOD, "expiration": "2023-11-14T22:13:19Z"}),
    token_secret({**GOOD, "token-id": "ghijkl"}),
    token_secret({**GOOD, "token-secret": ""}),
    token_secret(GOOD, kind="Opaque"),
    token_secret(GOOD, deletionTimestamp="2023-11-14T22:13:19Z"),
)
def test_tokens_that_may_not_sign_do_not(secret: Obj) -> None:
    assert sign_cluster_info(cluster_info(kubeconfig="k"), [secret], NOW) is None


def test_cluster_info_without_a_kubeconfig_is_left_alone() -> None:
    assert sign_cluster_info(cluster_info(), [token_secret(GOOD)], NOW) is None
