"""Feature gates and settings of the running control plane, as its metrics report them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from karmada.kube.client.client import Client

_GATE: Final = re.compile(r'kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])')
_SETTING: Final = re.compile(r'karmada_controller_setting_info\{flag="([\w-]+)",value="([^"]*)"\} 1')


class Running(NamedTuple):
    """Both empty when the caller may not read the metrics, or the controllers run elsewhere."""

    gates: dict[str, bool]
    settings: dict[str, str]
    """Values by flag."""


async def running(client: Client) -> Running:
    from karmada.kube.client.transport import Call
    from karmada.kube.objects.errors import ApiError

    page = b""
    try:
        async for piece in client.transport.stream(Call("GET", "/metrics", {}, accept="text/plain, */*")):  # type: ignore[attr-defined]
            page += piece
    except ApiError:
        return Running({}, {})
    text = page.decode(errors="replace")
    gates = {name: on == "1" for name, on in _GATE.findall(text)}
    return Running(gates, {flag: value.replace("\\\\", "\\") for flag, value in _SETTING.findall(text)})
