"""`kube-controller-manager`: the controllers of Kubernetes that a control plane needs, as a process of their own.

`karmada` and `karmada-apiserver` run them themselves. This is for API servers that are called kube-apiserver, ours or
others: namespaces, garbage collection, tokens, certificates, roles. A control plane has templates, so there is none of
the controllers that make pods. Of several such processes one is the leader and the others stand by.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from karmada.components.extension import delegation_flags, extension_from, serving_flags_at
from karmada.components.flags import (
    Given,
    duration,
    election_flags,
    election_from,
    file,
    ignored,
    logging_flags,
    together,
    words,
)
from karmada.components.program import CONTEXT, Program
from karmada.components.running import begin, errors_in_one_line, namespace_deletion_flag, start_unless
from karmada.kube.objects.shapes import METADATA

if TYPE_CHECKING:
    from karmada.components.extension import Extension
    from karmada.kube.runtime.manager import Manager
    from karmada.kube.server.controllers.cluster_controllers import Needs
    from karmada.kube.server.controllers.garbage_collector import GarbageCollector

COMPONENT: Final = "kube-controller-manager"
PORT: Final = 10257
REDISCOVERY_SECONDS: Final = 30.0
"""How often the served resources are looked at, besides when a definition changes: servers learn of one in turn."""

flags = together(
    delegation_flags,
    serving_flags_at(PORT, cert_dir=None),
    click.option(
        "--controllers",
        default="*",
        callback=lambda _ctx, _param, value: words(value),
        help="Comma-separated controllers: * enables all, NAME enables one, -NAME disables one; the first entry that "
        "names a controller decides.",
    ),
    file("--service-account-private-key-file", "Key (PEM) that signs the tokens in Secrets of ServiceAccounts."),
    file("--root-ca-file", "Certificates (PEM) that verify the API server, for these Secrets and for every namespace."),
    file("--cluster-signing-cert-file", "Authority (PEM) that signs what CertificateSigningRequests request."),
    file("--cluster-signing-key-file", "Key (PEM) of that authority."),
    duration("--cluster-signing-duration", "8760h", "Longest life of the certificates that it signs."),
    namespace_deletion_flag,
    election_flags(COMPONENT, namespace="kube-system"),
    ignored(
        "--allocate-node-cidrs --cluster-cidr --node-cidr-mask-size --service-cluster-ip-range --cluster-name",
        "a control plane has no nodes and no networks.",
    ),
    ignored("--use-service-account-credentials", "all controllers use the account of the kubeconfig."),
    ignored("--kube-api-qps --kube-api-burst", "the rate of requests adapts to the API server."),
    ignored("--feature-gates --profiling", "there are none."),
    logging_flags,
)


@click.command(COMPONENT, cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Run the controllers that a control plane of kube-apiservers needs, until interrupted.

    \b
    Example:
      kube-controller-manager --kubeconfig ~/.karmada/admin.kubeconfig --controllers namespace,garbagecollector
    """
    import uvloop

    from karmada.kube.client.kubeconfig import KubeconfigError
    from karmada.kube.runtime.manager import LeadershipLost
    from karmada.kube.server.controllers.cluster_controllers import check

    try:
        with errors_in_one_line():
            check(given["controllers"])
            uvloop.run(_serve(given))
    except LeadershipLost:
        raise click.ClickException("leaderelection lost") from None
    except KubeconfigError as error:
        raise click.ClickException(str(error)) from error


async def _serve(given: Given) -> None:
    stopping = begin(verbosity=given["verbosity"], logging_format=given["logging_format"])
    with ExitStack() as stack:
        extension, manager = assembled(given, stack)
        try:
            if await start_unless(stopping, extension.start()):
                click.echo(f"Controllers of Kubernetes at {extension.server.url}")
                await start_unless(stopping, manager.run())  # LeadershipLost when another process took over
            click.echo("Stopping", file=sys.stderr)
        finally:
            await extension.stop()
            await manager.client.close()


def assembled(given: Given, stack: ExitStack) -> tuple[Extension, Manager]:
    """Return its port and its controllers, not yet started; OSError, ValueError for files that cannot be used."""
    from tempfile import TemporaryDirectory

    from karmada.kube.runtime.metrics import Metrics
    from karmada.kube.server.config import ServerConfig

    folder = given["cert_dir"] or Path(stack.enter_context(TemporaryDirectory(prefix=f"{COMPONENT}-")))
    where = {"host": given["bind_address"], "port": given["secure_port"]}
    config = ServerConfig(data_dir=folder, storage="memory://", **where)
    extension = extension_from({**given, "cert_dir": folder}, config, f"{COMPONENT}.karmada-system")
    metrics = Metrics()
    extension.server.metrics.others = lambda: metrics.expose()[0]
    return extension, _manager(given, extension, metrics)


def _manager(given: Given, extension: Extension, metrics: Any) -> Manager:
    """Return the enabled controllers under their lease, as clients of the control plane."""
    from dataclasses import replace

    from karmada.components.extension import access_from
    from karmada.kube.client.client import Client
    from karmada.kube.client.http_transport import HttpTransport
    from karmada.kube.runtime.manager import Manager
    from karmada.kube.server.controllers import cluster_controllers
    from karmada.kube.server.controllers.garbage_collector import GarbageCollector

    transport = HttpTransport(replace(access_from(given).objects, user_agent=COMPONENT))
    client, clock = Client(transport, field_manager=COMPONENT), extension.clock
    election = election_from(given, COMPONENT)
    elector = election.elector(client, clock, metrics) if election is not None else None
    manager = Manager(client, clock=clock, metrics=metrics, elector=elector)
    transport.returned.append(manager.informers.retry_now)
    for part in cluster_controllers.made(_needs(given, extension, manager), given["controllers"]):
        manager.add_part(part)
        if isinstance(part, GarbageCollector):
            _follow_resources(manager, part)
    return manager


def _needs(given: Given, extension: Extension, manager: Manager) -> Needs:
    from karmada.kube.client.client import Client
    from karmada.kube.server.auth.jwt import SigningKey
    from karmada.kube.server.auth.pki import CertificateAuthority, KeyPair
    from karmada.kube.server.auth.tokens import TokenIssuer
    from karmada.kube.server.controllers.cluster_controllers import Needs

    def read(flag: str) -> bytes:
        return given[flag].read_bytes() if given[flag] is not None else b""

    client, now = manager.client, extension.clock.now
    authority = KeyPair(read("cluster_signing_cert_file"), read("cluster_signing_key_file"))
    if bool(authority.cert_pem) is not bool(authority.key_pem):
        raise ValueError("--cluster-signing-cert-file and --cluster-signing-key-file are needed together")
    key = read("service_account_private_key_file")
    return Needs(
        client=lambda name: Client(client.transport, field_manager=name.partition("/")[0], mapper=client.mapper),
        informers=manager.informers,
        clock=extension.clock,
        rights=extension.rights,
        namespace_deletion_delay=given["namespace_deletion_delay"],
        root_pem=read("root_ca_file"),
        issuer=TokenIssuer(SigningKey(key), now=now) if key else None,
        signer=CertificateAuthority(authority) if authority.key_pem else None,
        longest_certificate=given["cluster_signing_duration"],
    )


def _follow_resources(manager: Manager, collector: GarbageCollector) -> None:
    """Have the collector look again when definitions or aggregated servers change."""
    from karmada.kube.objects.gvrs import APISERVICES, CRDS
    from karmada.kube.runtime.periodic import Periodic

    for gvr in (CRDS, APISERVICES):
        manager.informers.of(gvr, shape=METADATA).add_handler(lambda _old, _new: collector.resources_changed())

    async def look() -> None:
        collector.resources_changed()

    manager.add_component(Periodic("rediscovery", look, REDISCOVERY_SECONDS, manager.clock), needs_leader=True)


if __name__ == "__main__":
    main()
