"""Flags that several programs have, each defined once.

A program puts its flags together from these groups; what was given comes as a dict, from which `settings_from`,
`election_from` and their like make what the parts are configured with. A flag of Karmada that has no effect here is
`ignored`: it is accepted, and a program that gets one says so in one line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from karmada.components.election import NAMESPACE, Election
from karmada.components.program import Ignored
from karmada.features import FEATURES, default_gates

if TYPE_CHECKING:
    from karmada.controllers.context import Settings
    from karmada.kube.client.config import RestConfig
    from karmada.kube.objects.errors import FieldError
    from karmada.kube.runtime.features import FeatureGates
    from karmada.kube.runtime.health import Health
    from karmada.kube.runtime.serving import Exposes, ObservabilityServer

Address = tuple[str, int]
F = TypeVar("F", bound=Callable[..., Any])
Given = Mapping[str, Any]
"""Flags by their names with underscores."""


def together(*flags: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several flags as one, in the order in which the help lists them."""

    def decorate(command: F) -> F:
        for flag in reversed(flags):
            command = flag(command)
        return command

    return decorate


# types of flags


def duration(name: str, default: str, text: str, **more: Any) -> Callable[[F], F]:
    """Seconds, given as 10s or 1m30s."""
    return click.option(name, callback=_seconds, default=default, metavar="DURATION", help=text, **more)


def switch(name: str, default: bool, text: str, **more: Any) -> Callable[[F], F]:
    """--name, --name=true or --name=false."""
    return click.option(name, type=bool, is_flag=False, flag_value=True, default=default, help=text, **more)


def address(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(name, callback=_address, default=default, metavar="HOST:PORT", help=text)


def file(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, type=click.Path(exists=True, dir_okay=False, path_type=Path), help=text)


def ignored(names: str, why: str) -> Callable[[F], F]:
    """Accept flags of Karmada that have no effect here, with any value or none."""
    return together(
        *(
            click.option(
                name,
                cls=Ignored,
                is_flag=False,
                flag_value="true",
                default=None,
                expose_value=False,
                help=f"No effect: {why}",
            )
            for name in names.split()
        )
    )


def _seconds(_ctx: click.Context, param: click.Parameter, value: str) -> float:
    from karmada.kube.objects.times import parse_duration

    try:
        return parse_duration(value)
    except ValueError:
        raise click.BadParameter(f'"{value}" is not a duration such as 10s or 1m30s', param=param) from None


def _address(_ctx: click.Context, param: click.Parameter, text: str) -> Address | None:
    """host:port, with all addresses of the machine for an empty host; "" and "0" are none."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f'"{text}" is not an address like :8080', param=param)
    return host.strip("[]") or "0.0.0.0", int(port)


def words(text: str) -> tuple[str, ...]:
    """Return the entries of a comma-separated list."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


# every program

logging_flags = together(
    click.option("-v", "--v", "--verbosity", "verbosity", default=0, help="How much to log; higher numbers log more."),
    click.option(
        "--logging-format",
        type=click.Choice(["text", "json"]),
        default="text",
        help="Format of the lines of the log.",
    ),
    ignored("--vmodule --log-flush-frequency", "one verbosity holds for all modules, and lines are written at once."),
)

hang_flags = together(
    duration(
        "--hang-timeout",
        "30s",
        "How long one step of the program may hold its event loop before the process ends, so that its supervisor "
        "starts it again; 0: for ever.",
    ),
    click.option(
        "--quarantine-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File that names the keys that hung the event loop: they are left alone until their object changes.",
    ),
)

feature_gates_flag = click.option(
    "--feature-gates",
    multiple=True,
    help=f"Features to enable or disable, as Name=true,Other=false. Known: {', '.join(sorted(FEATURES))}.",
)


def gates_from(given: Given) -> FeatureGates:
    gates = default_gates()
    try:
        for text in given["feature_gates"]:
            gates.set(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--feature-gates") from None
    return gates


# programs that are clients of an API server

kube_api_flags = ignored("--kube-api-qps --kube-api-burst", "the rate of requests adapts to the API server.")
client_flags = together(
    click.option("--kubeconfig", default="", help="Kubeconfig of the control plane.  [default: as kubectl]"),
    click.option("--master", default="", help="Address of the control plane, in place of the one in the kubeconfig."),
    kube_api_flags,
)


def config_from(given: Given) -> RestConfig:
    """As the flags say, else by $KUBECONFIG, the pod's service account, or the user's kubeconfig."""
    from dataclasses import replace

    from karmada.kube.client.kubeconfig import load_config

    by_environment = not given["kubeconfig"] and os.environ.get("KUBECONFIG")
    config = load_config(None) if by_environment else own_cluster_config(given["kubeconfig"])
    return replace(config, server=given["master"]) if given["master"] else config


def own_cluster_config(kubeconfig: str) -> RestConfig:
    """Return the cluster that a program runs in: as given, else by the pod's service account, or kubectl's files."""
    from karmada.kube.client.incluster import NotInCluster, in_cluster_config
    from karmada.kube.client.kubeconfig import load_config

    if kubeconfig:
        return load_config(kubeconfig)
    try:
        return in_cluster_config()
    except NotInCluster:
        return load_config(None)


def election_flags(lease: str, *, named: bool = True, namespace: str = NAMESPACE) -> Callable[[F], F]:
    """`lease` is what the help says of the default name; `named`: whether a flag can set another."""
    name = click.option("--leader-elect-resource-name", default="", help=f"Name of the lease.  [default: {lease}]")
    return together(
        switch("--leader-elect", True, "Run only while holding the lease; otherwise stand by."),
        *([name] if named else []),
        click.option("--leader-elect-resource-namespace", default=namespace, help="Namespace of the lease."),
        duration(
            "--leader-elect-lease-duration", "15s", "How long a lease that is not renewed is respected by the others."
        ),
        duration("--leader-elect-renew-deadline", "10s", "How long the leader goes on when it cannot renew its lease."),
        duration("--leader-elect-retry-period", "2s", "How often the lease is renewed, or tried for."),
    )


def election_from(given: Given, lease: str) -> Election | None:
    if not given["leader_elect"]:
        return None
    return Election(
        name=given.get("leader_elect_resource_name") or lease,
        namespace=given["leader_elect_resource_namespace"],
        lease_duration=given["leader_elect_lease_duration"],
        renew_deadline=given["leader_elect_renew_deadline"],
        retry_period=given["leader_elect_retry_period"],
    )


def endpoint_flags(health_port: int) -> Callable[[F], F]:
    return together(
        address("--metrics-bind-address", ":8080", "Address of /metrics; 0 disables it."),
        address("--health-probe-bind-address", f":{health_port}", "Address of /healthz and /readyz; 0 disables them."),
        click.option("--bind-address", default="", help="Older form of --health-probe-bind-address: its host."),
        click.option("--secure-port", default=0, help="Older form of --health-probe-bind-address: its port."),
        ignored("--enable-pprof --profiling-bind-address", "this program has no Go profiles; use py-spy."),
    )


class Endpoints(NamedTuple):
    """Where a process serves /metrics, and /healthz and /readyz; None: not at all."""

    metrics: Address | None = None
    health: Address | None = None

    def servers(self, health: Health, metrics: Exposes) -> list[ObservabilityServer]:
        """Return the servers, one for both when they have one address."""
        from karmada.kube.runtime.serving import ObservabilityServer

        found: dict[Address, bool] = {}
        for address, measured in ((self.health, False), (self.metrics, True)):
            if address is not None:
                found[address] = found.get(address, False) or measured
        return [
            ObservabilityServer(health, metrics if measured else None, host=host, port=port)
            for (host, port), measured in found.items()
        ]


def endpoints_from(given: Given) -> Endpoints:
    return Endpoints(given["metrics_bind_address"], health_address_from(given))


def health_address_from(given: Given) -> Address | None:
    """Return the health address; the older flags have precedence, since only newer command lines have the newer one."""
    found: Address | None = given["health_probe_bind_address"]
    host, port = given["bind_address"], given["secure_port"]
    if not host and not port:
        return found
    default_host, default_port = found or ("0.0.0.0", 0)
    return host or default_host, port or default_port


# admission


def _limits(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> None:
    from karmada.admission.limits import set_limits

    try:
        set_limits(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


admission_flags = together(
    switch("--allow-no-execute-taint-policy", False, "Allow ClusterTaintPolicies to add NoExecute taints to clusters."),
    click.option(
        "--admission-limit",
        multiple=True,
        callback=_limits,
        expose_value=False,
        metavar="NAME=NUMBER",
        help="Items or bytes that policies and autoscalers may have of a field; can be repeated.",
    ),
)

insecure_members_flag = switch(
    "--allow-insecure-members",
    False,
    "Allow clusters with an http:// address, to which credentials are sent unencrypted. For tests only.",
)

# the controllers

_WORKERS = {
    "cluster": (5, "Clusters"),
    "clusterresourcebinding": (5, "ClusterResourceBindings of each kind of resource (at least 64)"),
    "resourcebinding": (5, "ResourceBindings of each kind of resource (at least 64)"),
    "namespace": (1, "Namespaces"),
    "propagation-policy": (1, "PropagationPolicies"),
    "cluster-propagation-policy": (1, "ClusterPropagationPolicies"),
    "resource-template": (5, "resource templates of each kind (at least 64)"),
}

controllers_flag = click.option(
    "--controllers",
    default="*",
    callback=lambda _ctx, _param, value: words(value),
    help="Comma-separated controllers: * enables all that are on by default, NAME enables one, -NAME disables one; "
    "the first entry that names a controller decides.",
)
cluster_status_flags = together(
    duration("--cluster-status-update-frequency", "10s", "How often the status of a member cluster is collected."),
    duration(
        "--cluster-success-threshold", "30s", "How long a cluster must pass its health check before it is marked ready."
    ),
    duration(
        "--cluster-failure-threshold",
        "30s",
        "How long a cluster must fail its health check before it is marked not ready.",
    ),
    duration("--cluster-cache-sync-timeout", "2m", "How long the first list of a member's objects may take."),
    switch("--enable-cluster-resource-modeling", True, "Count the nodes of every cluster by resource model."),
    ignored("--concurrent-work-syncs", "the objects of every namespace of every cluster are applied side by side."),
    ignored("--cluster-api-qps --cluster-api-burst", "the rate of requests adapts to the member."),
    ignored("--resync-period", "changes are never missed, so nothing is resynced."),
)

_PURGE_MODES = ("Gracefully", "Directly")
failover_flags = together(
    switch(
        "--enable-taint-manager", True, "Run the taint manager, if the gate Failover is on and the next flag is set."
    ),
    switch(
        "--enable-no-execute-taint-eviction",
        False,
        "Evict resources from clusters with NoExecute taints that their placement does not tolerate.",
    ),
    click.option(
        "--no-execute-taint-eviction-purge-mode",
        default="Gracefully",
        help="How they leave, unless their policy says: Gracefully (the copy stays until the resource is healthy "
        "elsewhere) or Directly (the copy is deleted first).",
    ),
    click.option(
        "--resource-eviction-rate",
        default=0.5,
        help="Evictions by taints per second, by each of three workers; 0 is one in half an hour.",
    ),
    duration(
        "--graceful-eviction-timeout",
        "10m",
        "How long the copy in a cluster that is left waits for the resource to be healthy elsewhere.",
    ),
    switch(
        "--evict-last-copy",
        False,
        "Delete the copy at the end of that time even if no other copy serves, as Karmada does.",
    ),
)

autoscaling_flags = together(
    duration("--horizontal-pod-autoscaler-sync-period", "15s", "How often FederatedHPAs compute replicas."),
    duration(
        "--horizontal-pod-autoscaler-downscale-stabilization",
        "5m",
        "How long the highest recommendation of a FederatedHPA counts before replicas fall.",
    ),
    click.option(
        "--horizontal-pod-autoscaler-tolerance",
        default=0.1,
        help="By which part usage may differ from its target before a FederatedHPA scales.",
    ),
    duration(
        "--horizontal-pod-autoscaler-cpu-initialization-period",
        "5m",
        "How long after its start a pod's CPU usage counts only if it is ready.",
    ),
    duration(
        "--horizontal-pod-autoscaler-initial-readiness-delay",
        "30s",
        "A pod that is not ready, and has not been later than this after its start, has never been ready.",
    ),
    ignored(
        "--horizontal-pod-autoscaler-upscale-delay --horizontal-pod-autoscaler-downscale-delay",
        "Karmada does not use it either.",
    ),
)

controller_flags = together(
    controllers_flag,
    cluster_status_flags,
    duration("--cluster-monitor-period", "5s", "How often the leases of clusters in Pull mode are checked."),
    duration(
        "--cluster-monitor-grace-period",
        "40s",
        "How long a running cluster may be silent before its readiness is Unknown.",
    ),
    duration(
        "--cluster-startup-grace-period", "60s", "How long a new cluster may be silent before its readiness is Unknown."
    ),
    failover_flags,
    insecure_members_flag,
    click.option(
        "--skipped-propagating-apis",
        default="",
        help="APIs never propagated, separated by semicolons: group, group/version, or group/version/Kind,Kind.",
    ),
    click.option(
        "--skipped-propagating-namespaces",
        default="kube-.*",
        callback=lambda _ctx, _param, value: words(value),
        help="Regular expressions of namespaces from which nothing is propagated.",
    ),
    click.option(
        "--cluster-api-kubeconfig",
        default="",
        help="Kubeconfig of a management cluster of Cluster API, whose clusters are joined automatically.",
    ),
    click.option("--cluster-api-context", default="", help="Context to use in that kubeconfig."),
    *(
        click.option(f"--concurrent-{name}-syncs", default=count, help=f"Number of {what} that are reconciled at once.")
        for name, (count, what) in _WORKERS.items()
    ),
    ignored("--concurrent-dependent-resource-syncs", "dependencies are synced together with their bindings."),
    duration(
        "--federated-resource-quota-sync-period",
        "5m",
        "How often the totals of FederatedResourceQuotas are compared with the bindings (FederatedQuotaEnforcement).",
    ),
    autoscaling_flags,
)


def settings_from(given: Given) -> Settings:
    """Raise click.ClickException with the fields that cannot be, as Karmada names them."""
    from karmada.components.parts import check

    refuse([*_not_positive(given), *_wrong_evictions(given)])
    check_controllers(check, given)
    return settings_of(given)


def settings_of(given: Given) -> Settings:
    """Return the settings that the program has flags for; the others have their defaults."""
    from karmada.controllers.context import Settings

    return Settings(**{field.name: given[field.name] for field in fields(Settings) if field.name in given})


def check_controllers(check: Callable[[Sequence[str]], None], given: Given) -> None:
    try:
        check(given["controllers"])
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def refuse(wrong: Sequence[FieldError]) -> None:
    """click.ClickException if there are any."""
    if wrong:
        raise click.ClickException("; ".join(map(str, wrong)))


def _wrong_evictions(given: Given) -> Iterator[FieldError]:
    from karmada.kube.objects.errors import invalid

    rate, mode = given["resource_eviction_rate"], given["no_execute_taint_eviction_purge_mode"]
    if rate < 0:
        yield invalid("Options.ResourceEvictionRate", rate, "must be greater than or equal to 0")
    if given["enable_no_execute_taint_eviction"] and mode not in _PURGE_MODES:
        yield invalid("Options.NoExecuteTaintEvictionPurgeMode", mode, "must be Gracefully or Directly")


def _not_positive(given: Given) -> list[FieldError]:
    from karmada.kube.objects.errors import invalid

    positive = [
        *(f"cluster_{name}" for name in ("status_update_frequency", "success_threshold", "failure_threshold")),
        *(f"cluster_{name}" for name in ("monitor_period", "monitor_grace_period", "startup_grace_period")),
        *(f"concurrent_{name.replace('-', '_')}_syncs" for name in _WORKERS),
        "federated_resource_quota_sync_period",
        "horizontal_pod_autoscaler_sync_period",
    ]
    return [
        invalid(f"Options.{_camel(name)}", _shown(given[name]), "must be greater than 0")
        for name in positive
        if given[name] <= 0
    ]


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _shown(value: float) -> object:
    return value if isinstance(value, int) else f"{value:g}s"


_delay_flags = together(
    duration("--rate-limiter-base-delay", "5ms", "First pause before a failed item is retried; it doubles each time."),
    duration("--rate-limiter-max-delay", "1000s", "Longest pause before a failed item is retried."),
)
back_off_flags = together(
    _delay_flags,
    ignored("--rate-limiter-qps --rate-limiter-bucket-size", "every failed item has a pause of its own."),
)
rate_limiter_flags = together(
    _delay_flags,
    click.option("--rate-limiter-qps", default=10.0, help="Retries per second of all items together."),
    click.option("--rate-limiter-bucket-size", default=100, help="Retries that may come at once."),
)


def controller_process_flags(lease: str, health_port: int) -> Callable[[F], F]:
    """Return what every program has whose controllers run under a lease."""
    return together(
        feature_gates_flag,
        election_flags(lease),
        endpoint_flags(health_port),
        back_off_flags,
        hang_flags,
        logging_flags,
    )


def limits_from(given: Given) -> dict[str, Any]:
    """Return the limits of the rate limiter flags that were given a positive value."""
    names = {
        "base_delay": "rate_limiter_base_delay",
        "max_delay": "rate_limiter_max_delay",
        "rate": "rate_limiter_qps",
        "burst": "rate_limiter_bucket_size",
    }
    return {name: given[flag] for name, flag in names.items() if given.get(flag, 0) > 0}
