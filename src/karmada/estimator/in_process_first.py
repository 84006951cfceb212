"""Unschedulable replicas of all clusters: from estimators in this process where there are some, else by calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from karmada.estimator.members import UNKNOWN, MemberEstimators
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger

log = get_logger("estimators")


class Others(Protocol):
    async def unschedulable_replicas(
        self, clusters: Iterable[str], resource: Obj, threshold: float
    ) -> Mapping[str, int]: ...


class InProcessFirst:
    def __init__(self, members: MemberEstimators, others: Others) -> None:
        self._members = members
        self._others = others

    async def unschedulable_replicas(self, clusters: Iterable[str], resource: Obj, threshold: float) -> dict[str, int]:
        """Others that cannot be called are UNKNOWN, and take nothing away from what is known here."""
        wanted = list(clusters)
        found = await self._members.unschedulable_replicas(wanted, resource, threshold)
        others = [cluster for cluster in wanted if self._members.get(cluster) is None]
        if others:
            try:
                found |= await self._others.unschedulable_replicas(others, resource, threshold)
            except EstimateError as error:
                log.v(1).info("No count of unschedulable replicas", clusters=others, err=str(error))
                found |= dict.fromkeys(others, UNKNOWN)
        return found
