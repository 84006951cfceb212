"""The rights that `view`, `edit` and `admin` have on Karmada's kinds in a namespace.

Kubernetes aggregates its user-facing roles from ClusterRoles with a label; these are the control plane's. Bindings and
Works follow from policies and can be read; federated quotas limit tenants and are not theirs to write.
"""

from __future__ import annotations

from karmada.api.crds import all_kinds
from karmada.kube.objects.types import Obj

_READ = ["get", "list", "watch"]
_WRITE = ["create", "update", "patch", "delete", "deletecollection"]
_READ_ONLY = frozenset({"resourcebindings", "works", "federatedresourcequotas"})
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults", "karmada.io/system": "true"}
_GROUP = "rbac.authorization.k8s.io"


def tenant_roles() -> list[Obj]:
    return [
        _role("karmada-view", "view", _rules(_READ)),
        _role("karmada-edit", "edit", _rules(_WRITE, leave_out=_READ_ONLY)),
    ]


def _role(name: str, into: str, rules: list[Obj]) -> Obj:
    metadata = {
        "name": name,
        "labels": {**_LABELS, f"{_GROUP}/aggregate-to-{into}": "true"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    return {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _rules(verbs: list[str], leave_out: frozenset[str] = frozenset()) -> list[Obj]:
    """For every namespaced kind and its status, group by group."""
    by_group: dict[str, set[str]] = {}
    for info in all_kinds():
        if info.namespaced and info.plural not in leave_out:
            found = by_group.setdefault(info.gvk.group, set())
            found.add(info.plural)
            if "status" in (info.subresources or ()):
                found.add(f"{info.plural}/status")
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": verbs}
        for group, resources in sorted(by_group.items())
    ]
