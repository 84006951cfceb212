"""From a Cluster and its Secret to a way there, or to a text that says why there is none."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.client.config import RestConfig
from karmada.members.access import NoAccess, access_of
from tests.support.certificates import Authority

PEM = Authority().pem
SECRET = "sup3rsecret"


def access(data: dict[str, bytes], **spec: Any) -> RestConfig:
    reference = {"namespace": "ns", "name": "m1"}
    cluster = {"metadata": {"name": "m1"}, "spec": {"apiEndpoint": "https://10.0.0.1", "secretRef": reference, **spec}}
    secret = {"metadata": reference, "data": {key: base64.b64encode(value).decode() for key, value in data.items()}}
    return access_of(cluster, secret)


def kubeconfig(document: Any) -> dict[str, bytes]:
    return {"kubeconfig": yaml.safe_dump(document).encode()}


def whole(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.9:6443", **(cluster or {})}}],
        "users": [{"name": "c", "user": user or {}}],
    }


GOOD = {"token": SECRET.encode(), "caBundle": PEM}

BROKEN: list[tuple[dict[str, bytes], dict[str, Any], str]] = [
    (GOOD | {"caBundle": b"\x30\x82\xff\xfe\x00"}, {}, "the CA bundle holds no certificates in PEM"),
    (GOOD | {"caBundle": b"no certificate"}, {}, "the CA bundle holds no certificates in PEM"),
    (GOOD | {"token": f"{SECRET}\nx".encode()}, {}, "the token has characters that no token can have"),
    (GOOD | {"token": f"{SECRET}\xff".encode("latin-1")}, {}, "the token has characters that no token can have"),
    (GOOD, {"apiEndpoint": "https://[bad"}, "the server's address cannot be understood"),
    (GOOD, {"apiEndpoint": "https://host:port"}, "the server's address cannot be understood"),
    (GOOD, {"apiEndpoint": "https://"}, "the server's address has no host"),
    (GOOD, {"apiEndpoint": "ftp://host"}, "the server's address must begin with one of https://, http://"),
    (GOOD, {"apiEndpoint": "https://a b"}, "the server's address has characters"),
    (GOOD, {"proxyURL": "http://[bad"}, "the proxy's address cannot be understood"),
    (GOOD, {"proxyURL": "http://p", "proxyHeader": {"X": "a\nb"}}, "the proxy's headers cannot be sent"),
    (kubeconfig({"clusters": ["x"]}), {}, "clusters[0] must have fields"),
    (kubeconfig({"clusters": 5}), {}, "clusters must be a list"),
    (kubeconfig(whole(user={"token": 5})), {}, "users[0].user.token must be text"),
    (kubeconfig(whole(user={"token": f"{SECRET}\nx"})), {}, "the token has characters that no token can have"),
    (kubeconfig(whole({"certificate-authority-data": "x"})), {}, "is not valid base64"),
    (kubeconfig(whole({"certificate-authority-data": "eHh4"})), {}, "the CA bundle holds no certificates in PEM"),
    (
        kubeconfig(whole(user={"client-certificate-data": "eHh4", "client-key-data": "eHh4"})),
        {},
        "the client certificate and its key are not PEM",
    ),
    ({"kubeconfig": f"a: *{SECRET}".encode()}, {}, "it is not YAML"),
    ({"kubeconfig": b"\xff\xfe\x00"}, {}, "the kubeconfig in the secret for cluster m1 cannot be used"),
    ({"kubeconfig": SECRET.encode()}, {}, "not a kubeconfig"),
]


@pytest.mark.parametrize(("data", "spec", "why"), BROKEN)
def test_what_is_wrong_is_said_and_nothing_that_is_secret(
    data: dict[str, bytes], spec: dict[str, Any], why: str
) -> None:
    with pytest.raises(NoAccess) as caught:
        access(data, **spec)
    assert why in str(caught.value)
    assert "m1" in str(caught.value)
    assert SECRET not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
PLACES = [
    (),
    ("current-context",),
    *((section,) for section in ("clusters", "users", "contexts")),
    *((section, 0) for section in ("clusters", "users", "contexts")),
    ("contexts", 0, "context"),
    ("clusters", 0, "cluster"),
    *(("clusters", 0, "cluster", key) for key in ("server", "certificate-authority-data", "proxy-url", "extensions")),
    ("users", 0, "user"),
    *(
        ("users", 0, "user", key)
        for key in ("token", "as", "as-groups", "as-user-extra", "exec", "auth-provider", "client-certificate-data")
    ),
]


@given(st.sampled_from(PLACES), JSON)
def test_no_kubeconfig_breaks_anything_else(place: tuple[str | int, ...], value: Any) -> None:
    document: Any = whole(user={"token": "t"})
    if place:
        holder = document
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
    else:
        document = value
    with contextlib.suppress(NoAccess):
        assert access({"kubeconfig": yaml.safe_dump(document, allow_unicode=True).encode()}, apiEndpoint="").server


def test_an_authority_is_checked_only_where_it_counts() -> None:
    assert access(GOOD | {"caBundle": b"x"}, insecureSkipTLSVerification=True).insecure


@pytest.mark.parametrize("insecure", [True, False])
def test_credentials_go_unencrypted_only_where_that_is_allowed(insecure: bool) -> None:
    cluster = {"metadata": {"name": "m1"}, "spec": {"apiEndpoint": "http://10.0.0.1", "secretRef": {"name": "m1"}}}
    secret = {"data": {key: base64.b64encode(value).decode() for key, value in GOOD.items()}}
    if insecure:
        assert access_of(cluster, secret, allow_insecure=True).server == "http://10.0.0.1"
    else:
        with pytest.raises(NoAccess, match="unencrypted"):
            access_of(cluster, secret)


def test_an_address_alone_is_one_for_https() -> None:
    assert access(GOOD, apiEndpoint="10.0.0.1:6443").server == "https://10.0.0.1:6443"


def test_a_line_end_behind_a_token_does_not_count() -> None:
    assert access(GOOD | {"token": b"t\n"}).token == "t"
