"""What tests leave behind is freed: what stays of a control plane is examined again after every test to come."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.server.app import ApiServer
from tests.support.collector import release_servers
from tests.support.played_fleet import PlayedFleet
from tests.support.propagation import POLICIES, config_map, policy, selecting


def server_of_a_stopped_fleet(folder: Path) -> weakref.ref[ApiServer]:
    """All controllers have run, and something was propagated."""
    played = PlayedFleet(folder)

    async def scenario() -> None:
        await played.fleet.start()
        await played.add("m1")
        await played.fleet.start_controllers()
        await played.client.create(POLICIES, policy("settings", selecting("ConfigMap")))
        await played.client.create(CONFIG_MAPS, config_map("settings"))
        await played.fleet.run(60)
        assert await played.fleet.members["m1"].client.get(CONFIG_MAPS, "settings", "default")

    played.play(scenario())
    played.stop()
    return weakref.ref(played.fleet.server)


def test_no_cache_of_the_process_holds_a_server_that_has_stopped(tmp_path: Path) -> None:
    server = server_of_a_stopped_fleet(tmp_path)
    release_servers()
    gc.collect()
    assert server() is None, "something holds the server: empty it in release_servers"
