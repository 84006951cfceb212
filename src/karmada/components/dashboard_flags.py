"""The flags of the dashboard, as the all-in-one has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from karmada.components.flags import Given, switch, together
from karmada.components.program import Dependent

if TYPE_CHECKING:
    from karmada.dashboard.server import Options

PORT: Final = 5480
"""Also that of `karmadactl local-up`."""
_DEPENDENT: Final[dict[str, Any]] = {"cls": Dependent, "needs": "--dashboard"}

dashboard_flags = together(
    switch("--dashboard", False, "Serve the dashboard: docs/dashboard.md."),
    click.option("--dashboard-port", default=PORT, help="Port of the dashboard; 0 takes a free one.", **_DEPENDENT),
    click.option(
        "--dashboard-bind-address",
        default="127.0.0.1",
        help="Address on which the dashboard listens; 0.0.0.0 is all.",
        **_DEPENDENT,
    ),
    click.option(
        "--dashboard-host",
        multiple=True,
        help="A name by which browsers reach the dashboard, besides localhost and addresses; repeatable.",
        **_DEPENDENT,
    ),
    switch(
        "--dashboard-writes",
        False,
        "Let viewers change what their own rights allow, and open terminals; without it the dashboard only reads.",
        **_DEPENDENT,
    ),
)


def dashboard_options_from(given: Given) -> Options | None:
    """Return None when it is off; then nothing of it is loaded, a twentieth of all modules."""
    if not given["dashboard"]:
        return None
    from karmada.dashboard.server import Options

    return Options(
        host=given["dashboard_bind_address"],
        port=given["dashboard_port"],
        names=tuple(name.lower() for name in given["dashboard_host"]),
        writes=given["dashboard_writes"],
    )
