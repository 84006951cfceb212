"""The `karmada` program, which any process of this user may look into: what a profiler that is not its parent needs.

Some systems (Yama, ptrace_scope 1) let only a parent look into a process, unless the process says otherwise.
"""

from __future__ import annotations

import ctypes

from karmada.components.karmada import main

_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)


def allow_tracing() -> None:
    """Where the system does not need it, nothing happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)


if __name__ == "__main__":
    allow_tracing()
    main()
