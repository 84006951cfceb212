from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from multidict import CIMultiDict

from karmada.kube.objects.base64url import b64url
from karmada.kube.objects.errors import Unauthorized
from karmada.kube.server.auth.authentication import Authenticator, parse_token_file
from karmada.kube.server.auth.frontproxy import FrontProxy, authentication_config, remote_headers
from karmada.kube.server.auth.headers import carries_identity, escape_key, without_identity
from karmada.kube.server.auth.jwt import KeySet, SigningKey
from karmada.kube.server.auth.peer import PeerCertificates
from karmada.kube.server.auth.pki import DAY, SERVER_USAGES, CertificateAuthority, general_names, subject_name
from karmada.kube.server.auth.pki import generate_key_pem as new_key
from karmada.kube.server.auth.service_accounts import ServiceAccountTokens
from karmada.kube.server.auth.tokens import DEFAULT_ISSUER, TokenIssuer
from karmada.kube.server.auth.user import User
from tests.kube.server.auth.auth_fakes import NOW, FakeReader, account
from tests.support.cases import cases
from tests.support.certificates import der

CA = CertificateAuthority.create("ca", now=NOW)
PROXY_CA = CertificateAuthority.create("proxy-ca", now=NOW)
OTHER = CertificateAuthority.create("ca", now=NOW)
KEY = SigningKey(new_key())
STATIC = parse_token_file('secret-1,alice,uid-1,"dev,ops"\n\nsecret-2,bob,uid-2\n')
AUTHENTICATED = "system:authenticated"


def client(ca: CertificateAuthority, name: str, *groups: str, **more: object) -> bytes:
    return der(ca.issue(name, groups, now=NOW, **more).cert_pem)  # type: ignore[arg-type]


class Setup:
    def __init__(self, **options: object) -> None:
        self.reader = FakeReader([account()])
        self.time = NOW
        now: Callable[[], float] = lambda: self.time
        tokens = ServiceAccountTokens(KeySet([KEY.public]), [DEFAULT_ISSUER], [DEFAULT_ISSUER], self.reader, now)
        self.issuer = TokenIssuer(KEY, now=now)
        self.authenticator = Authenticator(
            self.reader,
            now=now,
            peers=PeerCertificates(CA.cert_pem, PROXY_CA.cert_pem),
            service_accounts=tokens,
            static_tokens=STATIC,
            audiences=[DEFAULT_ISSUER],
            **options,  # type: ignore[arg-type]
        )

    def login(self, cert: bytes | None = None, protocols: tuple[str, ...] = (), **headers: str) -> User:
        sent = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
        return self.authenticator.authenticate(sent, cert, protocols)


@pytest.fixture
def setup() -> Setup:
    return Setup()


def bearer(token: str) -> dict[str, Any]:
    return {"authorization": f"Bearer {token}"}


# --- certificates


def test_a_client_certificate_gives_name_groups_and_fingerprint(setup: Setup) -> None:
    cert = client(CA, "jane", "dev", "ops")
    user = setup.login(cert)
    assert (user.name, user.groups) == ("jane", ("dev", "ops", AUTHENTICATED))
    assert user.extra == {
        "authentication.kubernetes.io/credential-id": (f"X509SHA256={hashlib.sha256(cert).hexdigest()}",)
    }
    assert setup.login(bytes(bytearray(cert))) is user


def test_the_uid_attribute_of_the_subject_becomes_the_uid(setup: Setup) -> None:
    oid = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
    key = CA.issue("x", now=NOW)
    public = x509.load_pem_x509_certificate(key.cert_pem).public_key()
    subject = x509.Name([*subject_name("jane"), x509.NameAttribute(oid, "uid-7")])
    pem = CA.sign(public, subject, [], ["client auth"], not_before=NOW - 1, not_after=NOW + 1000)
    assert setup.login(der(pem)).uid == "uid-7"


@cases(
    ("of another authority with the same name", client(OTHER, "jane", "system:masters")),
    ("for servers", client(CA, "jane", usages=SERVER_USAGES)),
    ("of the front-proxy authority", client(PROXY_CA, "jane", "system:masters")),
    ("of a front proxy that names nobody", client(PROXY_CA, "front-proxy-client")),
    ("that cannot be read", b"garbage"),
    ("without a name", der(CA.sign(
        x509.load_pem_x509_certificate(CA.issue("x").cert_pem).public_key(), x509.Name([]), general_names(["a"]),
        ["client auth"], not_before=NOW - 1, not_after=NOW + 1000))),
)  # fmt: skip
def test_a_certificate_is_refused_if_it_is(name: str, cert: bytes, setup: Setup) -> None:
    with pytest.raises(Unauthorized):
        setup.login(cert)


@cases(-1, 366)
def test_a_certificate_is_refused_outside_its_time(days: float, setup: Setup) -> None:
    cert = client(CA, "jane")
    assert setup.login(cert).name == "jane"
    setup.time = NOW + days * DAY
    with pytest.raises(Unauthorized):
        setup.login(cert)


def test_a_good_token_helps_a_certificate_that_is_refused(setup: Setup) -> None:
    assert setup.login(client(OTHER, "jane"), **bearer("secret-1")).name == "alice"


def test_a_certificate_wins_over_a_token(setup: Setup) -> None:
    assert setup.login(client(CA, "jane"), **bearer("secret-1")).name == "jane"


# --- front proxy


def test_a_front_proxy_names_the_user_in_headers(setup: Setup) -> None:
    proxied = User("ann", "u-1", ("dev", "Ops"), {"example.org/Scopes": ("a", "b"), "plain": ("c",)})
    headers = CIMultiDict(remote_headers(proxied))
    user = setup.authenticator.authenticate(headers, client(PROXY_CA, "front-proxy-client"))
    assert user == User("ann", "u-1", ("dev", "Ops", AUTHENTICATED), proxied.extra)


@cases(
    (None, "system:anonymous"),
    (client(CA, "jane"), "jane"),
    (client(CA, "front-proxy-client"), "front-proxy-client"),
)
def test_nobody_else_can_name_a_user_in_headers(cert: bytes | None, expected: str, setup: Setup) -> None:
    assert setup.login(cert, X_Remote_User="root", X_Remote_Group="system:masters").name == expected


def test_a_front_proxy_with_a_name_that_is_not_allowed_is_refused(setup: Setup) -> None:
    with pytest.raises(Unauthorized):
        setup.login(client(PROXY_CA, "somebody"), X_Remote_User="root")
    assert Setup(front_proxy=FrontProxy()).login(client(PROXY_CA, "somebody"), X_Remote_User="ann").name == "ann"


def test_a_proxied_anonymous_user_stays_anonymous(setup: Setup) -> None:
    headers: dict[str, Any] = {"X_Remote_User": "system:anonymous", "X_Remote_Group": "system:unauthenticated"}
    user = setup.login(client(PROXY_CA, "front-proxy-client"), **headers)
    assert user.groups == ("system:unauthenticated",)


def test_identity_headers_go_no_further() -> None:
    headers = CIMultiDict(
        [("Authorization", "x"), ("X-REMOTE-EXTRA-a", "x"), ("impersonate-user", "x"), ("X-Remote-Group", "x")]
    )
    assert all(carries_identity(name) for name in headers)
    headers["Accept"] = "a/b"
    assert without_identity(headers) == [("Accept", "a/b")]


def test_extra_keys_are_escaped_for_header_names() -> None:
    assert escape_key("authentication.kubernetes.io/credential-id") == "authentication.kubernetes.io%2Fcredential-id"
    assert escape_key("A%é") == "%41%25%C3%A9"


def test_aggregated_servers_learn_whom_to_trust() -> None:
    data = authentication_config(b"CA", FrontProxy(b"PROXY", ("front-proxy-client",)))["data"]
    assert data["client-ca-file"] == "CA"
    assert data["requestheader-client-ca-file"] == "PROXY"
    assert data["requestheader-allowed-names"] == '["front-proxy-client"]'
    assert data["requestheader-extra-headers-prefix"] == '["X-Remote-Extra-"]'
    assert data["requestheader-uid-headers"] == '["X-Remote-Uid"]'


# --- tokens


@cases("Bearer", "bearer", "BEARER")
def test_a_static_token_gives_its_user(scheme: str, setup: Setup) -> None:
    user = setup.login(authorization=f"{scheme} secret-1")
    assert user == User("alice", "uid-1", ("dev", "ops", AUTHENTICATED))


@cases(
    "Bearer wrong",
    "Bearer a.b.c",
    "Bearer abcdef.0123456789abcdef",
)
def test_bad_credentials_are_refused_and_never_anonymous(authorization: str, setup: Setup) -> None:
    with pytest.raises(Unauthorized) as caught:
        setup.login(authorization=authorization)
    assert caught.value.status()["message"] == "Unauthorized"
    assert caught.value.status()["code"] == 401


@cases("Basic c2VjcmV0LTE6", "Bearer", "Bearer ", "secret-1", "Negotiate x")
def test_a_header_that_is_no_bearer_token_is_no_credential(authorization: str, setup: Setup) -> None:
    assert setup.login(authorization=authorization).name == "system:anonymous"
    with pytest.raises(Unauthorized):
        Setup(anonymous=False).login(authorization=authorization)


def test_nobody_is_anonymous_only_if_that_is_allowed(setup: Setup) -> None:
    assert setup.login() == User("system:anonymous", groups=("system:unauthenticated",))
    with pytest.raises(Unauthorized):
        Setup(anonymous=False).login()


def websocket(token: str) -> str:
    return "base64url.bearer.authorization.k8s.io." + b64url(token.encode())


def test_a_websocket_client_passes_its_token_as_a_subprotocol(setup: Setup) -> None:
    protocols = (websocket("secret-1"), "v5.channel.k8s.io")
    assert setup.login(protocols=protocols).name == "alice"
    assert setup.login(protocols=("v5.channel.k8s.io",)).name == "system:anonymous"


@pytest.mark.parametrize(
    "protocols",
    [
        (websocket("secret-1"),),
        (websocket("secret-1"), websocket("secret-2"), "v5.channel.k8s.io"),
        (websocket("wrong"), "v5.channel.k8s.io"),
        ("base64url.bearer.authorization.k8s.io.!!!", "v5.channel.k8s.io"),
        ("base64url.bearer.authorization.k8s.io." + b64url(b"\xff"), "v5.channel.k8s.io"),
    ],
)
def test_bad_websocket_credentials_are_refused(setup: Setup, protocols: tuple[str, ...]) -> None:
    with pytest.raises(Unauthorized):
        setup.login(protocols=protocols)


def test_a_service_account_token_and_its_revocation(setup: Setup) -> None:
    token = setup.issuer.bound_token(account(), [DEFAULT_ISSUER], 3600)
    user = setup.login(**bearer(token))
    assert user.name == "system:serviceaccount:default:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", AUTHENTICATED)
    setup.reader.remove("ServiceAccount", "default", "robot")
    with pytest.raises(Unauthorized):
        setup.login(**bearer(token))


def test_a_bootstrap_token_works_unless_it_is_switched_off() -> None:
    def encode(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    values = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
    secret = {
        "kind": "Secret",
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "data": {key: encode(value) for key, value in values.items()},
    }
    on, off = Setup(), Setup(bootstrap=False)
    for setup in (on, off):
        setup.reader.put(secret)
    user = on.login(**bearer("abcdef.0123456789abcdef"))
    assert user == User("system:bootstrap:abcdef", groups=("system:bootstrappers", AUTHENTICATED))
    with pytest.raises(Unauthorized):
        off.login(**bearer("abcdef.0123456789abcdef"))


@cases("token, user", ",user,uid", "token,,uid", "token")
def test_a_bad_line_in_the_token_file_is_named_by_number_only(line: str) -> None:
    with pytest.raises(ValueError, match="line 2") as caught:
        parse_token_file(f"ok,user,uid\n{line}\n")
    assert "token,user," not in str(caught.value).replace("must be token,user,uid", "")
