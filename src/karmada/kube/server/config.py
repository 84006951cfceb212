"""How an API server is set up; everything has a default that makes sense on a laptop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from karmada.kube.objects.types import Obj
from karmada.kube.server.audit.config import AuditConfig
from karmada.kube.server.auth.frontproxy import FrontProxyConfig
from karmada.kube.server.auth.serving import TlsConfig
from karmada.kube.server.auth.token_sources import OidcConfig, TokenWebhookConfig
from karmada.kube.server.watchcache.collection import History

DEFAULT_PORT = 5443
DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    data_dir: Path
    """Certificates, keys and (with SQLite) the state; 0700, its files 0600."""
    storage: str = ""
    """sqlite:///path, etcd://host:port,… or memory://; empty: sqlite in `data_dir`."""
    storage_scope: str = ""
    """Prefix of the keys of this server's objects ("group/"), where the store holds others' as well."""
    accept_loss: bool = False
    """Open a damaged store without what is lost, and an empty one in a data directory that had a state before."""
    encryption_config: Path | None = None
    """EncryptionConfiguration for the store; None: pki/encryption.yaml, made for SQLite with a new key."""
    encrypted_resources: tuple[str, ...] = ("secrets",)
    """Resources that the configuration that is made encrypts."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    advertise_host: str = ""
    public_url: str = ""
    """URL by which clients elsewhere reach the server, where it is not the advertised address and the port."""
    extra_sans: tuple[str, ...] = ()
    kubernetes_version: str = "1.36"
    """Which built-in kinds are served and what /version says."""
    cluster_id: str = ""
    """The uid of namespace kube-system, which identifies a cluster; empty: a random one."""
    service_cidr: str = "10.96.0.0/12"
    node_ports: tuple[int, int] = (30000, 32767)
    service_account_issuer: str = DEFAULT_ISSUER
    service_account_signing_key_file: Path | None = None
    """The key that signs tokens of ServiceAccounts; None: sa.key of the data directory."""
    service_account_key_files: tuple[Path, ...] = ()
    """Further keys whose tokens are accepted: those of other issuers' servers, and former ones."""
    tls: TlsConfig = field(default_factory=TlsConfig)
    front_proxy: FrontProxyConfig = field(default_factory=FrontProxyConfig)
    token_file: Path | None = None
    """Static tokens: token,user,uid,"group1,group2" a line."""
    oidc: OidcConfig | None = None
    """Whose OpenID Connect tokens are accepted."""
    token_webhook: TokenWebhookConfig | None = None
    bootstrap_tokens: bool = True
    """Accept bootstrap tokens, by which agents and nodes register."""
    namespace_defaults: bool = True
    """Give every namespace its default ServiceAccount and the authority's certificate, as pods need them."""
    context: str = "karmada-apiserver"
    """Name of this server in the kubeconfig that is written."""
    anonymous: bool = True
    disabled_admission: frozenset[str] = field(default_factory=frozenset)
    """Names of admission plug-ins to leave out."""
    admission_configuration: Mapping[str, Obj] = field(default_factory=dict)
    """The settings of single admission plug-ins, by name, as an AdmissionConfiguration has them."""
    controllers: bool = True
    """Run the built-in controllers."""
    cluster_controllers: bool = True
    """True for the controllers of a kube-controller-manager too: namespaces, garbage collection, tokens, certificates.
    """
    namespace_deletion_delay: float = 0.0
    """Seconds between the deletion of a namespace and that of its content; the programs' flag has Kubernetes' five."""
    audit: AuditConfig = field(default_factory=AuditConfig)
    history: History = field(default_factory=History)

    @property
    def storage_url(self) -> str:
        """Return where the state is stored, also by default."""
        return self.storage or f"sqlite://{quote(str((self.data_dir / 'state.db').absolute()))}"

    @property
    def shares_storage(self) -> bool:
        """Other servers may use the same store."""
        return self.storage.startswith("etcd:")

    @property
    def git_version(self) -> str:
        return f"v{self.kubernetes_version}.0"
