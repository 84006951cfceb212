from __future__ import annotations

import gc
import subprocess
import sys

from karmada.kube.runtime.tuning import tune_garbage_collection


def test_the_collector_is_tuned() -> None:
    before = gc.get_threshold()
    try:
        tune_garbage_collection()
        assert gc.get_threshold()[0] == 50_000
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_a_program_is_hardly_collected_while_it_loads_and_not_when_it_ends() -> None:
    script = """if True:
        import atexit, gc
        from karmada.kube.runtime.tuning import collect_rarely
        atexit.register(lambda: print(gc.get_freeze_count() > 0))
        collect_rarely()
        print(gc.get_threshold()[0], gc.get_freeze_count())
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["50000", "0", "True"]
