"""ConfigMaps, Secrets (whose values stay secret) and ServiceAccounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import Sheet
from karmada.cli.output.describing.words import head, meta

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_TOKEN = "kubernetes.io/service-account-token"
_ACCOUNT_NAME, _ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


def _bytes(encoded: str | None) -> bytes:
    from base64 import b64decode

    return b64decode(encoded or "")


async def config_map(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj)
    sheet.blank()
    sheet.row(0, "Data")
    sheet.row(0, "====")
    for key, value in sorted((obj.get("data") or {}).items()):
        sheet.row(0, f"{key}:")
        sheet.row(0, "----")
        sheet.row(0, value)
        sheet.blank()
    sheet.blank()
    sheet.row(0, "BinaryData")
    sheet.row(0, "====")
    for key, value in sorted((obj.get("binaryData") or {}).items()):
        sheet.row(0, f"{key}: {len(_bytes(value))} bytes")
    sheet.blank()


async def secret(sheet: Sheet, obj: Obj, _around: Around) -> None:
    head(sheet, obj)
    sheet.blank()
    sheet.field("Type", obj.get("type") or "")
    sheet.blank()
    sheet.row(0, "Data")
    sheet.row(0, "====")
    for key, value in sorted((obj.get("data") or {}).items()):
        content = _bytes(value)
        if key == "token" and obj.get("type") == _TOKEN:
            sheet.field(key, content.decode(errors="replace"))
        else:
            sheet.field(key, f"{len(content)} bytes")


async def service_account(sheet: Sheet, obj: Obj, around: Around) -> None:
    secrets = await around.if_allowed("secrets.v1", meta(obj, "namespace"))
    there = {meta(found, "name") for found in secrets or ()}
    tokens = sorted(meta(found, "name") for found in secrets or () if _is_token_of(found, obj))
    head(sheet, obj)
    for title, names in (
        ("Image pull secrets", [one["name"] for one in obj.get("imagePullSecrets") or ()]),
        ("Mountable secrets", [one["name"] for one in obj.get("secrets") or ()]),
        ("Tokens", tokens),
    ):
        sheet.column(title, [name if secrets is None or name in there else f"{name} (not found)" for name in names])


def _is_token_of(secret_: Obj, account: Obj) -> bool:
    said = meta(secret_, "annotations", {})
    return (
        secret_.get("type") == _TOKEN
        and said.get(_ACCOUNT_NAME) == meta(account, "name")
        and said.get(_ACCOUNT_UID) == meta(account, "uid")
    )
