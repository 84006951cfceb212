"""Answers in protobuf: objects, lists and watch events of built-in kinds, and the metadata of any kind.

A body is an envelope around the kind's message. A watch sends each event as four bytes of length and a WatchEvent
without an envelope, whose object is such a body. Long lists are encoded in time slices, and large objects aside: other
requests are served in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karmada.kube.objects.errors import NotAcceptable
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.aside import ASIDE, is_large
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.schema.builtin import LIST_META, OBJECT_META, Definitions
from karmada.kube.schema.protobuf import envelope
from karmada.kube.schema.protobuf_encoder import Message, message_for
from karmada.kube.schema.protowire import chunk
from karmada.kube.server.http.results import ListResult

PARTIAL, PARTIAL_LIST = "PartialObjectMetadata", "PartialObjectMetadataList"


class ProtobufForm:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._messages: dict[tuple[str, str], Message] = {}

    def object(self, obj: Obj) -> bytes:
        """Return the body of one object; NotAcceptable for a kind without a message."""
        api_version, kind = obj.get("apiVersion") or "v1", obj["kind"]
        return envelope(api_version, kind, self._message(api_version, kind).encode(obj))

    def metadata(self, obj: Obj, version: str) -> bytes:
        """Return the body of an object of which only the metadata is sent."""
        return envelope(f"meta.k8s.io/{version}", PARTIAL, self._metadata(obj))

    async def list(self, result: ListResult, objects: Iterable[Obj]) -> bytes:
        gvk = result.resource.gvk
        encode = self._message(gvk.api_version, gvk.kind).encode
        body = await self._list(result.metadata, objects, encode)
        return envelope(gvk.api_version, result.resource.list_kind, body)

    async def metadata_list(self, metadata: Obj, objects: Iterable[Obj], version: str) -> bytes:
        body = await self._list(metadata, objects, self._metadata)
        return envelope(f"meta.k8s.io/{version}", PARTIAL_LIST, body)

    def event(self, kind: str, obj: Obj) -> bytes:
        """Return a watch event with a whole object (an object, a bookmark, a Status)."""
        return frame(kind, self.object(obj))

    async def _list(self, metadata: Obj, objects: Iterable[Obj], encode: Callable[[Obj], bytes]) -> bytes:
        pieces = [chunk(1, self._definition(LIST_META).encode(metadata))]
        turn = TimeSlice()
        for obj in objects:
            body = await ASIDE.run(encode, obj) if is_large(obj) else encode(obj)
            pieces.append(chunk(2, body))
            if turn.is_over():
                await turn.next()
        return b"".join(pieces)

    def _metadata(self, obj: Obj) -> bytes:
        return chunk(1, self._definition(OBJECT_META).encode(obj["metadata"]))

    def _definition(self, name: str) -> Message:
        message = message_for(self._definitions.node(name))
        assert message is not None, f"{name} has no protobuf message"
        return message

    def _message(self, api_version: str, kind: str) -> Message:
        found = self._messages.get((api_version, kind))
        if found is None:
            node = self._definitions.node_for(GVK.parse(api_version, kind))
            found = message_for(node) if node is not None else None
            if found is None:
                raise NotAcceptable(f"{kind} of {api_version} has no protobuf form; request JSON")
            self._messages[api_version, kind] = found
        return found


def frame(kind: str, body: bytes) -> bytes:
    """Return one event of a watch."""
    event = chunk(1, kind.encode()) + chunk(2, chunk(1, body))
    return len(event).to_bytes(4, "big") + event
