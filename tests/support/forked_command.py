"""What a shell finds as `karmadactl`: has the program forked where it is loaded already, and ends as that ends.

Python alone starts in a tenth of the time in which it loads karmadactl, so this uses little of the standard library.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys

_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def run(requests: str, name: str, module: str) -> None:
    """Send what this process was started with to the socket of the server that forks."""
    start = {
        "module": module,
        "name": name,
        "arguments": sys.argv[1:],
        "env": dict(os.environ),
        "cwd": os.getcwd(),
        "umask": -1,
        "start_new_session": False,
        "process_group": -1,
        "targets": [0, 1, 2],
    }
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # until it is known whom to pass them on to
    reading, writing = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.connect(requests)
        socket.send_fds(client, [marshal.dumps(start)], [writing, 0, 1, 2])
    os.close(writing)
    with os.fdopen(reading) as report:
        pid = int(report.readline())
        for number in _PASSED_ON:
            signal.signal(number, lambda received, _: os.kill(pid, received))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        _end(os.waitstatus_to_exitcode(int(report.readline())))


def _end(code: int) -> None:
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
