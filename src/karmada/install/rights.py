"""The rights that `init` needs in the host cluster, checked before anything is created there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from karmada.install.options import InstallError, Options
from karmada.kube.client.client import Client
from karmada.kube.objects.gvk import GVR

REVIEWS: Final = GVR("authorization.k8s.io", "v1", "selfsubjectaccessreviews")
_APPLY: Final = ("get", "create", "patch")


class Right(NamedTuple):
    verb: str
    resource: str
    """With its group, as in deployments.apps, and its subresource, as in pods/log."""
    namespace: str = ""
    """Empty: in the whole cluster."""

    def __str__(self) -> str:
        where = f"in namespace {self.namespace}" if self.namespace else "in the whole cluster"
        return f"{self.verb} {self.resource} {where}"


def needed(options: Options) -> list[Right]:
    whole = [("namespaces", _APPLY), ("nodes", ("list",)), ("services", ("list",))]
    if options.volume.mode == "hostPath":
        whole.append(("nodes", ("patch",)))
    if options.volume.mode == "PVC":
        whole.append(("storageclasses.storage.k8s.io", ("list",)))
    own = [
        *((kind, _APPLY) for kind in ("secrets", "configmaps", "services", "serviceaccounts", "deployments.apps")),
        *([("statefulsets.apps", _APPLY)] if options.local_etcd else []),
        *([("persistentvolumeclaims", _APPLY)] if options.store == "sqlite" and options.volume.mode == "PVC" else []),
        ("pods", ("list",)),
        ("events", ("list",)),
        ("pods/log", ("get",)),
    ]
    return [
        *(Right(verb, resource) for resource, verbs in whole for verb in verbs),
        *(Right(verb, resource, options.namespace) for resource, verbs in own for verb in verbs),
    ]


async def missing(client: Client, rights: Iterable[Right]) -> list[Right]:
    rights = list(rights)
    granted = await asyncio.gather(*(_is_granted(client, right) for right in rights))
    return [right for right, has in zip(rights, granted, strict=True) if not has]


async def _is_granted(client: Client, right: Right) -> bool:
    named, _, subresource = right.resource.partition("/")
    resource, _, group = named.partition(".")
    attributes = {
        "verb": right.verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
    }
    review = {
        "apiVersion": REVIEWS.api_version,
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: text for key, text in attributes.items() if text}},
    }
    answer = await client.create(REVIEWS, review, namespace="")
    return bool((answer.get("status") or {}).get("allowed"))


async def check_rights(client: Client, rights: Iterable[Right]) -> None:
    """InstallError lists what is missing."""
    lacking = await missing(client, rights)
    if lacking:
        listed = "\n".join(f"  {right}" for right in lacking)
        raise InstallError(
            f"the user of the kubeconfig may not do this in the host cluster; nothing was changed:\n{listed}\n"
            "Use an account that may (--kubeconfig, --context), or have these rights granted."
        )
