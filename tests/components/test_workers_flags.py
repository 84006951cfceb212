"""Flags of replicas that share the work: what they mean, and what is refused."""

from __future__ import annotations

from click.testing import CliRunner

from karmada.components import controller_manager, karmada, worker
from karmada.components.sharing import Sharing
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.informers import Informers
from tests.support.cases import cases
from tests.support.fake_api import FakeApi, FakeTransport


@cases(
    (karmada, ["--workers=0"], "0 is not in the range x>=1"),
    (karmada, ["--workers=-2"], "-2 is not in the range x>=1"),
    (karmada, ["--workers=two"], "'two' is not a valid integer"),
    (karmada, ["--worker-metrics-port=70000"], "70000 is not in the range"),
    (karmada, ["--worker-lease-duration=100ms"], "must be at least 1s"),
    (controller_manager, ["--share-work", "--leader-elect=false"], "--share-work needs the leases"),
)
def test_flags_that_cannot_be_are_refused(program: object, arguments: list[str], problem: str) -> None:
    done = CliRunner().invoke(program.main, arguments)  # type: ignore[attr-defined]
    assert done.exit_code != 0
    assert problem in done.output


def test_one_worker_is_this_process() -> None:
    given = {"workers": 1, "worker_lease_duration": 15.0, "worker_metrics_port": 0}
    assert karmada.workers_from(given) is None
    options = karmada.workers_from({**given, "workers": 3})
    assert options is not None
    assert options.count == 3


def test_a_worker_has_every_flag_of_its_parent() -> None:
    flags = {opt for param in karmada.main.params for opt in param.opts}
    assert flags <= {opt for param in worker.main.params for opt in param.opts}


def test_members_have_names_of_their_own_and_one_lease_together() -> None:
    sharing: Sharing = worker.sharing_of({"worker_lease_duration": 15.0, "worker_name": "karmada-worker-1"})
    assert sharing.group_lease.identity == "karmada-controller-manager-shared"
    assert (sharing.election.renew_deadline, sharing.election.retry_period) == (10.0, 2.0)
    client = Client(FakeTransport(FakeApi()))
    informers = Informers(client, clock=FakeClock())
    names = {sharing.membership(client, informers, FakeClock()).name for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("karmada-worker-1-") for name in names)
