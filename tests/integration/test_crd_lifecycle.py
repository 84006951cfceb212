"""CustomResourceDefinitions from acceptance to the deletion of the last object, over the wire."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from karmada.kube.client.client import Client
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.cases import cases
from tests.support.custom_kinds import definition, version
from tests.support.eventually import eventually
from tests.support.wire import Http

CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "crd.example.com"


def crd(plural: str = "things", kind: str = "Thing", *versions: Obj, scope: str = "Namespaced", **names: Any) -> Obj:
    return definition(GROUP, kind, *versions, plural=plural, scope=scope, **names)


def thing(name: str, **more: Any) -> Obj:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name, **more}}


def path(version: str = "v1", name: str = "", plural: str = "things") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/default/{plural}" + (f"/{name}" if name else "")


def stored(server: ApiServer, plural: str = "things") -> Obj | None:
    return server.cache.get(CRDS.group_resource, "", f"{plural}.{GROUP}")


def conditions(server: ApiServer, plural: str = "things") -> dict[str, tuple[str, str, str]]:
    found = (stored(server, plural) or {}).get("status", {}).get("conditions") or []
    return {c["type"]: (c["status"], c["reason"], c.get("message", "")) for c in found}


async def establish(server: ApiServer, http: Http, definition: Obj) -> Obj:
    plural = definition["spec"]["names"]["plural"]
    answer = await http("POST", CRD_PATH, definition)
    assert answer.code == 201, answer.body
    await eventually(lambda: conditions(server, plural).get("Established", ("",))[0] == "True")
    await eventually(lambda: server.registry.get(GVR(GROUP, definition["spec"]["versions"][0]["name"], plural)))
    made: Obj = answer.json()
    return made


async def change(server: ApiServer, http: Http, plural: str, edit: Any, code: int = 200) -> Obj:
    """Read, edit, write, and again if somebody else wrote meanwhile."""
    while True:
        obj = copy_json(stored(server, plural))
        edit(obj["spec"])
        answer = await http("PUT", f"{CRD_PATH}/{plural}.{GROUP}", obj)
        if answer.code != 409:
            break
    assert answer.code == code, answer.body
    made: Obj = answer.json()
    return made


async def test_a_definition_gets_its_defaults(http: Http) -> None:
    made = (await http("POST", CRD_PATH, crd())).json()
    assert made["spec"]["names"] == {
        "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList",
    }  # fmt: skip
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["metadata"]["generation"] == 1
    assert made["status"]["storedVersions"] == ["v1"]


async def test_a_definition_is_accepted_and_then_established(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd(shortNames=["th"], categories=["all"]))
    status = stored(server)["status"]
    shown = [(c["type"], c["status"], c["reason"], c["message"]) for c in status["conditions"]]
    assert shown == [
        ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    assert all(c["lastTransitionTime"] for c in status["conditions"])
    assert status["acceptedNames"] == {
        "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList",
        "shortNames": ["th"], "categories": ["all"],
    }  # fmt: skip
    assert "finalizers" not in stored(server)["metadata"]  # it gets one when its deletion begins


async def test_an_established_kind_is_served_discovered_and_documented(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd(shortNames=["th"]))
    listed = (await http("GET", path())).json()
    assert (listed["kind"], listed["apiVersion"], listed["items"]) == ("ThingList", f"{GROUP}/v1", [])
    [resource] = (await http("GET", f"/apis/{GROUP}/v1")).json()["resources"]
    assert (resource["name"], resource["kind"], resource["shortNames"]) == ("things", "Thing", ["th"])
    assert f"apis/{GROUP}/v1" in (await http("GET", "/openapi/v3")).json()["paths"]
    assert (await http("POST", path(), thing("a"))).code == 201


@cases(
    (crd("seconds", "Second", singular="thing"), "SingularConflict", '"thing" is already in use'),
    (crd("seconds", "Second", shortNames=["th"]), "ShortNamesConflict", '"th" is already in use'),
    (crd("seconds", "Thing", singular="second", listKind="Seconds"), "KindConflict", '"Thing" is already in use'),
    (crd("seconds", "Second", listKind="ThingList"), "ListKindConflict", '"ThingList" is already in use'),
    (crd("th", "Second", singular="second"), "PluralConflict", '"th" is already in use'),
    ids=["singular", "short name", "kind", "list kind", "plural"],
)
async def test_names_in_use_are_not_accepted_until_they_are_free(
    other: Obj, reason: str, message: str, server: ApiServer, http: Http
) -> None:
    await establish(server, http, crd(shortNames=["th"]))
    plural = other["spec"]["names"]["plural"]
    assert (await http("POST", CRD_PATH, other)).code == 201
    await eventually(lambda: "NamesAccepted" in conditions(server, plural))
    assert conditions(server, plural) == {
        "NamesAccepted": ("False", reason, message),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    assert (await http("GET", path(plural=plural))).code == 404
    assert (await http("DELETE", f"{CRD_PATH}/things.{GROUP}")).code == 200
    await eventually(lambda: conditions(server, plural).get("Established", ("",))[0] == "True")
    await eventually(lambda: server.registry.get(GVR(GROUP, "v1", plural)))
    assert (await http("GET", path(plural=plural))).code == 200


async def test_the_same_names_in_another_group_are_no_conflict(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd())
    other = crd()
    other["metadata"]["name"] = "things.other.example.com"
    other["spec"]["group"] = "other.example.com"
    assert (await http("POST", CRD_PATH, other)).code == 201
    await eventually(lambda: server.registry.get(GVR("other.example.com", "v1", "things")))


async def test_a_definition_that_does_not_get_its_names_can_be_deleted(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd())
    await http("POST", CRD_PATH, crd("seconds", "Thing", singular="second", listKind="Seconds"))
    await eventually(lambda: "NamesAccepted" in conditions(server, "seconds"))
    assert (await http("DELETE", f"{CRD_PATH}/seconds.{GROUP}")).code == 200
    await eventually(lambda: stored(server, "seconds") is None)
    assert (await http("GET", path())).code == 200


async def test_deleting_a_definition_deletes_its_objects_and_then_it(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd())
    for number in range(30):
        assert (await http("POST", path(), thing(f"t{number}"))).code == 201
    answer = await http("DELETE", f"{CRD_PATH}/things.{GROUP}")
    assert answer.code == 200
    assert "deletionTimestamp" in answer.json()["metadata"]
    await eventually(lambda: stored(server) is None)
    gone = await http("GET", path())
    assert (gone.code, gone.body) == (404, b"404 page not found\n")
    assert gone.headers["Content-Type"] == "text/plain; charset=utf-8"
    await establish(server, http, crd())
    assert (await http("GET", path())).json()["items"] == []


async def test_objects_with_finalizers_hold_their_definition_and_nothing_new_comes(
    server: ApiServer, http: Http, client: Client
) -> None:
    await establish(server, http, crd())
    await http("POST", path(), thing("held", finalizers=["example.com/hold"]))
    await http("DELETE", f"{CRD_PATH}/things.{GROUP}")
    in_progress = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    await eventually(lambda: conditions(server).get("Terminating") == in_progress)
    await eventually(lambda: "deletionTimestamp" in held(server)["metadata"])
    refused = await http("POST", path(), thing("late"))
    assert refused.code == 403
    assert "create not allowed while custom resource definition is terminating" in refused.json()["message"]
    assert (await http("GET", path(name="held"))).code == 200
    patch = {"metadata": {"finalizers": None}}
    done = await http("PATCH", path(name="held"), patch, content_type="application/merge-patch+json")
    assert done.code == 200
    await eventually(lambda: stored(server) is None)


def held(server: ApiServer) -> Obj:
    return server.cache.get(GVR(GROUP, "v1", "things").group_resource, "default", "held") or {"metadata": {}}


async def test_a_watch_sees_every_deletion_before_its_definition_goes(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd())
    for number in range(5):
        await http("POST", path(), thing(f"t{number}"))
    async with http.stream(f"{path()}?watch=true") as response:
        for _ in range(5):
            assert json.loads(await response.content.readline())["type"] == "ADDED"
        await http("DELETE", f"{CRD_PATH}/things.{GROUP}")
        rest = [json.loads(line) async for line in response.content]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in rest] == [
        ("DELETED", f"t{number}") for number in range(5)
    ]


async def test_cluster_scoped_kinds_live_outside_namespaces(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd(scope="Cluster"))
    assert (await http("POST", f"/apis/{GROUP}/v1/things", thing("a"))).code == 201
    assert (await http("GET", path())).code == 404
    await http("DELETE", f"{CRD_PATH}/things.{GROUP}")
    await eventually(lambda: stored(server) is None)


# versions


async def test_versions_can_be_added_served_and_hidden(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd())
    await http("POST", path(), thing("a"))
    await change(server, http, "things", lambda spec: spec["versions"].append(version("v2", storage=False)))
    await eventually(lambda: server.registry.get(GVR(GROUP, "v2", "things")))
    second = (await http("GET", path("v2", "a"))).json()
    assert second["apiVersion"] == f"{GROUP}/v2"
    first = (await http("GET", path("v1", "a"))).json()
    assert first["metadata"] == second["metadata"]
    groups = (await http("GET", f"/apis/{GROUP}")).json()
    assert [v["version"] for v in groups["versions"]] == ["v2", "v1"]
    assert groups["preferredVersion"]["version"] == "v2"
    await change(server, http, "things", lambda spec: spec["versions"][0].update(served=False))
    await eventually(lambda: server.registry.get(GVR(GROUP, "v1", "things")) is None)
    hidden = await http("GET", path("v1", "a"))
    assert (hidden.code, hidden.body) == (404, b"404 page not found\n")
    assert (await http("GET", path("v2", "a"))).code == 200


async def test_changing_the_storage_version_is_remembered_until_status_says_otherwise(
    server: ApiServer, http: Http
) -> None:
    await establish(server, http, crd("things", "Thing", version("v1"), version("v2", storage=False)))

    def swap(spec: Obj) -> None:
        spec["versions"][0]["storage"], spec["versions"][1]["storage"] = False, True

    await change(server, http, "things", swap)
    await eventually(lambda: stored(server)["status"]["storedVersions"] == ["v1", "v2"])
    refused = await change(server, http, "things", lambda spec: spec["versions"].pop(0), code=422)
    assert refused["details"]["causes"][0]["field"] == "status.storedVersions[0]"
    obj = copy_json(stored(server))
    obj["status"]["storedVersions"] = ["v2"]
    assert (await http("PUT", f"{CRD_PATH}/things.{GROUP}/status", obj)).code == 200
    await change(server, http, "things", lambda spec: spec["versions"].pop(0))
    await eventually(lambda: server.registry.get(GVR(GROUP, "v1", "things")) is None)
    assert stored(server)["status"]["storedVersions"] == ["v2"]


async def test_an_object_stored_in_one_version_is_read_written_and_watched_in_another(
    server: ApiServer, http: Http
) -> None:
    await establish(server, http, crd("things", "Thing", version("v1"), version("v2", storage=False)))
    async with http.stream(f"{path('v2')}?watch=true") as response:
        made = (await http("POST", path("v1"), {**thing("a"), "spec": {"n": 1}})).json()
        event = json.loads(await response.content.readline())
        assert event["object"]["apiVersion"] == f"{GROUP}/v2"
        assert event["object"]["metadata"]["uid"] == made["metadata"]["uid"]
        body = (await http("GET", path("v2", "a"))).json()
        body["spec"]["n"] = 2
        assert (await http("PUT", path("v2", "a"), body)).json()["apiVersion"] == f"{GROUP}/v2"
        event = json.loads(await response.content.readline())
        assert (event["type"], event["object"]["spec"]) == ("MODIFIED", {"n": 2})
    assert (await http("GET", path("v1", "a"))).json()["spec"] == {"n": 2}
    listed = (await http("GET", path("v2"))).json()
    assert listed["apiVersion"] == f"{GROUP}/v2"
    assert [o["apiVersion"] for o in listed["items"]] == [f"{GROUP}/v2"]


async def test_objects_of_a_definition_without_served_versions_go_with_it(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd())
    await http("POST", path(), thing("hidden"))
    await change(server, http, "things", lambda spec: spec["versions"][0].update(served=False))
    await eventually(lambda: server.registry.get(GVR(GROUP, "v1", "things")) is None)
    await http("DELETE", f"{CRD_PATH}/things.{GROUP}")
    await eventually(lambda: stored(server) is None)
    await establish(server, http, crd())
    assert (await http("GET", path())).json()["items"] == []


# changes


async def test_what_must_not_change_is_refused(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd())
    scope = await change(server, http, "things", lambda spec: spec.update(scope="Cluster"), code=422)
    assert [c["field"] for c in scope["details"]["causes"]] == ["spec.scope"]
    assert "field is immutable" in scope["message"]
    group = await change(server, http, "things", lambda spec: spec.update(group="else.example.com"), code=422)
    assert "spec.group" in [c["field"] for c in group["details"]["causes"]]


async def test_defaults_added_to_a_schema_reach_objects_that_exist(server: ApiServer, http: Http) -> None:
    spec_schema: Obj = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec_schema}}
    await establish(server, http, crd("things", "Thing", {**version(), "schema": {"openAPIV3Schema": schema}}))
    await http("POST", path(), {**thing("old"), "spec": {"a": "x"}})

    def edit(spec: Obj) -> None:
        properties = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["b"] = {"type": "string", "default": "given"}

    await change(server, http, "things", edit)

    async def shown() -> Obj:
        found: Obj = (await http("GET", path(name="old"))).json()["spec"]
        return found

    for _ in range(200):
        if await shown() == {"a": "x", "b": "given"}:
            break
        await asyncio.sleep(0)
    assert await shown() == {"a": "x", "b": "given"}


async def test_a_change_of_short_names_shows_in_discovery(server: ApiServer, http: Http) -> None:
    await establish(server, http, crd(shortNames=["th"]))
    await change(server, http, "things", lambda spec: spec["names"].update(shortNames=["tg"]))
    await eventually(lambda: stored(server)["status"]["acceptedNames"]["shortNames"] == ["tg"])
    await eventually(lambda: server.registry.get(GVR(GROUP, "v1", "things")).short_names == ("tg",))
    [resource] = (await http("GET", f"/apis/{GROUP}/v1")).json()["resources"]
    assert resource["shortNames"] == ["tg"]


@cases(
    (lambda o: o["metadata"].update(name="x.y"),
     'metadata.name: Invalid value: "x.y": must be spec.names.plural+"."+spec.group'),
    (lambda o: o["spec"]["versions"][0].pop("schema"),
     "spec.versions[0].schema.openAPIV3Schema: Required value"),
    (lambda o: o["spec"].update(preserveUnknownFields=True), "spec.preserveUnknownFields: Invalid value: true"),
    (lambda o: o["spec"]["versions"].append(version("v2")),
     "must have exactly one version marked as storage version"),
    (lambda o: o["spec"]["versions"].append(version("v1", storage=False)), "spec.versions"),
    ids=["name", "schema", "preserve", "two storage versions", "version twice"],
)  # fmt: skip
async def test_definitions_that_make_no_sense_are_refused(edit: Any, message: str, http: Http) -> None:
    definition = crd()
    edit(definition)
    answer = await http("POST", CRD_PATH, definition)
    assert answer.code == 422
    assert message in answer.json()["message"]


async def test_protected_groups_need_approval(server: ApiServer, http: Http) -> None:
    definition = crd()
    definition["metadata"]["name"] = "things.example.k8s.io"
    definition["spec"]["group"] = "example.k8s.io"
    refused = await http("POST", CRD_PATH, definition)
    assert refused.code == 422
    field = "metadata.annotations[api-approved.kubernetes.io]"
    assert f"{field}: Required value: protected groups must have approval annotation" in refused.json()["message"]
    definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    assert (await http("POST", CRD_PATH, definition)).code == 201

    def approval() -> str:
        found = server.cache.get(CRDS.group_resource, "", "things.example.k8s.io") or {}
        conditions = {c["type"]: c for c in found.get("status", {}).get("conditions") or []}
        return str(conditions.get("KubernetesAPIApprovalPolicyConformant", {}).get("reason", ""))

    await eventually(lambda: approval() == "UnapprovedAnnotation", show=approval)


async def test_definitions_are_served_again_after_a_restart(server: ApiServer, http: Http, client: Client) -> None:
    """What a start does with definitions that are there: the registry is filled before the port opens."""
    await establish(server, http, crd())
    await server.custom_resources.stop()
    served = server.registry.get(GVR(GROUP, "v1", "things"))
    assert served is not None
    server.registry.remove([served])
    server.custom_resources._served.clear()
    await server.custom_resources.start()
    assert (await http("GET", path())).code == 200
