"""The metric by which a scraper knows the version of a program."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily, Metric

from karmada.version import info


def build_info() -> Metric:
    """Return which version of the programs this is, always 1."""
    found = info()
    family = GaugeMetricFamily("karmada_build_info", "Which version this is, in its labels", labels=found._fields)
    family.add_metric(found, 1)
    return family
