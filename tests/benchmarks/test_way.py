"""What one Deployment passes through on its way to two members: more of it must be seen in the numbers here."""

from __future__ import annotations

import subprocess
import sys

FILES, FUNCTIONS, CALLS = 188, 940, 4_830
EVENTS = 17
"""6 about the Deployment, 3 about its binding, 4 about each Work: as many as Karmada's components emit."""
_TOLERANCE = 1.02
_GROUP_OF_EVENTS = 140
"""Calls of one more: on a busy machine Events of a Deployment may be written in four groups instead of three."""


def test_a_deployment_for_two_members_passes_no_more_files_functions_and_calls_than_before() -> None:
    found = subprocess.run([sys.executable, "-m", "benchmarks", "way"], check=True, capture_output=True, text=True)
    files, functions, calls, events = (int(part.split()[0]) for part in found.stdout.splitlines()[0].split(", "))
    assert events == EVENTS
    assert files <= FILES * _TOLERANCE
    assert functions <= FUNCTIONS * _TOLERANCE
    assert calls <= CALLS * _TOLERANCE + _GROUP_OF_EVENTS
