"""Request options: the query parameters (and DeleteOptions body) of every verb, checked as Kubernetes checks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from karmada.kube.objects.errors import BadRequest, FieldError, Invalid, forbidden_field, invalid, not_supported
from karmada.kube.objects.gvk import GroupKind
from karmada.kube.objects.selectors import FieldSelector, LabelSelector, parse_fields, parse_labels
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.request import EMPTY_QUERY, Query

_META_GROUP = "meta.k8s.io"
_MATCH, _EXACT, _NOT_OLDER = "resourceVersionMatch", "Exact", "NotOlderThan"
_PROPAGATION = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of create, update and patch. `manager` is the field manager as given ("" when it was not)."""

    kind: str = "CreateOptions"
    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool | None = None

    def body(self) -> Obj:
        """As admission webhooks see them."""
        body: Obj = {"kind": self.kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            body["dryRun"] = ["All"]
        if self.manager:
            body["fieldManager"] = self.manager
        if self.validation != "Warn":
            body["fieldValidation"] = self.validation
        if self.force is not None:
            body["force"] = self.force
        return body


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace: int | None = None
    propagation: str = ""
    orphan: bool | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    def body(self) -> Obj:
        body: Obj = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.grace is not None:
            body["gracePeriodSeconds"] = self.grace
        if self.propagation:
            body["propagationPolicy"] = self.propagation
        if self.dry_run:
            body["dryRun"] = ["All"]
        return body


@dataclass(frozen=True, slots=True)
class ListOptions:
    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    timeout: float | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None


_WITHOUT_QUERY = {kind: WriteOptions(kind) for kind in ("CreateOptions", "UpdateOptions", "PatchOptions")}
DEFAULT_DELETE = DeleteOptions()
_EVERYTHING = ListOptions()


def _refuse(kind: str, errors: list[FieldError]) -> None:
    if errors:
        raise Invalid.of(GroupKind(_META_GROUP, kind), "", errors)


def _dry_run_errors(values: list[str]) -> list[FieldError]:
    return [not_supported("dryRun", values, ["All"])] if any(value != "All" for value in values) else []


def write_options(query: Query, kind: str, *, applying: bool = False) -> WriteOptions:
    if query is EMPTY_QUERY and not applying:
        return _WITHOUT_QUERY[kind]
    dry_run = query.all("dryRun")
    manager = query.get("fieldManager")
    validation = query.get("fieldValidation") or "Warn"
    force = query.flag("force") if "force" in query else None
    errors = _dry_run_errors(dry_run)
    if len(manager) > 128:
        errors.append(FieldError("fieldManager", "FieldValueTooLong", "Too long: may not be more than 128 bytes"))
    elif not manager.isprintable():
        errors.append(invalid("fieldManager", manager, "should only contain printable characters"))
    if validation not in ("Ignore", "Warn", "Strict"):
        errors.append(not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
    if applying and not manager:
        errors.append(FieldError("fieldManager", "FieldValueRequired", "Required value: is required for apply patch"))
    if force is not None and not applying:
        errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
    _refuse(kind, errors)
    return WriteOptions(kind, bool(dry_run), manager, validation, force)


def delete_options(query: Query, body: Obj | None) -> DeleteOptions:
    """From the body if there is one, else from the query."""
    given = body if body else _delete_query(query)
    if not given:
        return DEFAULT_DELETE
    orphan = given.get("orphanDependents")
    propagation = given.get("propagationPolicy") or ""
    dry_run = given.get("dryRun") or []
    errors = _dry_run_errors(dry_run)
    if orphan is not None and propagation:
        both = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", propagation, both))
    elif propagation and propagation not in _PROPAGATION:
        errors.append(not_supported("propagationPolicy", propagation, [*_PROPAGATION, "nil"]))
    _refuse("DeleteOptions", errors)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        grace=given.get("gracePeriodSeconds"),
        propagation=propagation,
        orphan=orphan,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=bool(dry_run),
    )


def _delete_query(query: Query) -> Obj:
    given: dict[str, Any] = {}
    if "gracePeriodSeconds" in query:
        given["gracePeriodSeconds"] = _integer(query.get("gracePeriodSeconds"))
    if "orphanDependents" in query:
        given["orphanDependents"] = query.flag("orphanDependents")
    if query.get("propagationPolicy"):
        given["propagationPolicy"] = query.get("propagationPolicy")
    if query.all("dryRun"):
        given["dryRun"] = query.all("dryRun")
    return given


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def list_options(query: Query, *, watch: bool) -> ListOptions:
    if not query:
        return _EVERYTHING
    labels = fields = None
    try:
        if text := query.get("labelSelector"):
            labels = parse_labels(text)
        if text := query.get("fieldSelector"):
            fields = parse_fields(text)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    timeout = query.get("timeoutSeconds")
    options = ListOptions(
        labels=labels,
        fields=fields,
        resource_version=query.get("resourceVersion"),
        match=query.get("resourceVersionMatch"),
        limit=max(_integer(query.get("limit") or "0"), 0),
        token=query.get("continue"),
        timeout=float(_integer(timeout)) if timeout else None,
        bookmarks=query.flag("allowWatchBookmarks"),
        send_initial_events=query.flag("sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    _refuse("ListOptions", _watch_errors(options) if watch else _list_errors(options))
    return options


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    match = options.match
    if options.send_initial_events is not None and match != _NOT_OLDER:
        errors.append(_forbidden_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if not match:
        return errors
    if options.send_initial_events is None:
        errors.append(
            _forbidden_match("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        )
    if match != _NOT_OLDER:
        errors.append(not_supported(_MATCH, match, [_NOT_OLDER]))
    if options.token:
        errors.append(_forbidden_match("resourceVersionMatch is forbidden when continue is provided"))
    return errors


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors = _match_errors(options) if options.match else []
    if options.send_initial_events is not None:
        errors.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _match_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    match = options.match
    if not options.resource_version:
        errors.append(_forbidden_match("resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if options.token:
        errors.append(_forbidden_match("resourceVersionMatch is forbidden when continue is provided"))
    if match not in (_EXACT, _NOT_OLDER):
        errors.append(not_supported(_MATCH, match, [_EXACT, _NOT_OLDER, ""]))
    if match == _EXACT and options.resource_version == "0":
        errors.append(_forbidden_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return errors


def _forbidden_match(why: str) -> FieldError:
    return forbidden_field(_MATCH, why)
