"""Tests mirror the tree of `src/karmada`.

Set before anything loads numpy: its threads would be in the way of forks (forked_workers.py).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
