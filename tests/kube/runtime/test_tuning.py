"""In processes of their own: the collector of the tests' is the tests'."""

from __future__ import annotations

import subprocess
import sys


def printed(script: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_component_exempts_what_it_has_loaded_and_collects_rarely() -> None:
    script = """if True:
        import gc
        from karmada.kube.runtime.tuning import tune_garbage_collection
        tune_garbage_collection()
        print(gc.get_threshold()[0], gc.get_freeze_count() > 0)
    """
    assert printed(script) == ["200000", "True"]


def test_a_program_is_hardly_collected_while_it_loads_and_not_when_it_ends() -> None:
    script = """if True:
        import atexit, gc
        from karmada.loading import collect_rarely
        atexit.register(lambda: print(gc.get_freeze_count() > 0))
        collect_rarely()
        print(gc.get_threshold()[0], gc.get_freeze_count())
    """
    assert printed(script) == ["50000", "0", "True"]
