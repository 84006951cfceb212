"""karmadactl's ways of changing things are kubectl's: the same words, the same effects, the same errors.

Each scenario runs twice, by kubectl and by karmadactl, each in a namespace of its own, and compared.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.gvrs import DEPLOYMENTS, NAMESPACES
from tests.e2e.beside_kubectl import in_our_words
from tests.e2e.pasting import blocks
from tests.e2e.places import Place
from tests.e2e.propagating import CONFIG_MAPS
from tests.support import forking
from tests.support.karmadactl import Karmadactl
from tests.support.programs import Program, Result, ServerProcess

pytestmark = pytest.mark.e2e

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\n"
FILES = {
    "configs": """
apiVersion: v1
kind: ConfigMap
metadata: {name: there}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: new, labels: {app: web}}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Not Good}
---
apiVersion: nope.io/v1
kind: Foo
metadata: {name: foo}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed}}
""",
    "odd": CONFIG_MAP.format("odd") + "dataa: {a: b}\n",
    "placed": CONFIG_MAP.format("placed, namespace: default"),
    "invalid": CONFIG_MAP.format("Not Good"),
    "nothing": "",
    "noapi": "kind: A\nmetadata: {name: a}",
    "patch": "data: {from: file}",
}
STORIES = {
    "create from files": """
        create -f configs.yaml
        create -f configs.yaml --dry-run=client
        create -f placed.yaml -f odd.yaml -l app=web
        create -f odd.yaml
        create -f odd.yaml --validate=warn
        create -f odd.yaml --validate=ignore
        create -f placed.yaml
        create -f invalid.yaml
        create -f invalid.yaml -o name --dry-run=client
        create -f nothing.yaml
        create -f empty
        create -f noapi.yaml
        create
        create -f configs.yaml -k inner
        create --raw /x -f a -f b
    """,
    "label": """
        create cm c1
        create cm c2 --from-literal=a=b
        create deploy web --image=nginx
        label
        label cm
        label cm c1
        label cm c1 a
        label cm c1 a=b
        label cm c1 a=b
        label cm c1 a=c
        label cm c1 c2 a=c
        label cm c1 a=c --overwrite
        label cm c1 b=longer
        label cm c1 b-
        label cm c1 b-
        label cm c1 a=b a-
        label cm c1 a/b/c=d
        label cm c1 a=_
        label cm nope a=b
        label cm c1 nope q=b
        label cm -l a=c z=1
        label cm/c1 deploy/web q=1
        label cm c1 --list -l x=y
        label deploy web x=y --list
        label cm c1 m=1 --dry-run=client
        label cm c1 m=1 --dry-run=server
        label cm c1 m=1 -o name
        label cm c1 m=2 --resource-version=1 --overwrite
        label cm c1 c2 m=2 --resource-version=1 --overwrite
        label -f odd.yaml f=1
        label -f invalid.yaml f=1
        label -f odd.yaml f=1 --local -o yaml
        label -f odd.yaml f=1 --local
        label --local cm c1 a=b
        label foo c1 a=b
        label cm c1 a=b foo
        label cm -l app=none a=b
        label cm --all --list -l x=y
        label cm --field-selector metadata.name=c1 w=2
        label cm --all a=c
    """,
    "annotate": """
        create cm c1
        create cm c2
        annotate
        annotate cm c1
        annotate cm c1 a=b
        annotate cm c1 a=b
        annotate cm c1 a=c
        annotate cm c1 a=c b=1 --overwrite
        annotate cm c1 a=1 b=2
        annotate cm c1 a-
        annotate cm c1 a-
        annotate cm c1 x=y --list
        annotate cm c1 a/b/c=x
        annotate cm c1 a=b a-
        annotate cm c1 z
        annotate cm c1 q=1 --dry-run=client
        annotate cm c1 x=y=z b-
        annotate -f odd.yaml g=1 --local -o yaml
        annotate cm --all
        annotate cm c1 c2 m=2 --resource-version=1
    """,
    "patch": """
        create cm c1
        create cm c2
        create deploy web --image=nginx
        patch
        patch cm c1
        patch cm c1 -p {"data":{"a":"b"}}
        patch cm c1 -p {"data":{"a":"b"}}
        patch cm c1 -p data:~{a:~c}
        patch cm c1 --type=foo -p {}
        patch cm c1 --type=json -p [{"op":"add","path":"/data","value":{"x":"1"}}]
        patch cm c1 --type=json -p [{"op":"test","path":"/data/x","value":"2"}]
        patch cm c1 --type=merge -p {"data":{"x":null}} -o jsonpath={.data}
        patch cm c1 -p {"data":{"q":"b"}} --dry-run=server -o jsonpath={.data}
        patch cm c1 -p {"data":{"q":"b"}} --dry-run=client -o jsonpath={.data}
        patch -f odd.yaml --local -p {"data":{"q":"b"}} -o yaml
        patch -f odd.yaml --local -p {"data":{"q":"b"}}
        patch cm c1 --local -p {}
        patch cm c1 c2 -p {"data":{"multi":"b"}}
        patch cm/c1 cm/c2 deploy/web -p {"metadata":{"labels":{"multi":"b"}}}
        patch cm nope -p {}
        patch cm c1 --patch-file=none
        patch cm c1 --patch-file=patch.yaml
        patch cm c1 -p {} --patch-file=x
        patch deploy web --subresource=scale --type=merge -p {"spec":{"replicas":2}}
        patch deploy web -p {"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"b"}]}}}}
        patch cm -p {}
        patch foo x -p {}
        patch cm c1 --type=json -p {}
        patch cm c1 -p {"dataa":{}}
    """,
    "delete": """
        create cm a
        create cm b
        create cm c
        create cm d
        create cm e
        delete
        delete cm
        delete cm nope
        delete cm nope --ignore-not-found
        delete cm nope a
        delete cm/b
        delete cm c --dry-run=client
        delete cm c --dry-run=server
        delete cm --all -l a=b --field-selector=x=y
        delete cm -l nope=1
        delete pods --all
        delete cm c --force
        delete cm c --now --grace-period=1
        delete cm d --force --grace-period=1
        delete cm d --cascade=foo
        delete cm d --cascade=orphan -o name
        delete cm e -o json
        delete cm e --all
        delete cm e -l a=b
        delete cm e -A
        delete cm --field-selector metadata.name=e
        delete foo bar
        delete cm m1 deploy/web
        create -f configs.yaml
        delete -f configs.yaml
        delete -f nothing.yaml
        delete -f odd.yaml --ignore-not-found
        delete -f odd.yaml
        delete cm --all --dry-run=client
        delete secrets,cm -l app=none
    """,
}


@pytest.fixture(scope="module")
def karmadactl(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Karmadactl:
    return Karmadactl(tmp_path_factory.mktemp("karmadactl-home"), server.kubeconfig)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that the commands read."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text)
    (folder / "empty").mkdir()
    return folder


@pytest.mark.parametrize("story", STORIES)
def test_the_same_commands_say_and_do_the_same(
    story: str, kubectl: Program, karmadactl: Karmadactl, place: Place, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    lines = STORIES[story].strip().splitlines()
    theirs, ours = (f"{who}-{story.replace(' ', '-')}" for who in ("kubectl", "karmadactl"))
    for namespace in (theirs, ours):
        place.create(NAMESPACES, {"metadata": {"name": namespace}})
        place.create(CONFIG_MAPS, {"metadata": {"name": "there"}}, namespace)
    with ThreadPoolExecutor(1) as other:
        running = other.submit(output, lambda *words: kubectl(*words, check=False), lines, theirs)
        found = output(lambda *words: karmadactl(*words, check=False), lines, ours)
        expected = running.result()
    states = [state(place, namespace) for namespace in (theirs, ours)]
    for namespace in (theirs, ours):
        place.delete(NAMESPACES, namespace)
    differing = [
        f"{line.strip()}\n  kubectl    {one}\n  karmadactl {other}"
        for line, one, other in zip(lines, expected, found, strict=True)
        if one != other
    ]
    assert not differing, "\n".join(differing)
    assert states[0] == states[1]


def output(program: Callable[..., Result], lines: list[str], namespace: str) -> list[tuple[int, str, str]]:
    """What a program answers to the lines; `~` in a line is a blank inside a word."""
    answers = []
    for line in lines:
        answer = program(*(word.replace("~", " ") for word in line.split()), "-n", namespace)
        answers.append((answer.code, plain(answer.out, namespace), plain(answer.err, namespace)))
    return answers


def plain(text: str, namespace: str) -> str:
    """Without what must differ; lines may come in any order."""
    return "\n".join(sorted(in_our_words(text).replace(namespace, "NAMESPACE").splitlines()))


def state(place: Place, namespace: str) -> list[Any]:
    """What is left in the namespace, and who wrote it."""
    items = place.list(CONFIG_MAPS, namespace) + place.list(DEPLOYMENTS, namespace)
    return [
        {
            "name": item["metadata"]["name"],
            "labels": item["metadata"].get("labels"),
            "annotations": item["metadata"].get("annotations"),
            "content": item.get("data") or item.get("spec"),
            "managers": sorted(entry["manager"] for entry in item["metadata"].get("managedFields") or ()),
        }
        for item in items
    ]


# the page on it


def test_the_page_on_changing_resources_can_be_pasted(server: ServerProcess, tmp_path: Path) -> None:
    said = pasted(Path(__file__).parents[2] / "docs/changing-resources.md", server, tmp_path)
    assert "Error from server (AlreadyExists)" in said
    said = said.replace('Error from server (AlreadyExists): error when creating "STDIN"', "")
    assert "rror" not in said, said
    for expected in (
        "deployment.apps/web created",
        "deployment.apps/web configured",
        "scale.autoscaling/web patched",
        "configmap/settings edited",
        'namespace "shop" deleted',
    ):
        assert f"{expected}\n" in said


def pasted(page: Path, server: ServerProcess, home: Path) -> str:
    """Everything that a shell said to the page's lines."""
    text = "".join(blocks(page, "sh"))
    tools = forking.shell_path()
    env = {**os.environ, "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "PATH": tools}
    done = subprocess.run(
        ["bash"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, cwd=home,
        timeout=120, check=False,
    )  # fmt: skip
    return done.stdout
