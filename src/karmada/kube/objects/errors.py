"""The errors of the Kubernetes API: field errors, and one exception class per Status reason.

A server raises them, `status()` is what goes over the wire, and a client gets the same class back from
`error_from_status`. Clients decide by `reason` first, so every class fixes reason and code together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

from karmada.kube.objects.gvk import GroupKind, GroupResource
from karmada.kube.objects.types import Obj


class UserError(Exception):
    """Why something cannot be done, and what to do about it, as a text for people."""


class FieldError:
    """One thing wrong with one field; `reason` is the cause's reason, `body` what follows the path.

    The body may be given as a function, called when the text is first read: a hundred thousand errors that quote their
    values cost no more than a hundred thousand references, and `Invalid.of` reads only as many as it shows.
    """

    __slots__ = ("_body", "field", "reason")

    def __init__(self, field: str, reason: str, body: str | Callable[[], str]) -> None:
        self.field = field
        self.reason = reason
        self._body = body

    @property
    def body(self) -> str:
        if not isinstance(self._body, str):
            self._body = self._body()
        return self._body

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    def __repr__(self) -> str:
        return f"FieldError({self.field!r}, {self.reason!r}, {self.body!r})"

    def _identity(self) -> tuple[str, str, str]:
        return self.field, self.reason, self.body

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldError) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def cause(self) -> Obj:
        return {"reason": self.reason, "message": self.body, "field": self.field}


_MORE = FieldError("", "FieldValueInvalid", "more errors")


class FieldErrors(list[FieldError]):
    """A list that keeps only the first errors added to it, so that no object fills the memory.

    All others are one and the same, so that its length still shows whether a rule has found something.
    """

    __slots__ = ()
    MOST: ClassVar[int] = 1000

    @property
    def full(self) -> bool:
        """Further errors would not be kept, so there is no use in looking for them."""
        return len(self) >= self.MOST

    def append(self, error: FieldError) -> None:
        super().append(error if len(self) < self.MOST else _MORE)

    def extend(self, errors: Iterable[FieldError]) -> None:
        for error in errors:
            self.append(error)

    def __iadd__(self, errors: Iterable[FieldError]) -> Self:  # type: ignore[override,misc]
        if errors:  # nearly always there are none
            self.extend(errors)
        return self


_LONGEST_PATH = 1024


def short_path(path: str) -> str:
    """Return the path to build further paths from: a key may be as long as the body, with as many items below."""
    if len(path) <= _LONGEST_PATH:
        return path
    return f"{path[: _LONGEST_PATH // 2]}...{path[-_LONGEST_PATH // 4 :]}"


def _show(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", lambda: f"Invalid value: {_show(value)}: {detail}")


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueTypeInvalid", lambda: f"Invalid value: {_show(value)}: {detail}")


def not_supported(path: str, value: Any, supported: Iterable[Any]) -> FieldError:
    def body() -> str:
        return f"Unsupported value: {_show(value)}: supported values: {', '.join(map(_show, supported))}"

    return FieldError(path, "FieldValueNotSupported", body)


def forbidden_field(path: str, detail: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {detail}")


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(path, "FieldValueDuplicate", lambda: f"Duplicate value: {_show(value)}")


def not_found_field(path: str, value: Any) -> FieldError:
    return FieldError(path, "FieldValueNotFound", lambda: f"Not found: {_show(value)}")


def too_long(path: str, maximum: int) -> FieldError:
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {maximum} bytes")


def too_many(path: str, actual: int, maximum: int) -> FieldError:
    return FieldError(path, "FieldValueTooMany", f"Too many: {actual}: must have at most {maximum} items")


MESSAGE = 64 * 1024
"""Characters of errors in one answer."""


def _shown(errors: Sequence[FieldError]) -> tuple[list[FieldError], bool]:
    """Return the first errors, none twice, up to the length of a message (at least one), and whether more are left."""
    unique: dict[FieldError, None] = {}
    length = 0
    for error in errors:
        size = len(error.field) + len(error.body)
        if error is _MORE or (unique and length + size > MESSAGE):
            return list(unique), True
        if error not in unique:
            unique[error] = None
            length += size
    return list(unique), False


class ApiError(Exception):
    """An API call that failed, with the fields of its Status object."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        reason: str | None = None,
        details: Obj | None = None,
        retry_after: int | None = None,
        metadata: Obj | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.http_code: int = type(self).code if code is None else code
        self.status_reason: str = type(self).reason if reason is None else reason
        self.details: Obj = dict(details or {})
        self._with_details = details is not None
        if retry_after is not None:
            self.details["retryAfterSeconds"] = retry_after
        self.metadata: Obj = dict(metadata or {})

    @property
    def retry_after(self) -> int | None:
        return self.details.get("retryAfterSeconds")

    @property
    def causes(self) -> list[Obj]:
        return self.details.get("causes") or []

    def has_cause(self, reason: str) -> bool:
        return any(cause.get("reason") == reason for cause in self.causes)

    def status(self) -> Obj:
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.status_reason:
            status["reason"] = self.status_reason
        if self.details or self._with_details:
            status["details"] = self.details
        status["code"] = self.http_code
        return status


def _resource_details(resource: GroupResource, name: str) -> Obj:
    details: Obj = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    if resource.resource:
        details["kind"] = resource.resource
    return details


class NotFound(ApiError):
    code, reason = 404, "NotFound"

    @classmethod
    def of(cls, resource: GroupResource, name: str) -> NotFound:
        return cls(f'{resource} "{name}" not found', details=_resource_details(resource, name))

    @classmethod
    def resource(cls) -> NotFound:
        """Return an unknown resource inside a served group-version."""
        return cls("the server could not find the requested resource", details={})


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"

    @classmethod
    def of(cls, resource: GroupResource, name: str, *, terminating: bool = False) -> AlreadyExists:
        prefix = "object is being deleted: " if terminating else ""
        return cls(f'{prefix}{resource} "{name}" already exists', details=_resource_details(resource, name))


class Conflict(ApiError):
    code, reason = 409, "Conflict"

    @classmethod
    def of(cls, resource: GroupResource | GroupKind, name: str, why: str) -> Conflict:
        named = GroupResource(resource[0], resource[1])
        message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
        return cls(message, details=_resource_details(named, name))

    @classmethod
    def stale(cls, resource: GroupResource, name: str) -> Conflict:
        why = "the object has been modified; please apply your changes to the latest version and try again"
        return cls.of(resource, name, why)


class Invalid(ApiError):
    code, reason = 422, "Invalid"

    @classmethod
    def of(cls, kind: GroupKind, name: str, errors: Sequence[FieldError]) -> Invalid:
        unique, more = _shown(errors)
        texts = [str(error) for error in unique]
        if more:
            texts.append("and more errors")
        joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        details: Obj = {"name": name} if name else {}
        if kind.group:
            details["group"] = kind.group
        if kind.kind:
            details["kind"] = kind.kind
        details["causes"] = [e.cause() for e in unique]
        return cls(f'{kind} "{name}" is invalid: {joined}', details=details)


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"

    def __init__(self, message: str = "Unauthorized", **kwargs: Any) -> None:
        super().__init__(message, **kwargs)


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"

    @classmethod
    def of(cls, resource: GroupResource, name: str, why: str) -> Forbidden:
        subject = f'{resource} "{name}"' if name else str(resource)
        return cls(f"{subject} is forbidden: {why}", details=_resource_details(resource, name))


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"

    def __init__(
        self, message: str = "the server does not allow this method on the requested resource", **kwargs: Any
    ) -> None:
        super().__init__(message, **{"details": {}, **kwargs})


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class Expired(ApiError):
    code, reason = 410, "Expired"


class Gone(ApiError):
    code, reason = 410, "Gone"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


class ServerTimeout(ApiError):
    code, reason = 500, "ServerTimeout"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Fenced(ApiError):
    """A write under a Lease that its sender no longer holds; not a Conflict, since no newer version would help."""

    code, reason = 412, "Fenced"


class InternalError(ApiError):
    code, reason = 500, "InternalError"

    @classmethod
    def of(cls, why: str) -> InternalError:
        return cls(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})


_BY_REASON: dict[str, type[ApiError]] = {
    cls.reason: cls
    for cls in (
        NotFound, AlreadyExists, Conflict, Invalid, Unauthorized, Forbidden, BadRequest, MethodNotAllowed,
        NotAcceptable, UnsupportedMediaType, RequestEntityTooLarge, Expired, Gone, Timeout, ServerTimeout,
        TooManyRequests, ServiceUnavailable, InternalError, Fenced,
    )
}  # fmt: skip
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: MethodNotAllowed, 406: NotAcceptable,
    409: Conflict, 410: Gone, 413: RequestEntityTooLarge, 415: UnsupportedMediaType, 422: Invalid,
    429: TooManyRequests, 500: InternalError, 503: ServiceUnavailable, 504: Timeout,
}  # fmt: skip


def error_from_status(status: Obj, *, http_code: int = 0) -> ApiError:
    """Return the typed error for a Status object; an unknown reason falls back to the code, as clients do."""
    code = int(status.get("code") or http_code or 500)
    reason = str(status.get("reason") or "")
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code) or ApiError
    return cls(
        str(status.get("message") or reason or f"HTTP {code}"),
        code=code,
        reason=reason or None,
        details=status.get("details"),
        metadata=status.get("metadata"),
    )
