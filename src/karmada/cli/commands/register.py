"""`karmadactl register`: register a cluster in pull mode, run against the cluster with a token of the control plane."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from karmada.cli.parsing import program
from karmada.cli.targeting import connect
from karmada.install.images import IMAGE

if TYPE_CHECKING:
    from karmada.joining.pull.discovery import Discovery
    from karmada.joining.pull.register import Registration
    from karmada.kube.client.config import RestConfig

_GENERATOR = "rbac-generator"


@click.command()
@click.argument("endpoints", nargs=-1, metavar="KARMADA_APISERVER_ENDPOINT")
@click.option("--kubeconfig", default="", help="The kubeconfig of the cluster that registers.")
@click.option("--context", default="", help="The context in that kubeconfig.")
@click.option("-n", "--namespace", default="karmada-system", show_default=True, help="The namespace for the agent.")
@click.option("--cluster-name", default="", help="The name of the cluster [as in its kubeconfig].")
@click.option(
    "--cluster-namespace",
    default="karmada-cluster",
    show_default=True,
    help="The namespace in the control plane for the Secrets of the cluster.",
)
@click.option("--cluster-provider", default="", help="The cloud provider of the cluster.")
@click.option("--cluster-region", default="", help="The region of the cluster.")
@click.option("--cluster-zones", multiple=True, help="The zones of the cluster, comma-separated.")
@click.option("--enable-cert-rotation", is_flag=True, help="Let the agent rotate its certificate.")
@click.option("--token", default="", help="The bootstrap token, from 'karmadactl token create'.")
@click.option(
    "--discovery-token-ca-cert-hash",
    multiple=True,
    help="Hashes of accepted CA public keys of the control plane: sha256:HEX, comma-separated.",
)
@click.option(
    "--discovery-token-unsafe-skip-ca-verification", is_flag=True, help="Do not verify the control plane's CA."
)
@click.option(
    "--discovery-timeout",
    type=connect.Duration(),
    default="5m0s",
    show_default=True,
    help="How long to try to reach the control plane, and to wait for certificates and for the agent.",
)
@click.option("--karmada-agent-image", default=IMAGE, show_default=True, help="The image of the agent.")
@click.option("--karmada-agent-replicas", default=1, show_default=True, help="The number of agent pods.")
@click.option(
    "--cert-expiration-seconds", default=31536000, show_default=True, help="How long the agent's certificate is valid."
)
@click.option(
    "--proxy-server-address", default="", help="The proxy through which the control plane reaches the cluster."
)
@click.option("--dry-run", is_flag=True, help="Check whether it could register; change nothing.")
def register(
    endpoints: tuple[str, ...],
    kubeconfig: str,
    context: str,
    namespace: str,
    cluster_name: str,
    cluster_namespace: str,
    cluster_provider: str,
    cluster_region: str,
    cluster_zones: tuple[str, ...],
    enable_cert_rotation: bool,
    token: str,
    discovery_token_ca_cert_hash: tuple[str, ...],
    discovery_token_unsafe_skip_ca_verification: bool,
    discovery_timeout: float,
    karmada_agent_image: str,
    karmada_agent_replicas: int,
    cert_expiration_seconds: int,
    proxy_server_address: str,
    dry_run: bool,
) -> None:
    """Register a cluster in pull mode with the control plane at KARMADA_APISERVER_ENDPOINT.

    \b
    Examples:
      karmadactl register 10.0.0.1:5443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1a2b...
      karmadactl register 10.0.0.1:5443 --cluster-name member3 --token abcdef.0123456789abcdef \\
        --discovery-token-unsafe-skip-ca-verification
    """
    from karmada.joining.pull.objects import Agent
    from karmada.joining.pull.register import Registration

    if len(endpoints) != 1:
        raise connect.failure(f"accepts 1 arg(s), received {len(endpoints)}")
    member = connect.member_config(kubeconfig, context, flag="--kubeconfig")
    name = cluster_name or _name_in(kubeconfig, context)
    _check_name(name)
    pins = connect.commas(discovery_token_ca_cert_hash)
    discovery = _discovery(
        endpoints[0], token, pins, unsafe=discovery_token_unsafe_skip_ca_verification, timeout=discovery_timeout
    )
    agent = Agent(
        cluster=name,
        api_endpoint=member.server,
        image=karmada_agent_image,
        namespace=namespace,
        cluster_namespace=cluster_namespace,
        replicas=karmada_agent_replicas,
        provider=cluster_provider,
        region=cluster_region,
        zones=connect.commas(cluster_zones),
        proxy_server_address=proxy_server_address,
        rotates_certificate=enable_cert_rotation,
    )
    registration = Registration(discovery=discovery, agent=agent, certificate_seconds=cert_expiration_seconds)
    connect.run(_register(member, registration, dry_run))


def _check_name(name: str) -> None:
    from karmada.api.names import cluster_name_errors

    wrong = cluster_name_errors(name)
    if not wrong and name == _GENERATOR:
        wrong = [
            f'must not be "{_GENERATOR}": the user of its agent would be the one that creates the rights of agents'
        ]
    if wrong:
        raise connect.failure(f"invalid cluster name({name}): {';'.join(wrong)}")


def _name_in(kubeconfig: str, context: str) -> str:
    """Return what the kubeconfig calls the cluster of the context."""
    import os

    from karmada.kube.client.kubeconfig import Kubeconfig

    path = Path(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    if not path.exists():
        raise connect.failure("--cluster-name is required: there is no kubeconfig that has the name of the cluster")
    config = Kubeconfig.load(path)
    return str(config.contexts.get(context or config.current_context, {}).get("cluster") or "")


def _discovery(endpoint: str, token: str, pins: list[str], *, unsafe: bool, timeout: float) -> Discovery:
    from karmada.joining.pull.discovery import Discovery
    from karmada.joining.pull.pins import parse_pins
    from karmada.kube.objects.bootstrap_tokens import ID_PATTERN, SECRET_PATTERN, BootstrapToken
    from karmada.kube.objects.times import format_duration

    if not token:
        raise connect.failure("token is required")
    if not pins and not unsafe:
        raise connect.failure("need to verify CACertHashes, or set --discovery-token-unsafe-skip-ca-verification=true")
    parsed = BootstrapToken.parse(token)
    if parsed is None:
        raise connect.failure(
            "couldn't validate the identity of the API Server: the bootstrap token was not of the form "
            f'"{ID_PATTERN}.{SECRET_PATTERN}"'
        )
    if timeout <= 0:
        raise connect.failure(f"--discovery-timeout {format_duration(timeout)} must be a positive duration, e.g. 5m0s")
    try:
        accepted = parse_pins(pins)
    except ValueError as error:
        raise connect.failure(
            f"couldn't validate the identity of the API Server: invalid discovery token CA certificate hash: {error}"
        ) from error
    return Discovery(
        server=_server(endpoint),
        token=parsed,
        pins=accepted,
        timeout=timeout,
        new_token=f"{program.command()} token create",
    )


def _server(endpoint: str) -> str:
    from urllib.parse import urlsplit

    server = endpoint if endpoint.startswith("https://") else f"https://{endpoint}"
    parts = urlsplit(server)
    if "://" in parts.netloc + parts.path or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise connect.failure(f'"{endpoint}" is not the address of a control plane, like 10.0.0.1:5443')
    return server.rstrip("/")


async def _register(config: RestConfig, registration: Registration, dry_run: bool) -> None:
    from karmada.joining.pull.register import Registering, preflight

    async with connect.connected(config) as member:
        click.echo("[preflight] Running pre-flight checks")
        problems = await preflight(member, registration.agent.namespace)
        if problems:
            click.echo("error execution phase preflight: [preflight] Some fatal errors occurred:")
            for problem in problems:
                click.echo(f"\t[ERROR]: {problem}")
            click.echo("\n[preflight] Please check the above errors")
            return
        click.echo("[preflight] All pre-flight checks were passed")
        if dry_run:
            return
        registering = Registering(
            connect.connected,
            member,
            registration,
            say=click.echo,
            progress=connect.progress,
            warn=lambda text: click.echo(f"warning: {text}", err=True),
        )
        await registering.run()
    click.echo(f"\ncluster({registration.name}) is joined successfully")
