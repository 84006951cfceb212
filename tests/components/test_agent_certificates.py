"""The certificate of an agent: renewed under load, replaced from outside, expired."""

from __future__ import annotations

import base64
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from karmada.api import well_known
from karmada.api.work import Work
from karmada.components.agent_parts import agent_rows
from karmada.components.certificate_expiry import LOOK_SECONDS, CertificateExpiry
from karmada.controllers.agent_csr_approving import AgentCsrApproving
from karmada.controllers.cert_rotation import CertRotation
from karmada.controllers.context import Context
from karmada.joining.objects import namespace
from karmada.joining.pull.objects import KUBECONFIG_KEY, KUBECONFIG_SECRET
from karmada.joining.pull.validity import load_chain
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.reloading_kubeconfig import ReloadingKubeconfig
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.gvrs import CONFIG_MAPS, CSRS, NAMESPACES, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.periodic import Periodic
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.kubeconfig import kubeconfig
from karmada.kube.server.auth.pki import DAY
from tests.components.test_agent_outages import MANY, SPACE, work
from tests.support.agents import QUICK, Agent, PullFleet, pull_fleet, pulling_parts
from tests.support.eventually import eventually
from tests.support.fleet import condition

SYSTEM = "karmada-system"


def kubeconfig_for(server: ApiServer, cluster: str, days: float = 1.0, url: str = "") -> str:
    group = (well_known.AGENT_GROUP,)
    pair = server.pki.ca.issue(well_known.agent_user(cluster), organizations=group, days=days)
    return kubeconfig(url or server.url, server.pki.ca.cert_pem, pair.cert_pem, pair.key_pem, cluster)


def follow(agent: Agent, file: Path, server: ApiServer, days: float = 1.0) -> ReloadingKubeconfig:
    """Have an agent use a kubeconfig file."""
    file.write_text(kubeconfig_for(server, "m1", days))
    found = ReloadingKubeconfig(str(file))
    agent.plane = found.config()
    return found


class FailedRequests:
    """Counts requests of an agent to the control plane that failed."""

    def __init__(self, agent: Agent) -> None:
        self.failed: list[str] = []
        self.sent = 0
        assert agent.process is not None
        transport = agent.process.client.transport
        assert isinstance(transport, HttpTransport)
        original = transport._exchange

        async def exchange(*arguments: object) -> object:
            self.sent += 1
            try:
                return await original(*arguments)  # type: ignore[arg-type]
            except Exception as error:
                self.failed.append(str(error))
                raise

        transport._exchange = exchange  # type: ignore[method-assign,assignment]


async def test_a_certificate_is_renewed_under_load_without_a_failed_request(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1", start=False, parts=_with_approval) as found:
        agent, server = found.agents["m1"], found.fleet.plane.server
        followed = follow(agent, tmp_path / "agent.kubeconfig", server)
        rotation = partial(CertRotation, namespace=SYSTEM, interval=0.3, threshold=0.9999, renewed=followed.adopt)
        agent.options["rows"] = agent_rows(rotation=rotation)
        agent.settings = replace(QUICK, controllers=("*", "certRotation"))
        await _store_kubeconfig(found, (tmp_path / "agent.kubeconfig").read_bytes())
        agent.start()
        requests = FailedRequests(agent)
        await found.until_ready("m1")
        for number in range(MANY):
            await found.client.create(Work.gvr, work(number))
        renewals = await eventually(partial(_renewals, found, 3))
        await eventually(partial(_all_applied, found))

        assert requests.failed == []
        assert requests.sent > MANY
        assert {round(csr["spec"]["expirationSeconds"] / DAY, 1) for csr in renewals} == {1.0}
        assert all(csr["spec"]["username"] == "system:karmada:agent:m1" for csr in renewals)
        stored = base64.b64decode((await _secret(found))["data"][KUBECONFIG_KEY])
        assert stored != (tmp_path / "agent.kubeconfig").read_bytes()
        [leaf] = load_chain(followed.current().certificate.data)
        assert leaf.subject.rfc4514_string() == "CN=system:karmada:agent:m1,O=system:karmada:agents"


def _with_approval(context: Context) -> list[Any]:
    return [*pulling_parts(context), AgentCsrApproving(context)]


async def _store_kubeconfig(found: PullFleet, text: bytes) -> None:
    member = found.members["m1"].client
    await member.create(NAMESPACES, namespace(SYSTEM))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KUBECONFIG_SECRET, "namespace": SYSTEM}}
    await member.create(SECRETS, {**secret, "data": {KUBECONFIG_KEY: base64.b64encode(text).decode()}})


async def _secret(found: PullFleet) -> Obj:
    return await found.members["m1"].client.get(SECRETS, KUBECONFIG_SECRET, SYSTEM)


async def _renewals(found: PullFleet, least: int) -> list[Obj] | None:
    items = (await found.client.list_all(CSRS)).items
    issued = [csr for csr in items if (csr.get("status") or {}).get("certificate")]
    return issued if len(issued) >= least else None


async def _all_applied(found: PullFleet) -> bool:
    works = (await found.client.list_all(Work.gvr, SPACE)).items
    return len(works) == MANY and all(condition(each, "Applied") == "True" for each in works)


async def test_a_certificate_that_is_replaced_in_the_file_is_used_without_a_restart(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1", start=False) as found:
        agent, server, file = found.agents["m1"], found.fleet.plane.server, tmp_path / "agent.kubeconfig"
        followed = follow(agent, file, server)
        agent.start()
        await found.until_ready("m1")
        before = followed.current().certificate
        file.write_text("half a kubecon")
        assert followed.current().certificate == before
        file.write_text(kubeconfig_for(server, "m1"))
        assert followed.current().certificate != before
        await found.client.create(Work.gvr, work(1))
        await found.members["m1"].until(CONFIG_MAPS, "settings-1")


async def test_an_agent_with_an_expired_certificate_says_so_and_does_not_start(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1", start=False) as found:
        agent = found.agents["m1"]
        follow(agent, tmp_path / "agent.kubeconfig", found.fleet.plane.server, days=-0.001)
        agent.start()
        with pytest.raises(ValueError, match=r"expired at 20.*: put a kubeconfig with a new one into the Secret"):
            await agent.ended()
        follow(agent, tmp_path / "agent.kubeconfig", found.fleet.plane.server)
        agent.start()
        await found.until_ready("m1")


async def test_an_agent_whose_certificate_expires_reports_it_once_and_takes_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with pull_fleet(tmp_path, "m1", start=False) as found:
        server, file = found.fleet.plane.server, tmp_path / "agent.kubeconfig"
        followed = follow(found.agents["m1"], file, server, days=0.01)
        clock = FakeClock(start=server.clock.now())
        check = CertificateExpiry(followed, SYSTEM, clock).check
        expiry = Periodic("certificate-expiry", check, LOOK_SECONDS, clock)
        with caplog.at_level(logging.INFO):
            await expiry.start()
            await clock.advance(600)
            assert "refuses this agent" not in caplog.text
            for _ in range(10):
                await clock.advance(60)
            assert caplog.text.count("The control plane refuses this agent") == 1
            file.write_text(kubeconfig_for(server, "m1"))
            await clock.advance(60)
            assert "valid certificate again" in caplog.text
            await expiry.stop()
