"""When a certificate is renewed, and what is made of the kubeconfig."""

from __future__ import annotations

import base64

import pytest

from karmada.controllers.cert_rotation import AgentKubeconfig, RotationError
from karmada.joining.pull.certificates import Credentials
from karmada.joining.pull.validity import Validity, load_chain, validity
from karmada.kube.client.kubeconfig import Kubeconfig
from karmada.kube.server.auth.pki import DAY
from tests.support.cases import cases
from tests.support.certificates import Authority

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: m1@karmada-apiserver
clusters:
- {name: karmada-apiserver, cluster: {server: "https://10.0.0.1:5443"}}
contexts:
- {name: m1@karmada-apiserver, context: {cluster: karmada-apiserver, user: m1}}
users:
- {name: other, user: {token: secret}}
- {name: m1, user: {client-certificate-data: YQ==, client-key-data: Yg==}}
"""


@cases((0, 365, 1.0), (292, 365, 0.2), (365, 365, 0.0), (400, 365, -35 / 365), (1, 0, 0.0))
def test_what_remains_of_a_certificate(age: float, lifetime: float, remaining: float) -> None:
    found = Validity(1000.0, 1000.0 + lifetime * DAY)
    assert found.remaining(1000.0 + age * DAY) == pytest.approx(remaining)


def test_of_a_chain_all_certificates_must_be_valid() -> None:
    authority = Authority()
    leaf = authority.issue("m1")
    chain = load_chain(leaf.certificate + authority.pem)
    found = validity(chain)
    assert found.start == max(c.not_valid_before_utc.timestamp() for c in chain)
    assert found.end == min(c.not_valid_after_utc.timestamp() for c in chain)


def test_only_the_certificate_of_the_current_user_is_replaced() -> None:
    kubeconfig = AgentKubeconfig(KUBECONFIG.encode())
    assert (kubeconfig.user, kubeconfig.certificate) == ("m1", b"a")
    new = Kubeconfig.parse(kubeconfig.with_credentials(Credentials(b"c", b"d")))
    before = Kubeconfig.parse(KUBECONFIG)
    assert new.users["m1"] == {
        "client-certificate-data": base64.b64encode(b"c").decode(),
        "client-key-data": base64.b64encode(b"d").decode(),
    }
    assert (new.users["other"], new.clusters, new.contexts) == (before.users["other"], before.clusters, before.contexts)


@cases(
    ("{", "is not YAML"),
    ("[]", "is not one"),
    ("{}", 'no entry "" in contexts'),
    (KUBECONFIG.replace("user: m1}", "user: ''}"), "has no user"),
    (KUBECONFIG.replace("user: m1}", "user: m2}"), 'no entry "m2" in users'),
)
def test_a_kubeconfig_that_cannot_be_used_is_reported(text: str, problem: str) -> None:
    with pytest.raises(RotationError, match=problem):
        AgentKubeconfig(text.encode())
