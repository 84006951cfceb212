"""The flags of the embedded API server, for `karmada` and `karmada-apiserver` alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import click

from karmada.components.flags import Given, duration, file, hang_flags, ignored, switch, together, words
from karmada.components.front_proxy_flags import front_proxy_from, request_header_flags
from karmada.components.running import namespace_deletion_flag
from karmada.kube.server.audit.config import AuditConfig, AuditWebhookConfig
from karmada.kube.server.audit.policy import METADATA_ONLY, Policy, read_policy
from karmada.kube.server.auth.frontproxy import FrontProxyConfig
from karmada.kube.server.auth.serving import TLS_VERSIONS, TlsConfig
from karmada.kube.server.auth.token_sources import OidcConfig, TokenWebhookConfig
from karmada.kube.server.config import DEFAULT_ISSUER, DEFAULT_PORT, ServerConfig

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj


def etcd_flags(prefix: str) -> Any:
    return together(
        click.option("--etcd-servers", default="", help="Store the state in this etcd: comma-separated URLs."),
        click.option("--etcd-prefix", default=prefix, help="Prefix of all keys in etcd."),
        click.option("--etcd-cafile", default="", help="Certificates (PEM) of the authority of etcd's certificate."),
        click.option("--etcd-certfile", default="", help="Client certificate (PEM) for etcd."),
        click.option("--etcd-keyfile", default="", help="Key (PEM) of the client certificate for etcd."),
    )


def stored_flags(what: str) -> Any:
    """Return where an extension of the API server stores its objects."""
    text = f"Where {what} are stored, in place of --etcd-servers: sqlite:///path, memory:// or etcd://host:port."
    return together(etcd_flags("/registry"), click.option("--storage", default="", help=text))


def etcd_address(servers: str, prefix: str, authority: str, certificate: str, key: str) -> str:
    """Return the store's address from the flags that API servers have for it."""
    hosts = []
    for server in servers.split(","):
        parts = urlsplit(server.strip() if "://" in server else f"http://{server.strip()}")
        if not parts.netloc or parts.scheme not in ("http", "https"):
            raise ValueError(f'--etcd-servers: "{server}" is not a URL like https://host:2379')
        if parts.scheme == "https" and not authority:
            raise ValueError(f"--etcd-servers: {server} needs --etcd-cafile")
        hosts.append(parts.netloc)
    options = {"prefix": prefix, "cacert": authority, "cert": certificate, "key": key}
    query = "&".join(f"{name}={quote(value)}" for name, value in options.items() if value)
    return f"etcd://{','.join(hosts)}?{query}" if query else f"etcd://{','.join(hosts)}"


def storage_from(given: Given) -> str:
    """Return the address of the store; empty when no flag says where it is."""
    names = ("etcd_servers", "etcd_prefix", "etcd_cafile", "etcd_certfile", "etcd_keyfile")
    storage: str = given["storage"]
    if not given["etcd_servers"]:
        return storage
    if storage:
        raise click.UsageError("--storage and --etcd-servers both say where the state is stored: use one of them")
    try:
        return etcd_address(*(given[name] for name in names))
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def at_least(least: int, name: str, default: int, text: str) -> Any:
    return click.option(name, type=click.IntRange(min=least), default=default, help=text)


oidc_flags = together(
    click.option("--oidc-issuer-url", default="", help="Accept tokens of this OpenID Connect issuer: an https URL."),
    click.option("--oidc-client-id", default="", help="Client that its tokens must be for (claim aud)."),
    click.option("--oidc-username-claim", default="sub", help="Claim that holds the name of the user."),
    click.option(
        "--oidc-username-prefix",
        default="",
        help="Text before the names of its users; - for none.  [default: the issuer's URL and #; none before an email]",
    ),
    click.option("--oidc-groups-claim", default="", help="Claim that holds the groups of the user."),
    click.option("--oidc-groups-prefix", default="", help="Text before the names of these groups."),
    click.option(
        "--oidc-required-claim", multiple=True, help="Claim that a token must have, as name=value; repeatable."
    ),
    file("--oidc-ca-file", "Authorities (PEM) of the issuer's certificate.  [default: those of the system]"),
    click.option("--oidc-signing-algs", default="RS256", help="Comma-separated signature algorithms accepted."),
)

token_webhook_flags = together(
    file("--authentication-token-webhook-config-file", "Kubeconfig of a webhook that reviews bearer tokens."),
    click.option(
        "--authentication-token-webhook-version",
        type=click.Choice(["v1beta1", "v1"]),
        default="v1beta1",
        help="Version of the TokenReviews that it gets.",
    ),
    duration("--authentication-token-webhook-cache-ttl", "2m", "How long its responses are cached."),
)

audit_flags = together(
    file("--audit-policy-file", "Policy (audit.k8s.io/v1) of what is audited.  [default: metadata of every request]"),
    click.option(
        "--audit-log-path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Append audit events to this file, as JSON lines; - for standard output.",
    ),
    click.option(
        "--audit-log-maxsize", type=click.IntRange(min=0), default=100, help="Megabytes at which the file is rotated."
    ),
    click.option(
        "--audit-log-maxbackup",
        type=click.IntRange(min=0),
        default=0,
        help="Number of rotated files to keep; 0 keeps all.",
    ),
    click.option(
        "--audit-log-maxage",
        type=click.IntRange(min=0),
        default=0,
        help="Days for which rotated files are kept; 0 keeps them for ever.",
    ),
    file("--audit-webhook-config-file", "Kubeconfig of a webhook that gets audit events, in batches."),
    at_least(1, "--audit-webhook-batch-max-size", 400, "Events in a batch."),
    duration("--audit-webhook-batch-max-wait", "30s", "How long an event may wait for its batch to fill."),
    click.option(
        "--audit-webhook-batch-buffer-size",
        type=click.IntRange(min=1),
        default=10_000,
        help="Events that may wait; more are dropped.",
    ),
    duration("--audit-webhook-initial-backoff", "10s", "Pause before a batch that failed is sent again."),
    ignored(
        "--audit-log-format --audit-log-mode --audit-log-version --audit-log-compress",
        "events are JSON lines of audit.k8s.io/v1, written before the response is.",
    ),
    ignored("--audit-webhook-mode --audit-webhook-version", "events of audit.k8s.io/v1 are sent in batches."),
)

server_flags = together(
    click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("~/.karmada"),
        help="Directory of certificates, keys, state and admin.kubeconfig; created with mode 0700.",
    ),
    click.option(
        "--storage",
        default="",
        help="Where the state is stored: sqlite:///path, etcd://host:port,host:port[?cacert=&cert=&key=&prefix=] or "
        "memory://.  [default: state.db in the data directory]",
    ),
    etcd_flags(""),
    file(
        "--encryption-provider-config",
        "EncryptionConfiguration of what is stored encrypted.  [default: Secrets and Works, with the key in "
        "pki/encryption.yaml]",
    ),
    click.option(
        "--accept-loss",
        is_flag=True,
        help="Start on a damaged SQLite store without what is lost (the damaged files are kept), or on an empty one.",
    ),
    click.option("--bind-address", default="127.0.0.1", help="Address to listen on."),
    click.option("--port", "--secure-port", "port", default=DEFAULT_PORT, help="Port to listen on; 0 for a free one."),
    click.option("--advertise-address", default="", help="Address that clients use.  [default: the bind address]"),
    click.option("--tls-san", multiple=True, help="Further name or address in the serving certificate; repeatable."),
    click.option("--kubernetes-version", default="1.36", help="Version of the built-in kinds, 1.25 to 1.37."),
    click.option("--service-cluster-ip-range", default="10.96.0.0/12", help="CIDR of the addresses of Services."),
    click.option(
        "--service-node-port-range",
        default="30000-32767",
        callback=lambda _ctx, param, value: _port_range(param, value),
        help="Range of the node ports of Services.",
    ),
    click.option(
        "--service-account-issuer",
        default=DEFAULT_ISSUER,
        help="Issuer in the tokens of ServiceAccounts.",
    ),
    click.option(
        "--service-account-key-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        help="Further keys (PEM, public or private) whose tokens of ServiceAccounts are accepted; repeatable.",
    ),
    file(
        "--service-account-signing-key-file",
        "Key (PEM) that signs the tokens of ServiceAccounts.  [default: pki/sa.key in the data directory]",
    ),
    file("--tls-cert-file", "Serving certificate (PEM), read again when it changes.  [default: one is made]"),
    file("--tls-private-key-file", "Key (PEM) of the serving certificate."),
    click.option(
        "--tls-min-version", type=click.Choice(list(TLS_VERSIONS)), default="VersionTLS12", help="Oldest TLS accepted."
    ),
    file(
        "--client-ca-file",
        "Authorities (PEM) of client certificates besides the server's own, read again when they change.",
    ),
    file("--token-auth-file", 'Static tokens, one line each: token,user,uid,"group1,group2".'),
    oidc_flags,
    token_webhook_flags,
    switch("--anonymous-auth", True, "Accept requests without credentials, as user system:anonymous."),
    click.option("--no-anonymous-auth", is_flag=True, help="The same as --anonymous-auth=false."),
    click.option("--disable-admission-plugins", default="", help="Comma-separated admission plug-ins to disable."),
    file(
        "--admission-control-config-file",
        "AdmissionConfiguration with the settings of plug-ins, such as defaults and exemptions of PodSecurity.",
    ),
    namespace_deletion_flag,
    audit_flags,
    switch("--enable-bootstrap-token-auth", True, "Accept bootstrap tokens, by which agents and nodes register."),
    request_header_flags,
    file(
        "--proxy-client-cert-file",
        "Certificate (PEM) by which aggregated servers know this one, read again when it changes.  [default: one is "
        "made]",
    ),
    file("--proxy-client-key-file", "Key (PEM) of that certificate."),
    ignored(
        "--allow-privileged --authorization-mode --enable-admission-plugins --runtime-config --apiserver-count",
        "privileged pods are stored, RBAC authorises, all plug-ins and APIs are enabled, and servers on one etcd find "
        "each other there.",
    ),
    hang_flags,
)


def server_config(given: Given, *, cluster_controllers: bool = True) -> ServerConfig:
    return ServerConfig(
        data_dir=given["data_dir"].expanduser(),
        storage=storage_from(given),
        accept_loss=given["accept_loss"],
        encryption_config=given["encryption_provider_config"],
        host=given["bind_address"],
        port=given["port"],
        advertise_host=given["advertise_address"],
        extra_sans=given["tls_san"],
        kubernetes_version=given["kubernetes_version"].removeprefix("v"),
        service_cidr=given["service_cluster_ip_range"],
        node_ports=given["service_node_port_range"],
        service_account_issuer=given["service_account_issuer"],
        service_account_key_files=given["service_account_key_file"],
        service_account_signing_key_file=given["service_account_signing_key_file"],
        tls=_tls(given),
        front_proxy=_front_proxy(given),
        bootstrap_tokens=given["enable_bootstrap_token_auth"],
        token_file=given["token_auth_file"],
        oidc=_oidc(given),
        token_webhook=_token_webhook(given),
        anonymous=given["anonymous_auth"] and not given["no_anonymous_auth"],
        disabled_admission=frozenset(words(given["disable_admission_plugins"])),
        admission_configuration=_admission_configuration(given["admission_control_config_file"]),
        cluster_controllers=cluster_controllers,
        namespace_deletion_delay=given["namespace_deletion_delay"],
        audit=audit_from(given),
    )


def _tls(given: Given) -> TlsConfig:
    names = {"cert_file": "tls_cert_file", "key_file": "tls_private_key_file", "client_ca_file": "client_ca_file"}
    try:
        return TlsConfig(minimum=given["tls_min_version"], **{field: given[flag] for field, flag in names.items()})
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _front_proxy(given: Given) -> FrontProxyConfig:
    names = {
        "client_ca_file": "requestheader_client_ca_file",
        "cert_file": "proxy_client_cert_file",
        "key_file": "proxy_client_key_file",
    }
    try:
        return FrontProxyConfig(names=front_proxy_from(given), **{field: given[flag] for field, flag in names.items()})
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def audit_from(given: Given) -> AuditConfig:
    webhook = given["audit_webhook_config_file"]
    return AuditConfig(
        policy=_audit_policy(given["audit_policy_file"]),
        log_path=given["audit_log_path"],
        max_megabytes=given["audit_log_maxsize"] or AuditConfig().max_megabytes,
        max_backups=given["audit_log_maxbackup"],
        max_days=given["audit_log_maxage"],
        webhook=None
        if webhook is None
        else AuditWebhookConfig(
            file=webhook,
            batch=given["audit_webhook_batch_max_size"],
            buffer=given["audit_webhook_batch_buffer_size"],
            wait_seconds=given["audit_webhook_batch_max_wait"],
            first_pause=given["audit_webhook_initial_backoff"],
        ),
    )


def _audit_policy(path: Path | None) -> Policy:
    if path is None:
        return METADATA_ONLY
    try:
        return read_policy(path)
    except ValueError as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="--audit-policy-file") from error


def _oidc(given: Given) -> OidcConfig | None:
    if not given["oidc_issuer_url"]:
        return None
    required = {}
    for claim in given["oidc_required_claim"]:
        name, equals, value = claim.partition("=")
        if not equals or not name:
            raise click.UsageError(f'--oidc-required-claim: "{claim}" is not like name=value')
        required[name] = value
    names = ("issuer_url", "client_id", "username_claim", "username_prefix", "groups_claim", "groups_prefix", "ca_file")
    try:
        return OidcConfig(
            required_claims=required,
            signing_algs=words(given["oidc_signing_algs"]),
            **{name: given[f"oidc_{name}"] for name in names},
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _token_webhook(given: Given) -> TokenWebhookConfig | None:
    path = given["authentication_token_webhook_config_file"]
    if path is None:
        return None
    return TokenWebhookConfig(
        file=path,
        version=given["authentication_token_webhook_version"],
        cache_seconds=given["authentication_token_webhook_cache_ttl"],
    )


def _admission_configuration(path: Path | None) -> dict[str, Obj]:
    """Return the configuration in the file; one that a plug-in refuses is reported before anything starts."""
    from karmada.kube.server.admission.configuration import read_admission_configuration
    from karmada.kube.server.admission.pod_security.policy import Configuration

    if path is None:
        return {}
    try:
        found = read_admission_configuration(path)
        Configuration.of(found.get("PodSecurity"))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--admission-control-config-file") from error
    return found


def _port_range(param: click.Parameter, text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not dash or not first.isdigit() or not last.isdigit() or not 0 < int(first) <= int(last) < 65536:
        raise click.BadParameter(f'"{text}" is not a range like 30000-32767', param=param)
    return int(first), int(last)
