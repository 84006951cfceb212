"""Lists that are sent while they are read look as those that are sent whole."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.kinds.resource import Resource
from karmada.kube.kinds.tables import table
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.errors import ApiError, Expired
from karmada.kube.objects.gvk import GVK
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.yamlio import load_yaml
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.http.encoding import finish, partial
from karmada.kube.server.http.list_encoding import list_parts
from karmada.kube.server.http.list_stream import collected, stream_list
from karmada.kube.server.http.negotiation import Form
from karmada.kube.server.http.pieces import in_pieces
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import ListResult, Result, StreamedList
from tests.support.eventually import LIMIT
from tests.support.wire import Http

POD = next(r for r in builtin_resources(Definitions.load()) if r.gvk == GVK("", "v1", "Pod"))
META = {"resourceVersion": "eyJ9"}
PAGE = "/streamed"
pytestmark = pytest.mark.asyncio(loop_scope="module")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def pod(number: int) -> dict[str, Any]:
    metadata = {"name": f"p{number}", "namespace": "default", "annotations": {"text": "a\n  b: ü\n- c"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}}


async def given(batches: Sequence[Sequence[Any]], error: ApiError | None = None) -> AsyncGenerator[list[bytes], None]:
    for batch in batches:
        yield [orjson.dumps(item) for item in batch]
    if error is not None:
        raise error


def listed(*batches: Sequence[Any], error: ApiError | None = None, resource: Resource = POD) -> StreamedList:
    return StreamedList(resource, dict(META), given(batches, error))


async def body(result: StreamedList, form: Form, pretty: bool = False) -> bytes:
    return b"".join([piece async for piece in stream_list(result, form, "Metadata", pretty, 0.0)])


@pytest.mark.parametrize("batches", [[], [[]], [[pod(1)]], [[pod(1), pod(2)], [], [pod(3)]]])
@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
@pytest.mark.parametrize("pretty", [False, True])
@pytest.mark.parametrize("transform", ["", "Table", "PartialObjectMetadata"])
async def test_every_form_has_all_items(batches: list[list[Any]], media: str, pretty: bool, transform: str) -> None:
    text = await body(listed(*batches), Form(media, transform), pretty)
    read = orjson.loads(text) if media == "application/json" else load_yaml(text)
    pods = [item for batch in batches for item in batch]
    assert read["metadata"] == META
    if transform == "Table":
        assert [row["cells"][0] for row in read["rows"]] == [item["metadata"]["name"] for item in pods]
        assert [column["name"] for column in read["columnDefinitions"]][:3] == ["Name", "Ready", "Status"]
    elif transform:
        assert read["kind"] == "PartialObjectMetadataList"
        assert [item["metadata"] for item in read["items"]] == [item["metadata"] for item in pods]
    else:
        assert (read["kind"], read["apiVersion"], read["items"]) == ("PodList", "v1", pods)


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
@pytest.mark.parametrize("pretty", [False, True])
@pytest.mark.parametrize("transform", ["", "Table", "PartialObjectMetadata"])
@pytest.mark.parametrize("stored", [False, True])
async def test_a_list_is_written_as_one_value(
    number: int, media: str, pretty: bool, transform: str, stored: bool
) -> None:
    form, pods = Form(media, transform), [pod(n) for n in range(number)]
    result = ListResult(POD, META, list(map(Doc.of, pods)) if stored else [], None if stored else pods)
    if transform == "Table":
        whole = table(POD, pods, now=0.0, list_meta=META)
    elif transform:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": META}
        whole = {**head, "items": [partial(one) for one in pods]}
    else:
        items = [{key: value for key, value in one.items() if key not in ("apiVersion", "kind")} for one in pods]
        whole = {"kind": "PodList", "apiVersion": "v1", "metadata": META, "items": items}
    parts = in_pieces(list_parts(result, form, "Metadata", pretty, 0.0))
    assert b"".join([piece async for piece in parts]) == finish(whole, form, pretty)


async def test_a_pretty_list_is_indented_as_one_value() -> None:
    text = await body(listed([pod(1), pod(2)]), Form(), pretty=True)
    assert text == orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2)


async def test_callers_in_the_process_get_the_whole_list() -> None:
    assert await collected(listed([pod(1)], [pod(2)])) == {
        "kind": "PodList", "apiVersion": "v1", "metadata": META, "items": [pod(1), pod(2)],
    }  # fmt: skip


# --- over HTTP


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiServer]:
    server = ApiServer(ServerConfig(data_dir=tmp_path_factory.mktemp("data"), storage="memory://", port=0))
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(server: ApiServer) -> AsyncIterator[Http]:
    http = Http(server)
    yield http
    await http.close()


def serve(server: ApiServer, result: StreamedList) -> None:
    async def answer(_request: Request) -> Result:
        return result

    server.pipeline.paths[PAGE] = answer


LONG = [[pod(number + start) for number in range(100)] for start in range(0, 2000, 100)]


async def test_a_short_list_has_a_length_and_a_long_one_is_chunked(server: ApiServer, http: Http) -> None:
    serve(server, listed([pod(1)]))
    short = await http("GET", PAGE)
    assert short.headers["Content-Length"] == str(len(short.body))
    serve(server, listed(*LONG))
    long = await http("GET", PAGE, headers={"Accept-Encoding": "identity"})
    assert long.headers["Transfer-Encoding"] == "chunked"
    assert len(long.json()["items"]) == 2000


async def test_a_long_list_is_compressed_for_clients_that_accept_it(server: ApiServer, http: Http) -> None:
    serve(server, listed(*LONG))
    long = await http("GET", PAGE, headers={"Accept-Encoding": "gzip"})
    assert long.headers["Content-Encoding"] == "gzip"
    assert len(orjson.loads(gzip.decompress(long.body))["items"]) == 2000


async def test_kubectl_gets_the_columns_of_the_kind(server: ApiServer, http: Http) -> None:
    serve(server, listed([pod(1)]))
    table = (await http("GET", PAGE, headers={"Accept": TABLE})).json()
    assert table["rows"][0]["cells"][2] == "Running"


async def test_an_error_before_the_first_item_is_the_response(server: ApiServer, http: Http) -> None:
    serve(server, listed(error=Expired("too old")))
    assert (await http("GET", PAGE)).code == 410


async def test_an_error_within_a_long_list_breaks_the_connection(server: ApiServer, http: Http) -> None:
    serve(server, listed(*LONG, error=Expired("too old")))
    with pytest.raises(aiohttp.ClientPayloadError):
        await http("GET", PAGE)


async def test_a_client_that_leaves_ends_the_reading(server: ApiServer, http: Http) -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncGenerator[list[bytes], None]:
        item = orjson.dumps(pod(1))
        try:
            while True:
                yield [item] * 100
                await asyncio.sleep(0)
        finally:
            ended.set()

    serve(server, StreamedList(POD, {}, endless()))
    async with http.stream(PAGE) as response:
        await response.content.readany()
        response.close()
    async with asyncio.timeout(LIMIT):
        await ended.wait()
