"""The flags of API servers that name files and other servers: what they configure, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from karmada.components import aggregated_apiserver, apiserver, karmada, kube_apiserver
from karmada.components.server_flags import audit_from, server_config
from karmada.kube.server.audit.config import AuditConfig, AuditWebhookConfig
from karmada.kube.server.audit.policy import METADATA_ONLY, Level
from karmada.kube.server.auth.frontproxy import FrontProxy, FrontProxyConfig
from karmada.kube.server.auth.serving import TlsConfig
from karmada.kube.server.auth.token_sources import OidcConfig, TokenWebhookConfig
from karmada.kube.server.config import ServerConfig
from tests.support.cases import cases

BOTH = pytest.mark.parametrize("program", [apiserver.main, karmada.main], ids=lambda program: program.name)


def given(program: click.Command, *arguments: str) -> dict[str, Any]:
    with program.make_context("test", list(arguments)) as context:
        return context.params


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("x")
    return path


@BOTH
def test_without_flags_a_server_has_what_it_has_by_default(program: click.Command) -> None:
    config, default = server_config(given(program)), ServerConfig(data_dir=Path())
    for name in ("tls", "oidc", "token_webhook", "audit", "service_account_key_files"):
        assert getattr(config, name) == getattr(default, name)


@BOTH
def test_certificates_and_keys_are_files(program: click.Command, file: Path) -> None:
    config = server_config(
        given(
            program,
            f"--tls-cert-file={file}",
            f"--tls-private-key-file={file}",
            f"--client-ca-file={file}",
            "--tls-min-version=VersionTLS13",
            f"--service-account-key-file={file}",
            f"--service-account-key-file={file}",
            f"--service-account-signing-key-file={file}",
        )
    )
    assert config.tls == TlsConfig(cert_file=file, key_file=file, client_ca_file=file, minimum="VersionTLS13")
    assert config.service_account_key_files == (file, file)
    assert config.service_account_signing_key_file == file


@BOTH
def test_tokens_of_others_are_accepted_by_flags(program: click.Command, file: Path) -> None:
    config = server_config(
        given(
            program,
            "--oidc-issuer-url=https://accounts.example.com",
            "--oidc-client-id=karmada",
            "--oidc-username-claim=email",
            "--oidc-username-prefix=-",
            "--oidc-groups-claim=groups",
            "--oidc-groups-prefix=oidc:",
            "--oidc-required-claim=hd=example.com",
            "--oidc-required-claim=a=b=c",
            f"--oidc-ca-file={file}",
            "--oidc-signing-algs=RS256,ES256",
            f"--authentication-token-webhook-config-file={file}",
            "--authentication-token-webhook-version=v1",
            "--authentication-token-webhook-cache-ttl=30s",
        )
    )
    assert config.oidc == OidcConfig(
        issuer_url="https://accounts.example.com",
        client_id="karmada",
        username_claim="email",
        username_prefix="-",
        groups_claim="groups",
        groups_prefix="oidc:",
        required_claims={"hd": "example.com", "a": "b=c"},
        ca_file=file,
        signing_algs=("RS256", "ES256"),
    )
    assert config.token_webhook == TokenWebhookConfig(file=file, version="v1", cache_seconds=30.0)


@pytest.mark.parametrize("program", [apiserver.main, karmada.main, aggregated_apiserver.main], ids=lambda p: p.name)
def test_audit_has_the_same_flags_everywhere(program: click.Command, file: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request}]\n")
    found = audit_from(
        given(
            program,
            f"--audit-policy-file={policy}",
            "--audit-log-path=audit.log",
            "--audit-log-maxsize=5",
            "--audit-log-maxbackup=3",
            "--audit-log-maxage=7",
            f"--audit-webhook-config-file={file}",
            "--audit-webhook-batch-max-size=10",
            "--audit-webhook-batch-max-wait=1s",
            "--audit-webhook-batch-buffer-size=20",
            "--audit-webhook-initial-backoff=2s",
        )
    )
    assert [rule.level for rule in found.policy.rules] == [Level.REQUEST]
    webhook = AuditWebhookConfig(file=file, batch=10, buffer=20, wait_seconds=1.0, first_pause=2.0)
    assert found == AuditConfig(
        policy=found.policy, log_path=Path("audit.log"), max_megabytes=5, max_backups=3, max_days=7, webhook=webhook
    )
    assert audit_from(given(program)).policy == METADATA_ONLY


@cases(
    (["--tls-cert-file={file}"], "--tls-private-key-file"),
    (["--oidc-issuer-url=https://a.example.com"], "--oidc-client-id"),
    (["--oidc-issuer-url=http://a.example.com", "--oidc-client-id=x"], "--oidc-issuer-url"),
    (
        ["--oidc-issuer-url=https://a.example.com", "--oidc-client-id=x", "--oidc-required-claim=y"],
        "--oidc-required-claim",
    ),
    (["--audit-policy-file={file}"], "is not a Policy"),
    (["--audit-log-maxsize=-1"], "--audit-log-maxsize"),
    (["--tls-min-version=SSL3"], "--tls-min-version"),
    (["--client-ca-file=/nowhere"], "--client-ca-file"),
)
def test_flags_that_make_no_sense_are_named(arguments: list[str], problem: str, file: Path) -> None:
    with pytest.raises(click.UsageError) as caught:
        server_config(given(apiserver.main, *(argument.format(file=file) for argument in arguments)))
    assert problem in caught.value.format_message()


@BOTH
def test_front_proxies_are_known_by_files_names_and_headers(program: click.Command, file: Path) -> None:
    config = server_config(
        given(
            program,
            f"--requestheader-client-ca-file={file}",
            f"--proxy-client-cert-file={file}",
            f"--proxy-client-key-file={file}",
            "--requestheader-allowed-names=front-proxy-client,other",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--enable-bootstrap-token-auth=false",
        )
    )
    names = FrontProxy(
        allowed_names=("front-proxy-client", "other"),
        user_headers=("X-Remote-User",),
        uid_headers=("x-remote-uid",),
        group_headers=("X-Remote-Group",),
        extra_prefixes=("X-Remote-Extra-",),
    )
    assert config.front_proxy == FrontProxyConfig(client_ca_file=file, cert_file=file, key_file=file, names=names)
    assert not config.bootstrap_tokens


@BOTH
def test_a_front_proxy_certificate_without_its_authority_is_refused(program: click.Command, file: Path) -> None:
    with pytest.raises(click.UsageError, match="--proxy-client-cert-file needs --requestheader-client-ca-file"):
        server_config(given(program, f"--proxy-client-cert-file={file}", f"--proxy-client-key-file={file}"))


def test_a_kube_apiserver_leaves_to_others_what_a_karmada_apiserver_does_itself() -> None:
    assert given(apiserver.main)["controllers"]
    assert not given(kube_apiserver.main)["controllers"]
