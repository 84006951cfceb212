"""What the requests are sent to: the objects that patches change, and a kind of one's own."""

from __future__ import annotations

from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.linearity.measuring import create
from tests.linearity.shapes import CONFIGMAPS, CRDS, PODS, SCHEMA, WIDGETS, crd, named, post, widget
from tests.support.eventually import eventually


def target(obj: Obj) -> Obj:
    obj["metadata"]["name"] = "target"
    return obj


async def prepare(server: ApiServer) -> None:
    definition = crd(SCHEMA)
    definition["metadata"]["name"] = "widgets.example.com"
    definition["spec"] |= {"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}}
    await create(server, post(CRDS, definition))

    async def served() -> bool:
        return await create(server, post(WIDGETS, target(widget()))) == 200

    await eventually(served)
    await create(server, post(CONFIGMAPS, target(named(data={"a": "b"}))))
    await create(server, post(PODS, target(named(spec={"containers": [{"name": "c", "image": "i"}]}))))
