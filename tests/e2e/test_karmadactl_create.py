"""What `karmadactl create` makes of its flags is what kubectl makes of them, and so is what it refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.beside_kubectl import in_our_words
from tests.support.karmadactl import Karmadactl
from tests.support.programs import Program, Result, ServerProcess

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def karmadactl(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Karmadactl:
    return Karmadactl(tmp_path_factory.mktemp("karmadactl-home"), server.kubeconfig)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that the commands read."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "app.env").write_text("# settings\nCOLOUR=blue\n  SIZE=large \nHOME\n\n")
    (folder / "bad.env").write_text("not good=1\n")
    (folder / "text.txt").write_text("two\nlines <&>\n")
    (folder / "binary").write_bytes(b"\xff\x00\x01")
    for name in ("inner", "inner/deeper", "spaced"):
        (folder / name).mkdir()
    for name in ("inner/one", "inner/two", "spaced/not a key"):
        (folder / name).write_text(name)
    (folder / "docker.json").write_text('{"auths":{}}')
    for name in ("tls", "other"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out",
             f"{name}.crt", "-subj", f"/CN={name}"], cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
    return folder


GENERATED = [
    "clusterrole r --verb=get,list,get --resource=pods,deploy,pods/log",
    "clusterrole r --verb=get --non-resource-url=/logs/*,/metrics",
    "clusterrole r --verb=get --resource=* --non-resource-url=/a",
    "clusterrole r --aggregation-rule=a=b,c=d",
    "clusterrolebinding b --clusterrole=x --user=a,b --user=c --group=d --serviceaccount=e:f",
    "clusterrolebinding b --clusterrole=x -n ignored",
    "cm c",
    "configmap c --from-literal=b=1 --from-literal=a='quoted' --from-literal=c=x=y -n other",
    "configmap c --from-file=text.txt --from-file=key=binary",
    "configmap c --from-file=inner --append-hash",
    "configmap c --from-file=binary --from-literal=html=<&> --append-hash",
    "configmap c --from-env-file=app.env",
    "configmap c --append-hash",
    "configmap c --from-literal=a=1 --save-config",
    "cronjob c --image=foo/bar:1 --schedule=*/5,*,*,*,*",
    "cj c --image=i --schedule=x --restart=Never -- a b --c",
    "deployment d --image=nginx:1.27",
    "deployment d --image=foo/bar@sha256:1 --image=registry:5000/x:2 --port=80 -r 0",
    "deploy d --image=i --replicas=3 --save-config -n other -- sh -c true",
    "ingress i --rule=foo.com/bar=svc1:8080,tls=cert --rule=foo.com/x*=svc:http --rule=/y=s:1 --rule=b.com/=s:2,tls",
    "ingress i --rule=a.com/*=s:1,tls=t --rule=b.com/*=s:1,tls=t --annotation=a=b --annotation=c= --class=nginx",
    "ing i --default-backend=svc:http",
    "job j --image=i",
    "job j --image=foo/bar -n x -- a -b",
    "namespace n",
    "ns n -n other --save-config",
    "pdb p --selector=a=b,c=d --min-available=1",
    "poddisruptionbudget p --selector=!b,c --max-unavailable=50%",
    "priorityclass p --value=3 --description=x --global-default",
    "pc p --preemption-policy=Never --value=-1",
    "quota q --hard=cpu=1,memory=1G,pods=1000m --scopes=BestEffort,Terminating",
    "resourcequota q",
    "role r --verb=get,list --resource=pods,deploy,pods/log,rs.apps --resource-name=a --resource-name=b",
    "role r --verb=*,get --resource=pods --resource=svc/* --resource=deployments.apps/scale -n x",
    "role r --verb=get --resource=*.apps",
    "role r --verb=frob --resource=*,pods",
    "rolebinding b --clusterrole=x",
    "rolebinding b --role=x --user=a --group=b --serviceaccount=c:d -n x",
    "secret generic s",
    "secret generic s --from-literal=a=b --from-file=binary --type=some/type --append-hash",
    "secret generic s --from-env-file=app.env -n x",
    "secret docker-registry s --docker-username=a --docker-password=<b> --docker-email=c@d --append-hash",
    "secret docker-registry s --docker-username=a --docker-password=b --docker-server=example.com",
    "secret docker-registry s --from-file=docker.json",
    "secret tls s --cert=tls.crt --key=tls.key --append-hash",
    "service clusterip s --tcp=80:8080 --tcp=443 --tcp=5:http",
    "svc clusterip s --clusterip=None",
    "service nodeport s --tcp=80 --node-port=30080",
    "service loadbalancer s --tcp=80,81 -n x",
    "service externalname s --external-name=foo.com --tcp=80",
    "serviceaccount s --save-config",
    "sa s -n x",
]
REFUSED = [
    "configmap", "configmap a b", "configmap a --from-literal=x", "configmap a --from-file=none",
    "configmap a --from-literal=a=1 --from-literal=a=2", "configmap a --from-file==x", "configmap a --from-file=x=",
    "configmap a --from-file=x=inner",
    "configmap a --from-file=spaced", "configmap a --from-file=a=b=c", "configmap a --from-env-file=bad.env",
    "configmap a --from-literal=a/b=1", "secret generic a --from-literal=a/b=1",
    "secret generic a --from-literal=a=1 --from-env-file=app.env", "secret foo", "frob", "role r", "role r --verb=get",
    "role r --verb=get --resource=pods.foo", "clusterrole r --verb=get --non-resource-url=foo",
    "clusterrole r --verb=get --non-resource-url=/a/*/b", "clusterrole r --verb=list --non-resource-url=/a",
    "clusterrole r --aggregation-rule=a=b --verb=get", "deployment x", "deployment x y",
    "deployment x --image=a --image=b -- date", "job j", "job j --image=a --from=cronjob/x", "job j --from=cronjob/x",
    "job j --from=nothing", "ingress i", "ingress i --rule=foo", "ingress i --rule=foo.com=svc:1",
    "ingress i --default-backend=d", "ingress i --rule=a.com/=s:1 --annotation=x", "pdb p", "pdb p --selector=a=b",
    "pdb p --selector=a=b --min-available=1 --max-unavailable=2", "service clusterip s", "service clusterip s --tcp=x",
    "service clusterip s --tcp=99999", "service clusterip s --tcp=80:99999", "service clusterip s --tcp=80:a_b",
    "service externalname s", "token", "token nobody", "quota q --hard=x", "quota q --hard=x=y", "namespace",
    "priorityclass", "clusterrolebinding x", "rolebinding x", "rolebinding x --role=a --clusterrole=b",
    "rolebinding x --role=a --serviceaccount=foo", "cronjob x", "cronjob x --image=a", "secret tls x",
    "secret tls x --cert=text.txt --key=tls.key", "secret tls x --cert=tls.crt --key=other.key",
    "secret tls x --cert=none --key=tls.key", "secret docker-registry x", "deployment x --image=a --dry-run=foo",
    "deployment x --image=a --validate=foo", "deployment X --image=a", "deployment x --image=a --frob",
    "deployment x --image=a -n nowhere", "deployment x --image=a --replicas=many", "-f none.yaml",
]  # fmt: skip


def arguments(line: str) -> list[str]:
    """Words of a table's line; blanks inside a word are written as commas in a schedule."""
    return [word.replace("*/5,*,*,*,*", "*/5 * * * *") for word in line.split()]


def data(result: Result) -> Any:
    """The objects of an answer; kubectl before 1.34 has times that are not there."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: clean(v) for k, v in value.items() if (k, v) != ("creationTimestamp", None)}
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, str) and value.startswith('{"') and value.endswith("}\n"):
            return clean(json.loads(value))
        return value

    assert result.code == 0, result.err
    return clean(json.loads(result.out))


def before_dashes(words: list[str], *more: str) -> list[str]:
    place = words.index("--") if "--" in words else len(words)
    return [*words[:place], *more, *words[place:]]


@pytest.mark.parametrize("line", GENERATED)
def test_a_generated_object_is_kubectls(
    line: str, kubectl: Program, karmadactl: Karmadactl, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setenv("HOME", str(kubectl.home))
    words = ["create", *before_dashes(arguments(line), "--dry-run=client", "-o", "json")]
    output, ours = kubectl(*words), karmadactl(*words, home=kubectl.home)
    assert data(ours) == data(output)
    assert ours.err == output.err


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_created_is_refused_in_kubectls_words(
    line: str, kubectl: Program, karmadactl: Karmadactl, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    words = ["create", *arguments(line)]
    output, ours = kubectl(*words, check=False), karmadactl(*words, check=False)
    assert (ours.code, ours.out) == (output.code, output.out)
    assert ours.err == in_our_words(output.err)
