"""Everything that an installation has in the host cluster, in the order in which it is applied.

The stages are also the order of an upgrade: the store, the API server, what serves a part of its API, and then those
that use it. A stage is applied when what it depends on runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from karmada.install import components, services
from karmada.install.all_in_one import all_in_one
from karmada.install.etcd import etcd_stateful_set
from karmada.install.flags import to_save
from karmada.install.names import (
    AGGREGATED,
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KUBE_CONTROLLER_MANAGER,
    OPTIONS,
    SCHEDULER,
    SECRET,
    SYSTEM,
    WEBHOOK,
)
from karmada.install.options import Options
from karmada.install.pods import service_account
from karmada.install.stores import claim, state_claim
from karmada.kube.objects.types import Obj

Make = Callable[[Options], Obj]


def _api_server(options: Options) -> Obj:
    return all_in_one(options) if options.all_in_one else components.api_server(options)


_WORKLOADS: Final[Mapping[str, Make]] = {
    ETCD: etcd_stateful_set,
    API_SERVER: _api_server,
    AGGREGATED: components.aggregated,
    KUBE_CONTROLLER_MANAGER: components.kube_controller_manager,
    SCHEDULER: components.scheduler,
    CONTROLLER_MANAGER: components.controller_manager,
    WEBHOOK: components.webhook,
}
_SERVICES: Final[Mapping[str, Make]] = {
    ETCD: services.etcd_service,
    API_SERVER: services.api_server_service,
    AGGREGATED: services.aggregated_service,
    KUBE_CONTROLLER_MANAGER: services.controller_manager_service,
    WEBHOOK: services.webhook_service,
}


class Stage(NamedTuple):
    """Objects of one component; the last one is the workload that has to become ready."""

    name: str
    objects: Sequence[Obj]

    @property
    def workload(self) -> Obj:
        return self.objects[-1]


def foundation(options: Options, secrets: Sequence[Obj]) -> list[Obj]:
    """Return what pods need before they start: the namespace, Secrets, and the flags for the next run."""
    return [namespace(options.namespace), *secrets, saved_options(options)]


def namespace(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": SYSTEM}}


def saved_options(options: Options) -> Obj:
    text = orjson.dumps(to_save(options.given), option=orjson.OPT_INDENT_2).decode()
    metadata = {"name": OPTIONS, "namespace": options.namespace, "labels": SECRET}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"flags.json": text}}


def api_stages(options: Options) -> list[Stage]:
    """Up to the API server, which the objects of the control plane need."""
    return [*([_stage(ETCD, options)] if options.local_etcd else []), _stage(API_SERVER, options)]


def aggregated_stages(options: Options) -> list[Stage]:
    return [] if options.all_in_one else [_stage(AGGREGATED, options)]


def other_stages(options: Options) -> list[Stage]:
    """Return the stages that use the objects of the control plane."""
    names = (KUBE_CONTROLLER_MANAGER, SCHEDULER, CONTROLLER_MANAGER, WEBHOOK)
    return [] if options.all_in_one else [_stage(name, options) for name in names]


def all_stages(options: Options) -> list[Stage]:
    return [*api_stages(options), *aggregated_stages(options), *other_stages(options)]


def _stage(name: str, options: Options) -> Stage:
    return Stage(name, [*_identity(name, options), _WORKLOADS[name](options)])


def _identity(name: str, options: Options) -> list[Obj]:
    """Account, volume and Service of a component."""
    found = [service_account(name, options.namespace)]
    if name in (API_SERVER, AGGREGATED) and options.store == "sqlite" and options.volume.mode == "PVC":
        found.append(claim(state_claim(name), options.namespace, options.volume))
    if name in _SERVICES:
        found.append(_SERVICES[name](options))
    return found
