"""The input of a rule besides its object, and how it refuses a write.

`Settings` are the same for all requests of a process; a `Context` is one request. A rule that finds fields wrong
returns them; one that refuses for any other reason, or with another code, raises `Refusal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from karmada.admission.lua import lua_problem
from karmada.features import default_gates
from karmada.kube.objects.errors import FieldError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.names import random_uuid
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.server.http.warnings import Warnings

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.objects.clock import Clock

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
FORBIDDEN, BAD_REQUEST, INTERNAL = 403, 400, 500


def new_id() -> str:
    """Return a permanent id: random, so that no two objects ever have the same."""
    return random_uuid()


def _system_clock() -> Clock:
    from karmada.kube.objects.clock import SYSTEM

    return SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings for all requests of a process."""

    client: Client | None = None
    """For the few rules that read other objects; without it they see none."""
    gates: FeatureGates = field(default_factory=default_gates)
    allow_no_execute_taint_policy: bool = False
    clock: Clock = field(default_factory=_system_clock)
    new_id: Callable[[], str] = new_id
    lua_problem: Callable[[str], str | None] = lua_problem
    """Return the problem of a Lua script, "" for none, or None when it cannot be checked."""

    def enabled(self, gate: str) -> bool:
        return self.gates.enabled(gate)


@dataclass(slots=True)
class Context:
    """One request."""

    settings: Settings
    operation: str = CREATE
    namespace: str = ""
    dry_run: bool = False
    warnings: list[str] = field(default_factory=Warnings)
    """Warnings to the user, although the write goes through."""

    @property
    def creating(self) -> bool:
        return self.operation == CREATE

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    async def list(self, gvr: GVR, namespace: str = "") -> list[Obj]:
        client = self.settings.client
        return [] if client is None else (await client.list_all(gvr, namespace)).items


class Refusal(Exception):
    """The answer no, with the code and reason that the user gets to see."""

    def __init__(self, message: str, *, code: int = FORBIDDEN, reason: str = "Forbidden") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason

    @classmethod
    def failure(cls, message: str, code: int = INTERNAL) -> Refusal:
        """Return the answer without a verdict; it names no reason."""
        return cls(message, code=code, reason="")

    def status(self) -> Obj:
        status: Obj = {"code": self.code, "message": self.message}
        return {**status, "reason": self.reason} if self.reason else status


def in_one_text(errors: Iterable[FieldError]) -> str:
    """Return each text once, in the order in which they were found; several in brackets."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
