"""Logging in, and the fleet, as people see them in a browser."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import expect

from karmada.kube.client.kubeconfig import Kubeconfig
from tests.e2e.dashboard.conftest import DashboardFleet
from tests.support.browser import NARROW, WIDE, Scheme, Tab

Opens = Callable[..., AbstractContextManager[Tab]]


def test_only_who_has_credentials_gets_in_and_sees_what_their_rights_are(
    dashboard: DashboardFleet, open_tab: Opens
) -> None:
    with open_tab() as tab:
        tab.open("/")
        expect(tab.page).to_have_url(f"{dashboard.url}/login")
        tab.is_readable()
        tab.shot("login")
        tab.expect_problem("status of 403")
        tab.page.fill("#token", "no.such.token")
        tab.page.keyboard.press("Tab")
        tab.page.keyboard.press("Enter")
        tab.see("does not accept these credentials")
        tab.log_in(dashboard.viewer, "/clusters/member1")
        expect(tab.page).to_have_url(f"{dashboard.url}/clusters/member1")
        tab.see("you may not see them")
        tab.see("Events: you may not see this.")
        tab.see("You may not see the nodes of this cluster")
        tab.page.get_by_role("button", name="Log out").click()
        expect(tab.page).to_have_url(f"{dashboard.url}/login")
        tab.open("/clusters/member1")
        expect(tab.page).to_have_url(f"{dashboard.url}/login?to=/clusters/member1")


def test_a_kubeconfig_and_a_client_certificate_are_as_good_as_a_token(
    dashboard: DashboardFleet, open_tab: Opens
) -> None:
    kubeconfig = dashboard.fleet.plane.kubeconfig
    access = Kubeconfig.load(kubeconfig).resolve()
    with open_tab() as tab:
        tab.open("/login?to=/workloads")
        tab.page.get_by_role("tab", name="Kubeconfig").click()
        tab.page.locator("#file").set_input_files(kubeconfig)
        tab.page.locator("#kubeconfig-form button[type=submit]").click()
        expect(tab.page).to_have_url(f"{dashboard.url}/workloads")
        expect(tab.page.locator(".user")).to_have_text("system:admin")
    with open_tab(certificate=(access.certificate.data, access.key.data)) as tab:
        tab.open("/login")
        tab.page.get_by_role("tab", name="Certificate").click()
        tab.page.get_by_role("button", name="Log in with the certificate").click()
        expect(tab.page.locator(".user")).to_have_text("system:admin")
        tab.see("member1")
        tab.is_live()


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_the_fleet_is_readable_on_every_screen_and_with_the_keyboard_alone(
    dashboard: DashboardFleet, open_tab: Opens, width: int, scheme: Scheme
) -> None:
    with open_tab(width=width, scheme=scheme) as tab:
        tab.log_in(dashboard.admin)
        for name in ("member1", "member2", "member3"):
            tab.see(name)
        tab.see("p1 · r1")
        tab.is_readable()
        tab.reach(".cluster")
        tab.shot(f"fleet-{width}-{scheme}")
        tab.page.keyboard.press("Enter")
        expect(tab.page.locator("h1")).to_have_text("member1")
        tab.see("cluster is healthy")
        expect(tab.page.locator("#nodes tbody tr").first).to_be_visible()
        tab.is_readable()
        tab.shot(f"cluster-{width}-{scheme}", whole=True)
        tab.open("/?view=table&sort=cpu")
        expect(tab.page.locator("tbody tr")).to_have_count(3)
        tab.is_readable()


def test_the_fleet_follows_what_kubectl_changes_and_the_switch_of_the_theme_stays(
    dashboard: DashboardFleet, open_tab: Opens
) -> None:
    kubectl, taint = dashboard.fleet.kubectl, "maintenance=planned:NoSchedule"
    with open_tab() as tab:
        tab.log_in(dashboard.admin)
        tab.is_live()
        tab.page.fill("#filter", "member2")
        expect(tab.page.locator(".cluster:not(.filtered)")).to_have_count(1)
        dashboard.fleet.ctl("taint", "clusters", "member2", taint)
        tab.see(taint)
        expect(tab.page.locator("#filter")).to_have_value("member2")
        expect(tab.page.locator(".cluster:not(.filtered)")).to_have_count(1)
        dashboard.fleet.ctl("taint", "clusters", "member2", f"{taint}-")
        tab.gone(".cluster.warn")
        kubectl("label", "cluster", "member1", "seen=yes")
        tab.open("/clusters/member1")
        tab.see("seen=yes")
        kubectl("label", "cluster", "member1", "seen-")
        tab.gone("code:text('seen=yes')")
        tab.page.get_by_role("button", name="Switch between light and dark").click()
        tab.open("/")
        expect(tab.page.locator("html")).to_have_attribute("data-theme", "dark")
