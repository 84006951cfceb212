"""What is taken from a kubeconfig, and what never is."""

from __future__ import annotations

import base64

import pytest

from karmada.dashboard.login import Login, LoginRefused, credentials_of
from karmada.kube.client.config import Material, RestConfig
from karmada.kube.objects.clock import FakeClock
from tests.support.cases import cases

OWN = RestConfig("https://control.plane:5443", ca=Material(data=b"ours"))
_PEM = base64.b64encode(b"pem").decode()


def _kubeconfig(user: str) -> str:
    return f"""
current-context: c
clusters: [{{name: k, cluster: {{server: "https://attacker.example", insecure-skip-tls-verify: true}}}}]
contexts: [{{name: c, context: {{cluster: k, user: u, namespace: shop}}}}]
users: [{{name: u, user: {user}}}]
"""


@cases(
    '{token: "t"}',
    f'{{client-certificate-data: "{_PEM}", client-key-data: "{_PEM}"}}',
    '{username: "a", password: "b"}',
)
def test_credentials_are_used_against_the_own_control_plane_only(user: str) -> None:
    config = credentials_of(_kubeconfig(user), OWN)
    assert config.server == OWN.server
    assert config.ca == OWN.ca
    assert not config.insecure
    assert config.token or config.certificate or config.username


@cases(
    ("{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}}", "program"),
    ("{client-certificate: /etc/passwd, client-key: /etc/shadow}", "names a file"),
    ("{tokenFile: /var/run/secrets/token}", "names a file"),
    ("{}", "no credentials"),
    ("{auth-provider: {name: oidc}}", "auth provider"),
)
def test_files_and_programs_that_it_names_are_not_touched(user: str, says: str) -> None:
    with pytest.raises(LoginRefused, match=says):
        credentials_of(_kubeconfig(user), OWN)


@cases("", "[]", "a: [", "clusters: 1", "\x00")
def test_what_is_no_kubeconfig_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(LoginRefused, match="cannot be used"):
        credentials_of(text, OWN)


@cases("", "  ", "two words", "tokén")
async def test_what_is_no_token_is_refused_before_it_is_sent(token: str) -> None:
    with pytest.raises(LoginRefused):
        await Login(OWN, FakeClock()).by_token(token)


async def test_certificates_are_refused_where_nothing_may_impersonate() -> None:
    with pytest.raises(LoginRefused, match="not accepted"):
        await Login(OWN, FakeClock()).by_certificate(b"der")
