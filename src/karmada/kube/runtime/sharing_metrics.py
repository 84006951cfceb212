"""Figures of a replica that shares work: members, shards, hand-overs, refused writes."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from karmada.kube.runtime.membership import Membership


class SharingMetrics(Collector):
    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def collect(self) -> Iterable[Metric]:
        membership = self._membership
        yield GaugeMetricFamily(
            "work_sharing_members", "Replicas by which this one divides the work", value=len(membership.members)
        )
        yield GaugeMetricFamily(
            "work_sharing_owned_shards",
            "Shards of this replica, of those it has seen",
            value=membership.assignment.owned,
        )
        yield CounterMetricFamily(
            "work_sharing_hand_overs", "How often the work was divided anew", value=membership.hand_overs
        )
        yield CounterMetricFamily(
            "work_sharing_refused_writes",
            "Writes that were not sent, or refused, since the replica's Lease was over",
            value=membership.refused,
        )
