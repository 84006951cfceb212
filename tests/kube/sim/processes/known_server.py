"""A small web server that tests run as a container: its paths show what it was given, and let it end.

/env/NAME, /file/PATH and /args show its environment, files and arguments; /exit/CODE ends it; /health fails after
/sicken. It listens on the address of its pod, at --port, and prints what it does.
"""

from __future__ import annotations

import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    healthy = True

    def do_GET(self) -> None:
        _, first, *rest = self.path.split("/", 2)
        word = rest[0] if rest else ""
        status, text = 200, f"hello from {os.environ['HOSTNAME']}"
        if first == "env":
            text = os.environ.get(word, "")
        elif first == "file":
            text = Path("/" + word).read_text()
        elif first == "args":
            text = " ".join(sys.argv[1:])
        elif first == "sicken":
            Handler.healthy = False
        elif first == "health":
            status = 200 if Handler.healthy else 500
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if first == "exit":
            print("leaving", flush=True)
            os._exit(int(word))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        print(f"request {format % args}", flush=True)


def main() -> None:
    port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 8080
    if "--fail" in sys.argv:
        print("nothing works", file=sys.stderr, flush=True)
        sys.exit(3)

    def stop(*_: object) -> None:
        print("stopping", flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if "--stubborn" in sys.argv else stop)
    server = HTTPServer((os.environ["SIM_POD_IP"], port), Handler)
    print(f"listening on {port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
