"""/healthz, /livez and /readyz: named checks, each with a page of its own."""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result

_TEXT = "text/plain; charset=utf-8"
Check = Callable[[], bool]


class Health:
    def __init__(self) -> None:
        self._checks: dict[str, dict[str, Check]] = {"healthz": {}, "livez": {}, "readyz": {}}
        for name in ("ping", "log"):  # they only show that there is a response at all
            self.add(name, lambda: True)

    def add(self, name: str, check: Check, *, pages: tuple[str, ...] = ("healthz", "livez", "readyz")) -> None:
        for page in pages:
            self._checks[page][name] = check

    def failing(self, page: str = "readyz") -> list[str]:
        return [name for name, check in self._checks[page].items() if not check()]

    async def handle(self, request: Request) -> Result:
        page, _, single = request.info.path.strip("/").partition("/")
        checks = self._checks[page]
        if single:
            check = checks.get(single)
            if check is None:
                return RawResult(b"404 page not found\n", _TEXT, 404)
            ok = check()
            return RawResult(b"ok" if ok else b"internal server error: reason withheld\n", _TEXT, 200 if ok else 500)
        excluded = set(request.query.all("exclude"))
        lines, failed = [], False
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif check():
                lines.append(f"[+]{name} ok")
            else:
                failed = True
                lines.append(f"[-]{name} failed: reason withheld")
        unknown = sorted(excluded - checks.keys())
        if unknown:
            names = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        lines.append(f"{page} check {'failed' if failed else 'passed'}")
        if failed:
            return RawResult(("\n".join(lines) + "\n").encode(), _TEXT, 500)
        return RawResult(("\n".join(lines) + "\n").encode() if "verbose" in request.query else b"ok", _TEXT)
