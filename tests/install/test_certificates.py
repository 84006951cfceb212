"""Certificates of an installation: kept as long as they are good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from karmada.install.certificates import NAMES, Certificates, combined, issue, load, save
from karmada.install.options import InstallError, options_from
from karmada.install.secrets import admin_kubeconfig, certificates_in, secrets
from karmada.kube.client.kubeconfig import Kubeconfig
from karmada.kube.server.auth.files import write_private
from karmada.kube.server.auth.pki import DAY, CertificateAuthority, KeyPair
from tests.support.cases import cases

NOW = 1_800_000_000.0
SEPARATE: dict[str, Any] = {"all-in-one": False}
ADDRESSES = ["10.0.0.1"]


def made(given: dict[str, Any] | None = None, existing: Certificates | None = None, now: float = NOW) -> Any:
    lines: list[str] = []
    found = issue(options_from(given or {}), ADDRESSES, existing or {}, now, lines.append)
    return found, lines


def parsed(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.cert_pem)


def sans(pair: KeyPair) -> set[str]:
    found = parsed(pair).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def test_a_new_installation_has_all_certificates_with_their_names() -> None:
    found, _ = made({**SEPARATE, "cert-external-dns": "k.example", "cert-external-ip": "192.0.2.1"})
    assert set(found) == set(NAMES)
    assert sans(found["apiserver"]) == {
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "karmada-apiserver",
        "karmada-webhook",
        "karmada-aggregated-apiserver",
        "karmada-apiserver.karmada-system.svc.cluster.local",
        "karmada-webhook.karmada-system.svc.cluster.local",
        "karmada-webhook.karmada-system.svc",
        "karmada-aggregated-apiserver.karmada-system.svc.cluster.local",
        "*.karmada-system.svc.cluster.local",
        "*.karmada-system.svc",
        "k.example",
        "192.0.2.1",
        "127.0.0.1",
        "10.0.0.1",
    }
    assert sans(found["etcd-server"]) == {"localhost", "etcd-0.etcd.karmada-system.svc.cluster.local", "127.0.0.1"}
    subject = {attribute.rfc4514_attribute_name: attribute.value for attribute in parsed(found["karmada"]).subject}
    assert subject == {"O": "system:masters", "CN": "system:admin"}
    for name, authority in (("karmada", "ca"), ("apiserver", "ca"), ("front-proxy-client", "front-proxy-ca")):
        parsed(found[name]).verify_directly_issued_by(parsed(found[authority]))


def test_a_second_run_issues_nothing() -> None:
    found, first = made(SEPARATE)
    again, second = made(SEPARATE, found)
    assert again == found
    assert (len(first), second) == (8, [])


@cases(
    ({}, 340 * DAY, "it ends on"),
    ({"cert-external-dns": "new.example"}, 0.0, "it lacks new.example"),
    ({"namespace": "elsewhere"}, 0.0, "it lacks *.elsewhere.svc"),
)
def test_a_leaf_is_renewed_with_the_key_that_it_had(given: dict[str, Any], later: float, problem: str) -> None:
    found, _ = made()
    again, lines = made(given, found, NOW + later)
    assert any(line.startswith(f"Issued certificate apiserver: {problem}") for line in lines)
    assert again["ca"] == found["ca"]
    assert again["karmada"].key_pem == found["karmada"].key_pem
    assert again["apiserver"].cert_pem != found["apiserver"].cert_pem


def test_a_short_validity_is_not_renewed_at_once() -> None:
    given = {"cert-validity-period": 30 * 3600.0}
    found, _ = made(given)
    assert made(given, found, NOW + 19 * 3600)[1] == []
    assert len(made(given, found, NOW + 21 * 3600)[1]) == 3


def test_a_leaf_of_another_authority_or_key_is_issued_anew() -> None:
    found, _ = made()
    other, _ = made()
    mixed = {
        **found,
        "karmada": other["karmada"],
        "front-proxy-client": KeyPair(found["front-proxy-client"].cert_pem, b""),
    }
    again, lines = made({}, mixed)
    assert sorted(lines) == [
        "Issued certificate front-proxy-client: its key is another",
        "Issued certificate karmada: it is not of the authority ca",
    ]
    parsed(again["karmada"]).verify_directly_issued_by(parsed(found["ca"]))


def test_an_authority_of_the_user_is_taken(tmp_path: Path) -> None:
    mine = CertificateAuthority.create("mine", now=NOW).pair
    (tmp_path / "a.crt").write_bytes(mine.cert_pem)
    (tmp_path / "a.key").write_bytes(mine.key_pem)
    found, _ = made({"ca-cert-file": str(tmp_path / "a.crt"), "ca-key-file": str(tmp_path / "a.key")})
    assert found["ca"] == mine
    parsed(found["apiserver"]).verify_directly_issued_by(parsed(mine))
    other, _ = made()
    with pytest.raises(InstallError, match="--ca-cert-file is not the certificate authority of this installation"):
        made({"ca-cert-file": str(tmp_path / "a.crt"), "ca-key-file": str(tmp_path / "a.key")}, other)


def test_an_authority_is_never_replaced(tmp_path: Path) -> None:
    found, _ = made()
    with pytest.raises(InstallError, match=r"the certificate authority ca expired on .*: move ca.crt and ca.key away"):
        made({}, found, NOW + 3651 * DAY)
    with pytest.raises(InstallError, match=r"ca.key is not the key of ca.crt"):
        made({}, {**found, "ca": KeyPair(found["ca"].cert_pem, found["karmada"].key_pem)})
    save(tmp_path, found)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(InstallError, match=r"ca.key is not the key of ca.crt: restore it from a backup"):
        made({}, load(tmp_path))


def test_files_of_an_external_etcd_are_passed_on(tmp_path: Path) -> None:
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(name)
    given = {
        "external-etcd-servers": "https://e:2379",
        "external-etcd-ca-cert-path": str(tmp_path / "ca"),
        "external-etcd-client-cert-path": str(tmp_path / "crt"),
        "external-etcd-client-key-path": str(tmp_path / "key"),
    }
    found, _ = made(given)
    assert found["etcd-ca"] == KeyPair(b"ca", b"")
    assert found["etcd-client"] == KeyPair(b"crt", b"key")
    assert "etcd-server" not in found
    elsewhere = {**given, "external-etcd-ca-cert-path": "/nowhere"}
    with pytest.raises(InstallError, match="--external-etcd-ca-cert-path: /nowhere: No such file or directory"):
        made(elsewhere)
    (secret,) = (each for each in secrets(options_from(given), found) if each["metadata"]["name"] == "karmada-cert")
    assert made(elsewhere, certificates_in(secret))[0] == found


def test_files_and_the_secret_have_the_same_certificates(tmp_path: Path) -> None:
    found, _ = made(SEPARATE)
    save(tmp_path / "pki", found)
    assert load(tmp_path / "pki") == found
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "pki").glob("*.key")} == {0o600}
    by_name = {secret["metadata"]["name"]: secret for secret in secrets(options_from(SEPARATE), found)}
    assert certificates_in(by_name["karmada-cert"]) == found
    assert set(by_name["etcd-cert"]["data"]) == {"etcd-ca.crt", "etcd-ca.key", "etcd-server.crt", "etcd-server.key"}
    assert set(by_name) == {
        "etcd-cert",
        "karmada-cert",
        "karmada-webhook-cert",
        *(
            f"{name}-config"
            for name in (
                "karmada-aggregated-apiserver",
                "karmada-controller-manager",
                "kube-controller-manager",
                "karmada-scheduler",
                "karmada-descheduler",
                "karmada-metrics-adapter",
                "karmada-search",
                "karmada-webhook",
            )
        ),
    }
    assert combined({}, certificates_in(by_name["karmada-cert"]), tmp_path) == found


def test_a_crash_between_two_files_costs_nothing_that_was_used(tmp_path: Path, monkeypatch: Any) -> None:
    """Each run crashes one file later; what is complete is kept, and the rest is issued again."""
    left = [0]

    def crashing(path: Path, content: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        write_private(path, content)

    monkeypatch.setattr("karmada.install.certificates.write_private", crashing)
    authority = b""
    for limit in range(20):
        left[0] = limit
        found, _ = made(SEPARATE, load(tmp_path))
        assert not authority or found["ca"].cert_pem == authority
        try:
            save(tmp_path, found)
        except KeyboardInterrupt:
            authority = authority or (found["ca"].cert_pem if "ca" in load(tmp_path) else b"")
            continue
        break
    assert load(tmp_path) == found
    assert authority


def test_a_folder_of_another_installation_is_refused(tmp_path: Path) -> None:
    found, _ = made()
    other, _ = made()
    with pytest.raises(InstallError, match=r"ca.crt is not the certificate authority of the installation"):
        combined(found, other, tmp_path)


def test_the_kubeconfig_of_the_administrator_has_the_usual_names() -> None:
    found, _ = made()
    config = Kubeconfig.parse(admin_kubeconfig("https://10.0.0.1:32443", found).decode())
    assert (list(config.clusters), list(config.contexts)) == (["karmada-apiserver"], ["karmada-apiserver"])
    assert config.contexts["karmada-apiserver"]["user"] == "karmada-admin"
    assert config.resolve("").server == "https://10.0.0.1:32443"
