"""The dashboard's server, over HTTPS to a control plane in memory: logins, sessions, refusals, live updates."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import aiohttp

from karmada.api.cluster import Cluster
from karmada.dashboard.sessions import COOKIE
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.dashboard_client import DashboardPlane, dashboard_plane
from tests.support.eventually import LIMIT, eventually
from tests.support.objects import kube_object
from tests.support.rights import grant, group


def cluster(name: str, **spec: object) -> Obj:
    return kube_object(Cluster.gvk.api_version, "Cluster", name) | {
        "spec": {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1", **spec}
    }


async def test_a_viewer_logs_in_sees_pages_and_logs_out(plane: DashboardPlane) -> None:
    browser = plane.browser
    away = await browser.get("/clusters/a")
    assert (away.status, away.headers["Location"]) == (303, "/login?to=/clusters/a")
    form = await browser.get("/login")
    assert "kubectl create token" in form.text
    entered = await browser.log_in()
    assert (entered.status, entered.headers["Location"]) == (303, "/")
    cookie = entered.headers["Set-Cookie"]
    assert cookie.startswith(COOKIE)
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    page = await browser.get("/")
    assert page.status == 200
    assert "No cluster has joined yet" in page.text
    assert "admin-token" not in page.text
    assert (await browser.post("/logout", {"csrf": "wrong"})).status == 403
    assert (await browser.post("/logout", {"csrf": browser.csrf})).status == 303
    assert (await browser.get("/")).status == 303


async def test_the_login_leads_back_to_the_page_and_never_to_another_site(plane: DashboardPlane) -> None:
    browser = plane.browser
    away = await browser.get("/?view=table&sort=cpu")
    assert away.headers["Location"] == "/login"
    away = await browser.get("/clusters/a?x=1&y=2")
    assert away.headers["Location"] == "/login?to=/clusters/a%3Fx%3D1%26y%3D2"
    assert 'value="/clusters/a?x=1&amp;y=2"' in (await browser.get(away.headers["Location"])).text
    for target in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        entered = await browser.post("/login", {"method": "token", "token": "admin-token", "to": target})
        assert entered.headers["Location"] == "/", target
    dashboard = plane.service.dashboard
    assert dashboard is not None
    assert len(dashboard.sessions) == 1, "a login ends the session that the browser had"


async def test_credentials_that_are_not_accepted_let_nobody_in_and_guesses_are_slowed_down(
    plane: DashboardPlane,
) -> None:
    refused = await plane.browser.log_in("wrong")
    assert refused.status == 403
    assert "does not accept these credentials" in refused.text
    assert "Set-Cookie" not in refused.headers
    codes = [(await plane.browser.log_in("wrong")).status for _ in range(10)]
    assert codes[-1] == 429
    assert (await plane.browser.log_in()).status == 429, "for right ones as well, from there"


async def test_what_the_viewer_may_not_see_is_refused_as_the_api_refuses_it(plane: DashboardPlane) -> None:
    await plane.client.create(Cluster.gvr, cluster("a"))
    assert (await plane.browser.log_in("nobody-token")).status == 303
    page = await plane.browser.get("/clusters/a")
    assert page.status == 403
    assert "You may not see this" in page.text
    part = await plane.browser.get("/fleet", HX_Request="true")
    assert part.status == 403
    assert "<html" not in part.text


async def test_a_kubeconfig_and_a_client_certificate_log_in_as_their_users(plane: DashboardPlane) -> None:
    text = plane.server.kubeconfig.read_text()
    entered = await plane.browser.post("/login", {"method": "kubeconfig", "kubeconfig": text})
    assert entered.status == 303
    assert "system:masters" in (await plane.browser.get("/")).text
    none = await plane.browser.post("/login", {"method": "certificate"})
    assert none.status == 403
    assert "presented no client certificate" in none.text


async def test_a_client_certificate_acts_as_exactly_its_user(plane: DashboardPlane, tmp_path: Path) -> None:
    pair = plane.server.pki.ca.issue("carla", ("viewers",), now=plane.server.clock.now())
    (tmp_path / "carla.pem").write_bytes(pair.cert_pem + pair.key_pem)
    connector = plane.browser.session.connector
    assert isinstance(connector, aiohttp.TCPConnector)
    trusted = connector._ssl
    assert not isinstance(trusted, bool)
    trusted.load_cert_chain(tmp_path / "carla.pem")
    entered = await plane.browser.post("/login", {"method": "certificate"})
    assert entered.status == 303, entered.text
    page = await plane.browser.get("/")
    assert page.status == 403, "carla has no rights, and the dashboard has none for her"
    assert 'title="carla (viewers' in page.text
    dashboard = plane.service.dashboard
    assert dashboard is not None
    (session,) = dashboard.sessions._sessions.values()
    assert plane.server.clock.now() < session.viewer.identity.until < math.inf, "it ends with the certificate"
    role = {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters"], "verbs": ["list", "get", "watch"]}
    await grant(plane.client, "viewers", [role], group("viewers"))
    assert (await plane.browser.get("/")).status == 200


async def test_requests_of_other_sites_and_for_other_names_are_refused(plane: DashboardPlane) -> None:
    browser = plane.browser
    await browser.log_in()
    assert (await browser.get("/", Sec_Fetch_Site="cross-site")).status == 403
    assert (await browser.get("/", Host="evil.example")).status == 403
    assert (await browser.post("/logout", {"csrf": browser.csrf}, Origin="https://evil.example")).status == 403
    assert (await browser.get("/")).status == 200
    headers = (await browser.get("/")).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"


@cases("/assets/0000000000000000/static/dashboard.css", "/assets/x/../server.py", "/nowhere")
async def test_what_is_not_served_is_not_found(path: str, plane: DashboardPlane) -> None:
    assert (await plane.browser.get(path, Sec_Fetch_Mode="navigate")).text == "Not Found\n"
    await plane.browser.log_in()
    assert (await plane.browser.get(path)).text == "Not Found\n"
    shown = await plane.browser.get(path, Sec_Fetch_Mode="navigate")
    assert (shown.status, "there is no page at" in shown.text, 'class="side"' in shown.text) == (404, True, True)


async def test_every_file_that_a_page_names_is_served_and_kept(plane: DashboardPlane) -> None:
    import re

    await plane.browser.log_in()
    page = await plane.browser.get("/")
    named = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)
    assert len(named) >= 5
    for path in named:
        asset = await plane.browser.get(path)
        assert asset.status == 200
        assert "immutable" in asset.headers["Cache-Control"]


async def test_an_open_page_gets_word_of_changes_and_a_closed_one_ends_its_watch(plane: DashboardPlane) -> None:
    await plane.browser.log_in()
    dashboard = plane.service.dashboard
    assert dashboard is not None
    topic = "/apis/cluster.karmada.io/v1alpha1/clusters?resourceVersion=1"
    request = plane.browser.session.get(f"{plane.browser.url}/live", params={"topic": topic})
    async with asyncio.timeout(LIMIT), request as stream:
        assert await _event(stream) == ("open", "")
        await plane.client.create(Cluster.gvr, cluster("a"))
        assert await _event(stream) == ("changed", topic)
        (live,) = dashboard._lives.values()
        assert len(live) == 1
    await eventually(lambda: len(live) == 0)


async def _event(stream: aiohttp.ClientResponse) -> tuple[str, str]:
    name = (await stream.content.readline()).decode().strip()
    data = (await stream.content.readline()).decode().strip()
    await stream.content.readline()
    return name.removeprefix("event: "), data.removeprefix("data:").strip()


async def test_a_part_that_the_page_has_already_is_not_sent_again(plane: DashboardPlane) -> None:
    await plane.browser.log_in()
    first = await plane.browser.get("/fleet", HX_Request="true")
    again = await plane.browser.get("/fleet", HX_Request="true", X_Seen=first.headers["X-Part"])
    assert again.status == 204
    await plane.client.create(Cluster.gvr, cluster("a"))
    changed = await plane.browser.get("/fleet", HX_Request="true", X_Seen=first.headers["X-Part"])
    assert changed.status == 200
    assert "Joining" in changed.text


async def test_names_and_messages_are_shown_escaped(plane: DashboardPlane) -> None:
    hostile = cluster("a")
    hostile["metadata"]["annotations"] = {"note": "<script>alert(1)</script>"}
    await plane.client.create(Cluster.gvr, hostile)
    await plane.browser.log_in()
    page = await plane.browser.get("/clusters/a")
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert" in page.text


async def test_a_dashboard_that_may_write_says_nothing_of_being_read_only(tmp_path: Path) -> None:
    async with dashboard_plane(tmp_path, writes=True) as plane:
        await plane.browser.log_in()
        assert "Read-only" not in (await plane.browser.get("/")).text
