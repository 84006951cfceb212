"""TLS contexts of clients: equal material gives the same one, however many others there are."""

from __future__ import annotations

import gc
import weakref

from karmada.kube.client.config import RestConfig
from karmada.kube.client.credentials import Credential
from karmada.kube.client.request_sender import RequestSender
from karmada.kube.client.tls import client_context

_MORE_THAN_ARE_REMEMBERED = 100


def others() -> None:
    for number in range(_MORE_THAN_ARE_REMEMBERED):
        client_context(b"%d" % number, b"", b"", True)


def test_a_context_that_is_in_use_is_found_again_however_many_were_made_since() -> None:
    context = client_context(b"mine", b"", b"", True)
    others()
    assert client_context(b"mine", b"", b"", True) is context


def test_a_context_that_nobody_uses_any_more_is_forgotten() -> None:
    reference = weakref.ref(client_context(b"gone", b"", b"", True))
    others()
    gc.collect()
    assert reference() is None


async def test_a_sender_keeps_its_context_for_the_connections_that_it_has() -> None:
    sender = RequestSender(RestConfig(server="https://127.0.0.1:1", insecure=True))
    context = sender._settled(Credential()).tls
    assert context is not None
    reference = weakref.ref(context)
    del context
    others()
    gc.collect()
    assert sender._settled(Credential()).tls is reference()
    sender.close()
