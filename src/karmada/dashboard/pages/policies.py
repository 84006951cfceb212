"""Policies: which there are, what each has claimed, and what an edited one would move before it is applied."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from karmada.api import well_known
from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
from karmada.api.work import ClusterResourceBinding, ResourceBinding
from karmada.dashboard import reads
from karmada.dashboard.blast_radius import policies_in, radius_of
from karmada.dashboard.formatting import as_yaml
from karmada.dashboard.pages.workloads import rows_of
from karmada.dashboard.view import PageModule, Route, View
from karmada.dashboard.workload import NOWHERE, PolicyRef
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError

_NEW: Final = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: web
  namespace: default
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: web
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Aggregated
"""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MOST: Final = 500
"""Policies of a kind on the page."""


@dataclass(frozen=True, slots=True)
class Row:
    ref: PolicyRef
    priority: int
    selects: str
    places: str
    created: str | None


def row_of(policy: Obj, kind: str) -> Row:
    spec = policy.get("spec") or {}
    ref = PolicyRef(kind, meta.namespace(policy), meta.name(policy))
    selects, places = selects_in_words(spec), places_in_words(spec)
    return Row(ref, spec.get("priority") or 0, selects, places, policy["metadata"].get("creationTimestamp"))


def selects_in_words(spec: Obj) -> str:
    """Return what a policy selects: Deployment web, Service in prod, ConfigMap with app=web."""
    return ", ".join(_selector(one) for one in spec.get("resourceSelectors") or ())


def _selector(selector: Obj) -> str:
    text = str(selector.get("kind") or "?")
    if selector.get("name"):
        text += f" {selector['name']}"
    if selector.get("namespace"):
        text += f" in {selector['namespace']}"
    labels = (selector.get("labelSelector") or {}).get("matchLabels") or {}
    if labels:
        text += " with " + ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    if (selector.get("labelSelector") or {}).get("matchExpressions"):
        text += " by expressions"
    return text


def places_in_words(spec: Obj) -> str:
    """Return where a policy places: member1, member2; region eu; by labels. Then how replicas are divided."""
    placement = spec.get("placement") or {}
    affinity = placement.get("clusterAffinity") or {}
    names = affinity.get("clusterNames") or ()
    where = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    if placement.get("clusterAffinities"):
        where = "groups " + ", ".join(str(one.get("affinityName")) for one in placement["clusterAffinities"])
    elif not where:
        where = "by labels or fields" if affinity.keys() & {"labelSelector", "fieldSelector"} else "all clusters"
    scheduling = placement.get("replicaScheduling") or {}
    how = scheduling.get("replicaSchedulingType") or "Duplicated"
    preference = scheduling.get("replicaDivisionPreference")
    return f"{where}; {how}{f', {preference}' if how == 'Divided' and preference else ''}"


async def policies(view: View) -> web.StreamResponse:
    kinds = (PropagationPolicy, ClusterPropagationPolicy)
    pages = await asyncio.gather(*(reads.allowed(reads.page(view.client, kind.gvr, limit=_MOST)) for kind in kinds))
    sections = [
        (kind.gvk.kind, None if page is None else [row_of(one, kind.gvk.kind) for one in page.items], page)
        for kind, page in zip(kinds, pages, strict=True)
    ]
    topics = [reads.topic(kind.gvr, since=page.version) for kind, page in zip(kinds, pages, strict=True) if page]
    data: dict[str, Any] = {"sections": sections, "topics": topics}
    return view.shown("policies.html", title="Policies", **data)


# one policy


async def policy(view: View) -> web.StreamResponse:
    namespace = "" if view.path["namespace"] == NOWHERE else view.path["namespace"]
    kind = PropagationPolicy if namespace else ClusterPropagationPolicy
    found = await view.client.get(kind.gvr, view.path["name"], namespace)
    found = {"apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind, **found}
    row = row_of(found, kind.gvk.kind)
    claimed = await _claimed(view, found, namespace)
    return await _editor(view, row.ref.title, as_yaml(_editable(found)), row=row, claimed=claimed, verb="update")


async def new(view: View) -> web.StreamResponse:
    return await _editor(view, "New policy", _NEW, row=None, claimed=None, verb="create")


async def _editor(
    view: View, title: str, text: str, *, row: Row | None, claimed: Any, verb: str, problem: str = ""
) -> web.StreamResponse:
    namespace = row.ref.namespace if row is not None else "default"
    kind = ClusterPropagationPolicy if row is not None and not namespace else PropagationPolicy
    may = await view.may_write(verb, kind.gvr, namespace)
    return view.page(
        "policy.html", title=title, row=row, claimed=claimed, text=text, may=may, problem=problem,
        status=422 if problem else 200,
    )  # fmt: skip


def _editable(policy: Obj) -> Obj:
    """Return it without what servers fill in; the resourceVersion stays, so that two who edit do not collide."""
    hidden = ("managedFields", "uid", "generation", "creationTimestamp", "selfLink")
    metadata = {key: value for key, value in policy["metadata"].items() if key not in hidden}
    annotations = {key: value for key, value in meta.annotations(policy).items() if key != _LAST_APPLIED}
    metadata.pop("annotations", None)
    metadata |= {"annotations": annotations} if annotations else {}
    return {**{key: value for key, value in policy.items() if key != "status"}, "metadata": metadata}


async def _claimed(view: View, policy: Obj, namespace: str) -> tuple[Sequence[Any], bool] | None:
    """Return what the policy has claimed: a page of it, and whether there is more; None without the right to see it."""
    label = well_known.POLICY_ID if namespace else well_known.CLUSTER_POLICY_ID
    ident = meta.labels(policy).get(label)
    if not ident:
        return (), False
    kinds = (ResourceBinding,) if namespace else (ResourceBinding, ClusterResourceBinding)
    found: list[Obj] = []
    more = False
    for kind in kinds:
        page = await reads.allowed(reads.page(view.client, kind.gvr, namespace, label_selector=f"{label}={ident}"))
        if page is None:
            return None
        found += page.items
        more = more or bool(page.token)
    return await rows_of(view.client.mapper, found), more


# what it would do, and doing it


async def preview(view: View) -> web.StreamResponse:
    """Read only: it is there in a read-only dashboard too."""
    text = (await view.form()).get("text", "")
    try:
        radius, problem = await view.predicted(lambda: radius_of(view.client, text)), ""
    except (PredictionError, ApiError) as error:
        radius, problem = None, str(error)
    return view.part("partials/blast_radius.html", radius=radius, problem=problem)


async def apply(view: View) -> web.StreamResponse:
    text = (await view.form()).get("text", "")
    try:
        given = await asyncio.to_thread(policies_in, text)
        for one in given:
            await _write(view, one)
    except (PredictionError, ApiError) as error:
        return await _editor(view, "Not applied", text, row=None, claimed=None, verb="create", problem=str(error))
    last = given[-1]
    return view.redirect(PolicyRef(last["kind"], last["metadata"].get("namespace") or "", last["metadata"]["name"]).url)


async def _write(view: View, policy: Obj) -> None:
    kind = PropagationPolicy if policy["kind"] == PropagationPolicy.gvk.kind else ClusterPropagationPolicy
    if kind is PropagationPolicy:
        policy["metadata"].setdefault("namespace", "default")
    try:
        found = await view.client.get(kind.gvr, meta.name(policy), meta.namespace(policy))
    except NotFound:
        await view.client.create(kind.gvr, policy)
        return
    await view.client.update(kind.gvr, edited(found, policy))


def edited(found: Obj, policy: Obj) -> Obj:
    """Return what an edited policy becomes: with a resourceVersion the whole, otherwise its spec with more metadata."""
    metadata = policy["metadata"]
    if not metadata.get("resourceVersion"):
        labels = {**meta.labels(found), **meta.labels(policy)}
        annotations = {**meta.annotations(found), **meta.annotations(policy)}
        metadata = {**found["metadata"], "labels": labels, "annotations": annotations}
    elif _LAST_APPLIED in meta.annotations(found):  # it was not shown, and kubectl needs it
        kept = {_LAST_APPLIED: meta.annotations(found)[_LAST_APPLIED]}
        metadata = {**metadata, "annotations": {**meta.annotations(policy), **kept}}
    return {**policy, "metadata": metadata}


PAGE: Final = PageModule(
    routes=(
        Route("GET", "/policies", policies),
        Route("GET", "/policies/new", new),
        Route("POST", "/policies/preview", preview),
        Route("POST", "/policies/apply", apply, changes=True),
        Route("GET", "/policies/{namespace}/{name}", policy),
    ),
    nav=("/policies", "Policies"),
)
