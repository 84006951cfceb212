"""The other half of syncer.py: a program of its own that only syncs a WAL and checkpoints its database.

Started with the socket to its parent, the descriptor of the WAL and the path of the database. For a byte `s` it calls
fdatasync and answers `s <errno>`, for a `c` it checkpoints and answers `c <frames in the WAL> <frames copied>` (or
`c <error text>`); each answer is one line. A checkpoint runs in a thread, so it delays no sync. It ends when the parent
closes the socket or dies, and ignores the signals that a terminal or a service manager sends to the whole group,
because the parent still needs it for its last writes. It imports only what it needs: it is there in milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def checkpoint(path: str, synchronous: str = "NORMAL") -> str:
    import sqlite3

    db = sqlite3.connect(path, isolation_level=None, timeout=1.0)
    try:
        db.execute(f"PRAGMA synchronous = {synchronous}")
        _, frames, copied = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as e:
        return f"{type(e).__name__}: {e}".replace("\n", " ")
    else:
        return f"{frames} {copied}"
    finally:
        db.close()  # not the last connection: the parent has one, so this neither deletes nor resets anything


def fdatasync(wal: int) -> int:
    try:
        os.fdatasync(wal)
    except OSError as e:
        return e.errno or -1
    return 0


def serve(control: int, wal: int, path: str) -> None:
    def run_checkpoint() -> None:
        os.write(control, f"c {checkpoint(path)}\n".encode())

    while orders := os.read(control, 64):
        for order in orders:
            if order == ord("c"):
                threading.Thread(target=run_checkpoint, daemon=True).start()
            else:
                os.write(control, b"s %d\n" % fdatasync(wal))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    except (BrokenPipeError, ConnectionResetError):
        sys.exit(0)  # the parent is gone
