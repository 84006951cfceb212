"""`python -m benchmarks.traceable MODULE …`: a program that any process of this user may look into.

It is what a profiler that is not the program's parent needs: some systems (Yama, ptrace_scope 1) let only a parent look
into a process, unless the process says otherwise.
"""

from __future__ import annotations

import ctypes
import runpy
import sys

_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)


def allow_tracing() -> None:
    """Where the system does not need it, nothing happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)


if __name__ == "__main__":
    allow_tracing()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
