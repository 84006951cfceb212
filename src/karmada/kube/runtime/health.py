"""Health: named checks behind /healthz, /livez and /readyz, answered as Kubernetes components do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple, TypeAlias

from karmada.kube.runtime.logging import get_logger

Check: TypeAlias = Callable[[], Awaitable[bool] | bool]

log = get_logger("health")


class Report(NamedTuple):
    code: int
    body: str


async def _holds(name: str, check: Check) -> bool:
    try:
        answer = check()
        return answer if isinstance(answer, bool) else await answer
    except Exception as error:
        log.exception("A health check failed", error, check=name)
        return False


class Health:
    """`live` checks show that the process works, `ready` checks (which include them) that it can be used."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {"ping": lambda: True}
        self._ready: dict[str, Check] = {}

    def add_live(self, name: str, check: Check) -> None:
        self._live[name] = check

    def add_ready(self, name: str, check: Check) -> None:
        self._ready[name] = check

    def remove(self, name: str) -> None:
        self._live.pop(name, None)
        self._ready.pop(name, None)

    def _checks(self, endpoint: str) -> dict[str, Check]:
        return {**self._live, **self._ready} if endpoint == "readyz" else self._live

    async def ok(self, endpoint: str = "readyz") -> bool:
        return (await self.report(endpoint)).code == 200

    async def report(self, endpoint: str, *, verbose: bool = False, exclude: Collection[str] = ()) -> Report:
        """`endpoint` is healthz, livez or readyz."""
        lines, failed = [], False
        for name, check in self._checks(endpoint).items():
            if name in exclude:
                lines.append(f"[+]{name} excluded: ok")
            elif await _holds(name, check):
                lines.append(f"[+]{name} ok")
            else:
                failed = True
                lines.append(f"[-]{name} failed: reason withheld")
        if failed:
            return Report(500, "\n".join([*lines, f"{endpoint} check failed\n"]))
        return Report(200, "\n".join([*lines, f"{endpoint} check passed\n"]) if verbose else "ok")

    async def single(self, endpoint: str, name: str) -> Report:
        """Return one check by its name, e.g. /readyz/ping."""
        check = self._checks(endpoint).get(name)
        if check is None:
            return Report(404, "404 page not found\n")
        if await _holds(name, check):
            return Report(200, "ok")
        return Report(500, f"internal server error: {name} failed: reason withheld\n")
