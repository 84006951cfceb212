"""One control plane with three members, a dashboard and a browser for all tests of the dashboard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from karmada.kube.objects.gvk import GVR
from tests.e2e.fleets import QUICK, QUICK_SCALING
from tests.e2e.propagating import Propagation, propagation
from tests.e2e.sharing import Shared
from tests.support.browser import Tab, chromium, tab
from tests.support.rights import binding, user

ADMIN, VIEWER, READER = "boss", "visitor", "auditor"
_ROLES, _BINDINGS = (GVR("rbac.authorization.k8s.io", "v1", name) for name in ("clusterroles", "clusterrolebindings"))
_FLAGS = (
    *QUICK,
    *QUICK_SCALING,
    "--feature-gates=MultiClusterService=true,FederatedQuotaEnforcement=true,Failover=true",
    "--dashboard",
    "--dashboard-port=0",
    "--dashboard-writes",
)


@dataclass(frozen=True)
class DashboardFleet:
    fleet: Propagation
    url: str
    admin: str = f"{ADMIN}-token"
    """The token of one who may do everything, in the members as well."""
    viewer: str = f"{VIEWER}-token"
    """The token of one who may look at clusters, and at nothing else."""
    reader: str = f"{READER}-token"
    """The token of one who may look at everything, Secrets excepted, in the members as well, and change nothing."""


@pytest.fixture(scope="module")
def dashboard(shared: Shared, tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> DashboardFleet:
    return shared.get("dashboard", lambda: _dashboard(tmp_path_factory.mktemp("dashboard"), kubectl_path))


@contextmanager
def _dashboard(folder: Path, kubectl_path: str) -> Iterator[DashboardFleet]:
    tokens = folder / "tokens.csv"
    tokens.write_text("".join(f"{name}-token,{name},{name}\n" for name in (ADMIN, VIEWER, READER)))
    with propagation(folder, kubectl_path, flags=(*_FLAGS, f"--token-auth-file={tokens}")) as fleet:
        assert fleet.plane.process is not None
        assert fleet.plane.process.stdout is not None
        found = re.search(r"https://\S+", fleet.plane.process.stdout.readline())
        assert found, "the address of the dashboard is not printed"
        _grant(fleet)
        yield DashboardFleet(fleet, found[0])


def _grant(fleet: Propagation) -> None:
    rules = [{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters"], "verbs": ["get", "list", "watch"]}]
    fleet.here.create(_ROLES, {"metadata": {"name": "sees-clusters"}, "rules": rules})
    fleet.here.create(_BINDINGS, binding(VIEWER, user(VIEWER), to="sees-clusters"))
    looks = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    proxied = {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["*"]}
    fleet.here.create(_ROLES, {"metadata": {"name": "sees-all"}, "rules": [looks, proxied]})
    fleet.here.create(_BINDINGS, binding(READER, user(READER), to="sees-all"))
    for place in (fleet.here, *fleet.members.values()):
        place.create(_BINDINGS, binding(ADMIN, user(ADMIN), to="cluster-admin"))
    for member in fleet.members.values():
        member.create(_BINDINGS, binding(READER, user(READER), to="view"))


@pytest.fixture(scope="module")
def browser(shared: Shared) -> Browser:
    """Closed after these files: while it is open, nothing else in this thread can run an event loop, as tests do."""
    return shared.get("browser", chromium)


@pytest.fixture
def open_tab(browser: Browser, dashboard: DashboardFleet) -> Callable[..., AbstractContextManager[Tab]]:
    """open_tab(width=…, scheme=…): a tab of its own at the dashboard, nobody logged in."""
    opened: Any = partial(tab, browser, dashboard.url)
    return opened
