from __future__ import annotations

from benchmarks.plane_metrics import parsed

PAGE = """\
# HELP event_recorder_dropped_events_total Events that were not written
# TYPE event_recorder_dropped_events_total counter
event_recorder_dropped_events_total{cause="queue-full",component="execution-controller"} 3.0
event_loop_longest_stall_seconds 0.25
"""


def test_samples_are_found_by_name_and_labels() -> None:
    assert parsed(PAGE) == {
        'event_recorder_dropped_events_total{cause="queue-full",component="execution-controller"}': 3.0,
        "event_loop_longest_stall_seconds": 0.25,
    }
