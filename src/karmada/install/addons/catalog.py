"""The addons, as a table: what each has in the host cluster, and which APIs it serves in the control plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from karmada.install.addons import workloads
from karmada.install.addons.settings import Settings
from karmada.install.addons.workloads import DASHBOARD, DESCHEDULER, ESTIMATOR, METRICS_ADAPTER, SEARCH
from karmada.install.control_plane import api_service, external_name
from karmada.install.host import namespace
from karmada.install.options import InstallError
from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.metrics_objects import reader_role

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addon:
    name: str
    host: Callable[[Settings], list[Obj]]
    """Objects of the host cluster; the last one is the Deployment."""
    apis: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The APIServices of the control plane, with their priorities."""
    rights: Sequence[Obj] = ()
    """Roles of the control plane that it brings."""
    per_cluster: bool = False
    """True if there is one for each member."""
    configured: bool = True
    """True if it is a client of the control plane by the Secret that `init` has put there for it."""
    built_in: bool = False
    """True if a control plane in one Deployment has it already."""

    def deployment(self, cluster: str) -> str:
        """Return the name of its account."""
        return workloads.estimator_name(cluster) if self.per_cluster else self.name

    def control_plane(self, settings: Settings) -> list[Obj]:
        """Objects of the control plane."""
        return self.served_by(self.name, settings.namespace, settings.domain, settings.authority)

    def served_by(self, service: str, in_namespace: str, domain: str, authority: bytes) -> list[Obj]:
        """Return the addon for a Service of this name in the host cluster."""
        if not self.apis:
            return []
        apis = [api_service(api, service, in_namespace, authority, *order) for api, order in self.apis.items()]
        return [namespace(in_namespace), external_name(service, in_namespace, domain), *apis, *self.rights]


ADDONS: Mapping[str, Addon] = {
    addon.name: addon
    for addon in (
        Addon(name=DESCHEDULER, host=workloads.descheduler),
        Addon(
            name=METRICS_ADAPTER,
            host=workloads.metrics_adapter,
            apis={
                "v1beta1.metrics.k8s.io": (100, 200),
                "v1beta1.custom.metrics.k8s.io": (100, 200),
                "v1beta2.custom.metrics.k8s.io": (100, 200),
            },
            rights=[reader_role({"app": METRICS_ADAPTER})],
            built_in=True,
        ),
        Addon(name=ESTIMATOR, host=workloads.estimator, per_cluster=True, configured=False),
        Addon(
            name=SEARCH,
            host=workloads.search,
            apis={"v1alpha1.search.karmada.io": (2000, 10)},
            built_in=True,
        ),
        Addon(name=DASHBOARD, host=workloads.dashboard, configured=False),
    )
}
"""Addons by name, in the order in which they are listed, enabled and disabled."""


def chosen(names: Sequence[str], cluster: str) -> tuple[list[Addon], list[str]]:
    """Return the addons that a command is about, and what to warn of; InstallError for names that make no sense."""
    known = f"known: {', '.join(ADDONS)}, {ALL}"
    if not names:
        raise InstallError(f"at least one addon must be named ({known})")
    unknown = [name for name in names if name not in ADDONS and name != ALL]
    if unknown:
        raise InstallError(f"addon {unknown[0]} is not be supported now ({known})")
    everything = ALL in names
    if not everything and ESTIMATOR in names and not cluster:
        raise InstallError(f"{ESTIMATOR} is one for each member: name the member with --cluster (-C)")
    if cluster and not everything and ESTIMATOR not in names:
        raise InstallError(f"--cluster is for {ESTIMATOR} only, which is not among the addons")
    found = [addon for name, addon in ADDONS.items() if everything or name in names]
    if cluster or not any(addon.per_cluster for addon in found):
        return found, []
    warning = f"{ESTIMATOR} is left out: it needs the name of a member, --cluster (-C)"
    return [addon for addon in found if not addon.per_cluster], [warning]
