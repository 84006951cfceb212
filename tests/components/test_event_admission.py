"""The events of a whole control plane are encoded as a group: no plug-in of its own has to see each of them."""

from __future__ import annotations

from pathlib import Path

from karmada.kube.objects.gvk import GVR
from karmada.kube.server.admission.interface import CREATE, Attributes
from karmada.kube.server.core import LOOPBACK
from tests.support.karmada_server import control_plane


async def test_every_plug_in_decides_on_events_by_their_namespace(tmp_path: Path) -> None:
    server = control_plane(tmp_path)
    events = server.registry.get(GVR("", "v1", "events"))
    assert events is not None
    create = Attributes(CREATE, events, "", "default", "", {}, None, LOOPBACK)
    assert server.admission.decides_by_namespace(create)
    assert "KarmadaRules" in server.admission.names, "it is the whole chain"
