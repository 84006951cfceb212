"""Endpoints that change are written once for each consumer, and not at all without a change."""

from __future__ import annotations

from pathlib import Path

from benchmarks.scenarios.services import measured


def test_a_change_is_one_write_for_each_consumer_and_no_change_is_none(tmp_path: Path) -> None:
    figures, _ = measured(tmp_path, services=2, members=3, endpoints=2)
    assert figures["dispatched slices written, for each consumer and change"] == 1
    assert figures["Works written without a change"] == 0
