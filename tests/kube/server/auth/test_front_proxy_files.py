"""Front proxies by files: whose certificates count, under which names, and which files belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.kube.server.auth.frontproxy import FrontProxy, FrontProxyConfig
from tests.support.cases import cases

OWN = b"own authority"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ca.crt"
    path.write_bytes(b"given authority")
    return path


def test_without_files_the_own_authority_and_the_own_name_count() -> None:
    found = FrontProxyConfig(names=FrontProxy(allowed_names=("other",))).trusted(OWN)
    assert (found.ca_pem, found.allowed_names) == (OWN, ("front-proxy-client",))


@cases(((), ()), (("proxy",), ("proxy",)), (("front-proxy-client",), ("front-proxy-client",)))
def test_with_a_certificate_of_its_own_only_the_given_authority_counts(
    names: tuple[str, ...], counting: tuple[str, ...], file: Path
) -> None:
    config = FrontProxyConfig(
        client_ca_file=file, cert_file=file, key_file=file, names=FrontProxy(allowed_names=names, user_headers=("X-U",))
    )
    assert config.trusted(OWN) == FrontProxy(b"given authority", counting, ("X-U",))
    assert config.files == (file, file, file)


@cases(((), ()), (("proxy",), ("proxy", "front-proxy-client")), (("front-proxy-client",),) * 2)
def test_while_it_has_the_own_certificate_the_own_authority_counts_besides(
    names: tuple[str, ...], counting: tuple[str, ...], file: Path
) -> None:
    found = FrontProxyConfig(client_ca_file=file, names=FrontProxy(allowed_names=names)).trusted(OWN)
    assert (found.ca_pem, found.allowed_names) == (b"given authority\nown authority", counting)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("cert_file", "--proxy-client-key-file are needed together"),
        ("key_file", "--proxy-client-key-file are needed together"),
        ("both", "--proxy-client-cert-file needs --requestheader-client-ca-file"),
    ],
)
def test_files_that_are_no_use_alone_are_refused(file: Path, given: str, missing: str) -> None:
    files: dict[str, Any] = {"cert_file": file, "key_file": file} if given == "both" else {given: file}
    with pytest.raises(ValueError, match=missing):
        FrontProxyConfig(**files)
