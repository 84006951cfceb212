from __future__ import annotations

import ipaddress
import json
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from karmada.kube.server.auth.kubeconfig import write_kubeconfig
from karmada.kube.server.auth.pki import DAY, CertificateAuthority, Pki, PkiError
from tests.kube.server.auth.auth_fakes import NOW

CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER = ExtendedKeyUsageOID.SERVER_AUTH


def open_pki(path: Path, **more: object) -> Pki:
    return Pki.open(path / "pki", host_name="box", now=lambda: NOW, **more)  # type: ignore[arg-type]


def parse(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def common_name(cert: x509.Certificate) -> str:
    return str(cert.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def sans(cert: x509.Certificate) -> set[str]:
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def test_every_leaf_has_its_issuer_names_and_usages(tmp_path: Path) -> None:
    pki = open_pki(tmp_path, extra_sans=["api.example.com", "192.0.2.7"], service_ip="10.96.0.1")
    for pem, ca, name, usage in (
        (pki.serving.cert_pem, pki.ca, "kube-apiserver", SERVER),
        (pki.admin.cert_pem, pki.ca, "system:admin", CLIENT),
        (pki.front_proxy_client.cert_pem, pki.front_proxy_ca, "front-proxy-client", CLIENT),
    ):
        cert = parse(pem)
        cert.verify_directly_issued_by(ca.certificate)
        assert common_name(cert) == name
        assert list(cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [usage]
        assert not cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    organizations = parse(pki.admin.cert_pem).subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [o.value for o in organizations] == ["system:masters"]
    assert sans(parse(pki.serving.cert_pem)) == {
        "localhost", "127.0.0.1", "::1", "box", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local", "10.96.0.1", "api.example.com", "192.0.2.7",
    }  # fmt: skip


def test_only_the_owner_can_read_the_directory_and_its_files(tmp_path: Path) -> None:
    pki = open_pki(tmp_path)
    assert stat.S_IMODE(pki.directory.stat().st_mode) == 0o700
    files = list(pki.directory.iterdir())
    assert {"ca.key", "sa.key", "apiserver.crt", "admin.key"} <= {file.name for file in files}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_second_start_uses_the_same_files(tmp_path: Path) -> None:
    first, second = open_pki(tmp_path), open_pki(tmp_path)
    assert second.serving == first.serving
    assert second.admin == first.admin
    assert second.ca.cert_pem == first.ca.cert_pem
    assert second.signing_key_pem == first.signing_key_pem


def test_a_second_start_does_not_load_the_cryptography_package(tmp_path: Path) -> None:
    pki = open_pki(tmp_path)
    code = (
        "import sys; from pathlib import Path; from karmada.kube.server.auth.pki import Pki;"
        f"Pki.open(Path({str(pki.directory)!r}), host_name='box', now=lambda: {NOW});"
        "sys.exit(any(m.startswith('cryptography') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_changed_names_renew_the_serving_certificate_only(tmp_path: Path) -> None:
    first = open_pki(tmp_path)
    second = open_pki(tmp_path, extra_sans=["new.example.com"])
    assert "new.example.com" in sans(parse(second.serving.cert_pem))
    assert second.admin == first.admin
    assert open_pki(tmp_path, extra_sans=["new.example.com"]).serving == second.serving


@pytest.mark.parametrize(("days", "renewed"), [(300, False), (340, True), (400, True), (-0.001, False), (-0.1, True)])
def test_leaves_are_renewed_a_month_before_they_end_and_where_they_are_not_valid_yet(
    tmp_path: Path, days: float, renewed: bool
) -> None:
    first = open_pki(tmp_path)
    later = Pki.open(tmp_path / "pki", host_name="box", now=lambda: NOW + days * DAY)
    assert (later.serving != first.serving) is renewed
    assert later.ca.cert_pem == first.ca.cert_pem


def test_a_replaced_authority_reissues_its_leaves(tmp_path: Path) -> None:
    first = open_pki(tmp_path)
    for name in ("ca.crt", "ca.key"):
        (first.directory / name).unlink()
    second = open_pki(tmp_path)
    parse(second.admin.cert_pem).verify_directly_issued_by(second.ca.certificate)
    assert second.front_proxy_client == first.front_proxy_client


def test_a_damaged_leaf_or_index_is_made_anew(tmp_path: Path) -> None:
    first = open_pki(tmp_path)
    (first.directory / "apiserver.key").write_bytes(b"half a key")
    second = open_pki(tmp_path)
    assert second.serving != first.serving
    (first.directory / "index.json").write_text("{broken")
    third = open_pki(tmp_path)
    assert third.admin != first.admin
    assert set(json.loads((first.directory / "index.json").read_text())) == {"apiserver", "admin", "front-proxy-client"}


def test_an_authority_without_its_key_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    CertificateAuthority.load_or_create(tmp_path, "ca")
    (tmp_path / "ca.key").unlink()
    with pytest.raises(PkiError, match=r"ca\.crt exists but .*ca\.key does not"):
        CertificateAuthority.load_or_create(tmp_path, "ca")


def test_no_certificate_outlives_its_authority() -> None:
    ca = CertificateAuthority.create("short", now=NOW, days=10)
    cert = parse(ca.issue("x", days=100, now=NOW).cert_pem)
    assert cert.not_valid_after_utc == ca.certificate.not_valid_after_utc


def test_issued_certificates_work_in_tls_with_strict_verification(tmp_path: Path) -> None:
    pki = Pki.open(tmp_path / "pki", host_name="box")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*pki.serving_files)
    server.verify_mode = ssl.CERT_OPTIONAL
    server.load_verify_locations(cadata=pki.client_ca_pem.decode())
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.load_verify_locations(cadata=pki.ca.cert_pem.decode())
    client.load_cert_chain(pki.directory / "admin.crt", pki.directory / "admin.key")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    a = client.wrap_bio(to_client, to_server, server_hostname="kubernetes.default.svc")
    b = server.wrap_bio(to_server, to_client, server_side=True)
    done = {a: False, b: False}
    for _ in range(10):
        for side in (a, b):
            try:
                side.do_handshake()
                done[side] = True
            except ssl.SSLWantReadError:
                continue
    assert all(done.values())
    der = b.getpeercert(binary_form=True)
    assert der is not None
    assert common_name(x509.load_der_x509_certificate(der)) == "system:admin"


def test_addresses_become_ip_names() -> None:
    cert = parse(CertificateAuthority.create("ca").issue("x", sans=["10.0.0.1", "fd00::1", "a.b"]).cert_pem)
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("10.0.0.1"),
        ipaddress.ip_address("fd00::1"),
    ]
    assert names.get_values_for_type(x509.DNSName) == ["a.b"]


def test_keys_do_not_show_in_representations(tmp_path: Path) -> None:
    pki = open_pki(tmp_path)
    for thing in (pki, pki.admin, pki.ca):
        assert "PRIVATE KEY" not in repr(thing)


def test_the_kubeconfig_is_private_and_names_one_context(tmp_path: Path) -> None:
    pki = open_pki(tmp_path)
    path = tmp_path / "conf" / "admin.conf"
    write_kubeconfig(
        path, "https://127.0.0.1:5443", pki.ca.cert_pem, pki.admin.cert_pem, pki.admin.key_pem, "karmada-apiserver"
    )
    config = yaml.safe_load(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert config["current-context"] == config["contexts"][0]["name"] == "karmada-apiserver"
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:5443"
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
