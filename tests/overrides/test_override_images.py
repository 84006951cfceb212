"""Image references and the overrider of images."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.types import Obj
from karmada.overrides.errors import CannotApply, OverrideError
from karmada.overrides.image import Image, parse_image, rewritten
from tests.support.cases import cases
from tests.support.overriding import container, containers_of, deployment, overridden

HEX = "0123456789abcdef" * 4
DIGEST = f"sha256:{HEX}"
EXAMPLE = "fictional.registry.example/imagename:v1.0.0"


@cases(
    (EXAMPLE, "Registry", "add", ".test", "fictional.registry.example.test/imagename:v1.0.0"),
    (EXAMPLE, "Registry", "replace", "fictional.registry.us", "fictional.registry.us/imagename:v1.0.0"),
    (EXAMPLE, "Registry", "remove", "", "imagename:v1.0.0"),
    ("nginx:1.19", "Registry", "add", "reg.io:5000", "reg.io:5000/nginx:1.19"),
    ("nginx:1.19", "Registry", "replace", "reg.io:5000", "reg.io:5000/nginx:1.19"),
    ("myapp:1.0.0", "Registry", "add", "test-repo", "test-repo/myapp:1.0.0"),
    (EXAMPLE, "Repository", "add", "/sub", "fictional.registry.example/imagename/sub:v1.0.0"),
    (EXAMPLE, "Repository", "replace", "other/name", "fictional.registry.example/other/name:v1.0.0"),
    (EXAMPLE, "Repository", "remove", "", "fictional.registry.example/:v1.0.0"),
    (EXAMPLE, "Tag", "add", f"@{DIGEST}", EXAMPLE),
    (EXAMPLE, "Tag", "add", DIGEST, EXAMPLE),
    ("img:latest", "Tag", "add", DIGEST, f"img@latest{DIGEST}"),
    (EXAMPLE, "Tag", "replace", DIGEST, f"fictional.registry.example/imagename@{DIGEST}"),
    (EXAMPLE, "Tag", "remove", "", "fictional.registry.example/imagename"),
    (f"reg:5000/a/b@{DIGEST}", "Tag", "replace", "v2", "reg:5000/a/b:v2"),
    (f"reg:5000/a/b@{DIGEST}", "Tag", "remove", "", "reg:5000/a/b"),
    ("nginx", "Tag", "add", "1.2", "nginx:1.2"),
    ("nginx:1", "Tag", "add", "-alpine", "nginx:1-alpine"),
    (f"nginx@{DIGEST}", "Tag", "add", "ab", f"nginx@{DIGEST}ab"),
    (f"nginx@{DIGEST}", "Tag", "add", "-x", f"nginx@{DIGEST}"),
    ("nginx", "Tag", "remove", "", "nginx"),
    ("nginx:1", "Tag", "replace", "not a tag", "nginx:1"),
    ("nginx:1", "Tag", "replace", "t" * 129, "nginx:1"),
    ("subpath/imagename:v1", "Registry", "remove", "", "subpath/imagename:v1"),
    (f"nginx:1.0@{DIGEST}", "Registry", "add", "r.io", "r.io/nginx:1.0"),
    (f"nginx:1.0@{DIGEST}", "Tag", "remove", "", "nginx"),
    ("localhost/nginx", "Registry", "replace", "r.io", "r.io/nginx"),
    ("[fd00::1]:5000/nginx", "Registry", "remove", "", "nginx"),
    (EXAMPLE, "Registry", "remove", "ignored", "imagename:v1.0.0"),
)
def test_a_part_of_an_image_is_changed(image: str, component: str, operator: str, value: str, expected: str) -> None:
    assert rewritten(image, component, operator, value) == expected


@cases(
    ("a", ("", "a", "", "")),
    ("a/b/c", ("", "a/b/c", "", "")),
    ("a.b/c", ("a.b", "c", "", "")),
    ("a:80/b", ("a:80", "b", "", "")),
    ("localhost/a", ("localhost", "a", "", "")),
    ("localhost", ("", "localhost", "", "")),
    ("a:80", ("", "a", "80", "")),
    ("Reg.IO/a", ("Reg.IO", "a", "", "")),
    ("a__b.c-d--e_f", ("", "a__b.c-d--e_f", "", "")),
    (f"a@{DIGEST}", ("", "a", "", DIGEST)),
    (f"a:t@{DIGEST}", ("", "a", "t", "")),
    (f"r.io:1/a/b:t@{DIGEST}", ("r.io:1", "a/b", "t", "")),
    ("a:" + "t" * 128, ("", "a", "t" * 128, "")),
    ("r.io/" + "a" * 255, ("r.io", "a" * 255, "", "")),
    (f"a@sha512:{HEX * 2}", ("", "a", "", f"sha512:{HEX * 2}")),
)
def test_an_image_has_parts(text: str, parts: tuple[str, str, str, str]) -> None:
    assert parse_image(text) == Image(*parts)


@cases(
    ("", "repository name must have at least one component"),
    ("Nginx", "repository name must be lowercase"),
    ("r.io/Team/App:V1", "repository name must be lowercase"),
    ("r.io/" + "a" * 256, "repository name must not be more than 255 characters"),
    ("a:" + "t" * 129, "invalid reference format"),
    ("a:", "invalid reference format"),
    ("a@", "invalid reference format"),
    ("/a", "invalid reference format"),
    ("a/", "invalid reference format"),
    ("a//b", "invalid reference format"),
    ("a b", "invalid reference format"),
    ("a\n", "invalid reference format"),
    ("https://r.io/a", "invalid reference format"),
    ("-a", "invalid reference format"),
    ("a___b", "invalid reference format"),
    ("a..b", "invalid reference format"),
    ("r_o.io:80/a", "invalid reference format"),
    ("a@sha256:abc", "invalid reference format"),
    (f"a@{DIGEST}:t", "invalid reference format"),
    ("a:é", "invalid reference format"),
    (f"a@md5:{HEX[:32]}", "unsupported digest algorithm"),
    (f"a@SHA256:{HEX}", "invalid checksum digest format"),
    (f"a@sha256:{HEX}00", "invalid checksum digest length"),
    (f"a@sha512:{HEX}", "invalid checksum digest length"),
    (f"a@sha256:{HEX.upper()}", "invalid checksum digest format"),
)
def test_what_is_no_image_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        parse_image(text)
    with pytest.raises(CannotApply) as refused:
        rewritten(text, "Tag", "remove", "")
    assert str(refused.value) == f"failed to parse image value({text}), error: {why}"


# --- against a parser that works part by part, without regular expressions ------------------------------------------

ALNUM = frozenset(string.ascii_letters + string.digits)
LOWER = frozenset(string.ascii_lowercase + string.digits)


def is_label(text: str) -> bool:
    return bool(text) and set(text) <= ALNUM | {"-"} and text[0] != "-" and text[-1] != "-"


def is_host(text: str) -> bool:
    if text.startswith("["):
        address, bracket, port = text[1:].partition("]")
        if not bracket or not address or not set(address) <= frozenset(string.hexdigits + ":"):
            return False
        return not port or (port[0] == ":" and len(port) > 1 and set(port[1:]) <= set(string.digits))
    host, colon, port = text.partition(":")
    if colon and not (port and set(port) <= set(string.digits)):
        return False
    return all(map(is_label, host.split(".")))


def is_path_part(text: str) -> bool:
    """Runs of lower-case letters and digits, with one separator between each two."""
    runs: list[str] = []
    between: list[str] = []
    for character in text:
        here = runs if character in LOWER else between
        fresh = (character in LOWER) != (bool(runs) and len(runs) > len(between))
        if not runs and character not in LOWER:
            return False
        if fresh:
            here.append(character)
        else:
            here[-1] += character
    separators_fit = all(s in (".", "_", "__") or set(s) == {"-"} for s in between)
    return len(runs) == len(between) + 1 and separators_fit


def is_tag(text: str) -> bool:
    allowed = ALNUM | {"_", ".", "-"}
    return 1 <= len(text) <= 128 and set(text) <= allowed and text[0] not in ".-"


def is_digest(text: str) -> bool:
    lengths = {"sha256": 64, "sha384": 96, "sha512": 128}
    algorithm, _, checksum = text.partition(":")
    return lengths.get(algorithm) == len(checksum) and set(checksum) <= frozenset("0123456789abcdef")


def strict(text: str) -> Image | None:
    rest, at, digest = text.partition("@")
    if at and not is_digest(digest):
        return None
    colon = rest.rfind(":")
    tag = ""
    if colon > rest.rfind("/"):
        rest, tag = rest[:colon], rest[colon + 1 :]
        if not is_tag(tag):
            return None
    parts = rest.split("/")
    with_host = len(parts) > 1 and is_host(parts[0])
    paths = parts[1:] if with_host else parts
    if not all(map(is_path_part, paths)) or len("/".join(paths)) > 255:
        return None
    first = parts[0]
    if len(parts) > 1 and ("." in first or ":" in first or first == "localhost"):
        return Image(first, "/".join(parts[1:]), tag, "" if tag else digest)
    return Image("", rest, tag, "" if tag else digest)


def parsed(text: str) -> Image | None:
    try:
        return parse_image(text)
    except ValueError:
        return None


hosts = st.sampled_from(["r.io", "localhost", "reg", "A-b.C", "127.0.0.1", "[::1]", "-x.io", "a..b", "x_y.io", "[zz]"])
ports = st.sampled_from(["", ":80", ":5000", ":", ":x"])
path_parts = st.text("ab1._-", min_size=0, max_size=6) | st.sampled_from(["app", "team", "x__y", "A", "a" * 250])
tags = st.sampled_from(["", ":v1", ":1.0-rc_1", ":", ":.x", ":" + "t" * 128, ":" + "t" * 129, ":é"])
digests = st.sampled_from(
    ["", f"@{DIGEST}", f"@sha512:{HEX * 2}", f"@sha384:{HEX}{HEX[:32]}", "@", f"@sha1:{HEX}", f"@{DIGEST.upper()}"]
)


@st.composite
def references(draw: st.DrawFn) -> str:
    host = draw(hosts) + draw(ports) + "/" if draw(st.booleans()) else ""
    path = "/".join(draw(st.lists(path_parts, min_size=1, max_size=3)))
    return host + path + draw(tags) + draw(digests)


@settings(max_examples=1000)
@given(references() | st.text("aA0.:/@_-[] ", max_size=14))
def test_parsing_agrees_with_a_parser_of_another_make(text: str) -> None:
    assert parsed(text) == strict(text)


@settings(max_examples=200)
@given(references())
def test_an_image_put_together_again_is_the_same_image(text: str) -> None:
    image = parsed(text)
    if image is not None:
        assert parse_image(str(image)) == image


@given(references(), st.sampled_from(["Registry", "Repository", "Tag"]), st.text("ab.:/-", max_size=5))
def test_replacing_twice_is_replacing_once(text: str, component: str, value: str) -> None:
    image = parsed(text)
    if image is None:
        return
    once = rewritten(text, component, "replace", value)
    if parsed(once) is not None and (component != "Registry" or "." in value):
        assert rewritten(once, component, "replace", value) == once


# --- the overrider ---------------------------------------------------------------------------------------------------


def tag_to(value: str, **more: Any) -> Obj:
    return {"component": "Tag", "operator": "replace", "value": value, **more}


@cases("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job")
def test_images_of_all_containers_of_a_workload_are_changed(kind: str) -> None:
    obj = {**deployment(container("a", "x:1"), container("b", "y:2")), "kind": kind, "apiVersion": "any/v9"}
    made = overridden(obj, imageOverrider=[tag_to("3")])
    assert [found["image"] for found in containers_of(made)] == ["x:3", "y:3"]


def pod(**spec: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}


def test_other_containers_of_a_pod_are_left_alone() -> None:
    obj = pod(containers=[container()], initContainers=[container()], ephemeralContainers=[container()])
    made = overridden(obj, imageOverrider=[tag_to("3")])
    assert made["spec"] == {**obj["spec"], "containers": [container(image="nginx:3")]}


@cases("CronJob", "CloneSet", "ConfigMap")
def test_other_kinds_are_left_alone(kind: str) -> None:
    obj = {**deployment(), "kind": kind}
    assert overridden(obj, imageOverrider=[tag_to("3")]) is obj


@cases({}, {"template": None}, {"template": {"spec": {"containers": []}}})
def test_a_workload_without_containers_stays_as_it_is(spec: Obj) -> None:
    obj = {**deployment(), "spec": spec}
    assert overridden(obj, imageOverrider=[tag_to("3")]) is obj


@cases(
    ({"template": {"spec": {"containers": "many"}}}, "many is of the type string, expected []interface {}"),
    ({"template": "none"}, "none is of the type string, expected map[string]interface {}"),
    ({"template": {"spec": {"containers": ["x"]}}}, "cannot read the image"),
    ({"template": {"spec": {"containers": [{"image": 7}]}}}, "cannot read the image"),
)
def test_a_workload_of_another_shape_is_refused(spec: Obj, why: str) -> None:
    with pytest.raises(OverrideError) as refused:
        overridden({**deployment(), "spec": spec}, imageOverrider=[tag_to("3")])
    assert "failed to convert Deployment from unstructured object: " in refused.value.why
    assert why in refused.value.why


def test_a_container_without_an_image_is_an_error() -> None:
    with pytest.raises(OverrideError, match=r"failed to parse image value\(\), error: repository name must have at"):
        overridden(deployment({"name": "web"}), imageOverrider=[tag_to("3")])


def test_items_are_applied_one_after_the_other() -> None:
    items = [
        {"component": "Registry", "operator": "add", "value": "r"},
        {"component": "Registry", "operator": "add", "value": ".io"},
    ]
    made = overridden(deployment(container(image="r.eu/x:1")), imageOverrider=items)
    assert containers_of(made)[0]["image"] == "r.eur.io/x:1"


def test_an_unknown_component_or_operator_is_refused() -> None:
    with pytest.raises(OverrideError, match=r"unsupported image component\(Port\)"):
        overridden(deployment(), imageOverrider=[{"component": "Port", "operator": "add"}])
    with pytest.raises(OverrideError, match=r"unsupported operator\(swap\)"):
        overridden(deployment(), imageOverrider=[{"component": "Tag", "operator": "swap"}])


def at(path: str) -> Obj:
    return tag_to("3", predicate={"path": path})


def test_a_predicate_says_where_the_image_is_in_any_kind() -> None:
    obj = {**deployment(container("a"), container("b")), "kind": "CloneSet"}
    made = overridden(obj, imageOverrider=[at("/spec/template/spec/containers/1/image")])
    assert [found["image"] for found in containers_of(made)] == ["nginx:1.19", "nginx:3"]
    obj = pod(image="nginx:1", initContainers=[container()])
    assert overridden(obj, imageOverrider=[at("/spec/image")])["spec"]["image"] == "nginx:3"
    assert overridden(obj, imageOverrider=[at("/spec/initContainers/0/image")])["spec"]["initContainers"] == [
        container(image="nginx:3")
    ]


@cases(
    ("", "imagePath should be start with / character"),
    ("spec/image", "imagePath should be start with / character"),
    ("/spec/nothing", "failed to convert path(nothing) to string"),
    ("/spec/replicas", "failed to convert path(replicas) to string"),
    ("/spec/nothing/image", "path(nothing) of rawObj's type is not map[string]interface{} and []interface{}"),
    ("/spec/replicas/image", "path(replicas) of rawObj's type is not map[string]interface{} and []interface{}"),
    ("/spec/template/spec/containers/x/image", "path(x) of rawObj's is not number"),
    ("/spec/template/spec/containers/-1/image", "path(-1) of rawObj's is not number"),
    ("/spec/template/spec/containers/9/image", "path(9) of rawObj's is out of range"),
    ("/spec/template/spec/containers/0", "failed to convert path(0) to string"),
    (
        "/spec/template/spec/containers/0/args/0",
        "path(0) of rawObj's type is not map[string]interface{} and []interface{}",
    ),
)
def test_a_predicate_that_leads_nowhere_is_an_error(path: str, why: str) -> None:
    with pytest.raises(OverrideError) as refused:
        overridden(deployment(container(args=["x"])), imageOverrider=[at(path)])
    assert refused.value.why == f"failed to obtain imageValue with predicate path({path}), error: {why}"


def test_what_a_predicate_points_to_must_be_an_image() -> None:
    with pytest.raises(OverrideError, match=r"failed to parse image value\(Not an image\), error: invalid reference"):
        overridden(
            deployment(container(image="Not an image")), imageOverrider=[at("/spec/template/spec/containers/0/image")]
        )


def test_a_predicate_is_read_without_escapes_and_written_with_them() -> None:
    obj = pod(**{"a~1b": "nginx:1"})
    with pytest.raises(OverrideError, match="doc is missing key: /spec/a~1b: missing value"):
        overridden(obj, imageOverrider=[at("/spec/a~1b")])
    with pytest.raises(OverrideError, match="doc is missing path: /spec/template/spec/containers/0/image/: missing"):
        overridden(deployment(), imageOverrider=[at("/spec/template/spec/containers/0/image/")])
