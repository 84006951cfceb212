"""create, patch, label, annotate and delete against a control plane: what they do there, beyond what they say."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karmada.cli.commands.create import SUBCOMMANDS
from karmada.cli.commands.create.kinds import SECRETS, SERVICES
from karmada.cli.targeting.connect import connected, control_config
from karmada.kube.objects.gvrs import CONFIG_MAPS
from tests.support.served_apart import Commands, served_apart

WORDS_OF_FORCE = (
    "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. "
    "The resource may continue to run on the cluster indefinitely.\n"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with served_apart(tmp_path_factory.mktemp("plane")) as commands:
        yield commands


def config(name: str, **more: object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}})


def read(run: Commands, kind: str, name: str) -> dict[str, object]:
    """An object as the server has it, read by a patch that changes nothing."""
    shown = run("patch", kind, name, "--type=merge", "-p", "{}", "-o", "json", "--show-managed-fields")
    found: dict[str, object] = json.loads(shown.out)
    return found


# create


def test_what_is_created_belongs_to_the_manager_that_was_named(run: Commands) -> None:
    assert run("create", "-f", "-", stdin=config("mine")).out == "configmap/mine created\n"
    assert (
        run("create", "cm", "theirs", "--from-literal=a=b", "--field-manager=them").out == "configmap/theirs created\n"
    )
    assert run("create", "-f", "-", stdin=config("nobody"), env={"KUBECONFIG": ""}, ok=False).code == 1
    managers = [read(run, "cm", name)["metadata"].get("managedFields", []) for name in ("mine", "theirs")]  # type: ignore[attr-defined]
    assert [entry["manager"] for entries in managers for entry in entries][-1] == "them"


def test_a_trial_on_this_side_needs_neither_server_nor_kubeconfig(run: Commands, tmp_path: Path) -> None:
    nowhere = {"KUBECONFIG": str(tmp_path / "none")}
    said = run("create", "deployment", "web", "--image=nginx", "--dry-run=client", "-o", "name", env=nowhere)
    assert said.out == "deployment.apps/web\n"
    assert run("create", "cm", "x", "--dry-run", env=nowhere).err.startswith("Warning: --dry-run is deprecated")
    refused = run.refused("create", "cm", "x", env=nowhere)
    assert refused.startswith("error: ")
    assert refused.count("\n") == 1


def test_a_trial_on_the_server_changes_nothing(run: Commands) -> None:
    for words in (["create", "cm", "tried"], ["create", "-f", "-"]):
        said = run(*words, "--dry-run=server", stdin=config("tried"))
        assert said.out == "configmap/tried created (server dry run)\n"
    assert run.refused("delete", "cm", "tried") == 'Error from server (NotFound): configmaps "tried" not found\n'


def test_the_configuration_can_be_kept_for_apply(run: Commands) -> None:
    run("create", "-f", "-", "--save-config", stdin=config("kept"))
    kept = read(run, "cm", "kept")["metadata"]["annotations"]
    assert json.loads(kept["kubectl.kubernetes.io/last-applied-configuration"]) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kept", "namespace": "default", "annotations": {}},
    }


def test_a_job_of_a_cron_job(run: Commands) -> None:
    run("create", "cronjob", "nightly", "--image=busybox", "--schedule=0 3 * * *", "--", "date")
    run("create", "job", "now", "--from=cronjob/nightly")
    job = read(run, "job", "now")
    cron = read(run, "cronjob", "nightly")
    assert job["metadata"]["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}
    assert job["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "controller": True,
            "uid": cron["metadata"]["uid"],
        }
    ]  # fmt: skip
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["date"]
    assert run.refused("create", "job", "x", "--from=cm/nightly") == "error: from must be an existing cronjob\n"
    refusal = 'Error from server (NotFound): cronjobs.batch "none" not found\n'
    assert run.refused("create", "job", "x", "--from=cronjob/none") == refusal


def test_a_token(run: Commands) -> None:
    run("create", "sa", "robot")
    token = run("create", "token", "robot", "--duration=20m", "--audience=a,b").out
    assert token.count(".") == 2
    shown = json.loads(run("create", "token", "robot", "--duration=20m", "-o", "json").out)
    assert shown["kind"] == "TokenRequest"
    assert shown["spec"]["expirationSeconds"] == 1200
    for words, refusal in (
        (
            ["--bound-object-kind=Foo", "--bound-object-name=x"],
            "supported --bound-object-kind values are Node, Pod, Secret",
        ),
        (["--bound-object-kind=Pod"], "--bound-object-name is required if --bound-object-kind is provided"),
        (["--bound-object-uid=x"], "--bound-object-uid can only be set if --bound-object-kind is provided"),
        (["--duration=-1s"], "--duration must be greater than or equal to 0"),
    ):
        assert run.refused("create", "token", "robot", *words) == f"error: {refusal}\n"


def test_raw_requests(run: Commands, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(config("raw"))
    path = "/api/v1/namespaces/default/configmaps"
    made = json.loads(run("create", "--raw", f"{path}?dryRun=All", "-f", str(tmp_path / "c.json")).out)
    assert made["metadata"]["name"] == "raw"
    run("create", "--raw", path, "-f", "-", stdin=config("raw"))
    assert json.loads(run("delete", "--raw", f"{path}/raw").out)["status"] == "Success"
    assert run.refused("delete", "--raw", f"{path}/raw") == 'Error from server (NotFound): configmaps "raw" not found\n'
    for words, refusal in (
        (["--edit"], "--raw and --edit are mutually exclusive"),
        (["-o", "json"], "--raw and --output are mutually exclusive"),
        (["-R"], "--raw and --recursive are mutually exclusive"),
    ):
        assert run.refused("create", "--raw", path, "-f", "-", *words) == f"error: {refusal}\n"


def test_files_are_read_before_anything_is_created(run: Commands, tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text(config("first"))
    (tmp_path / "2.yaml").write_text("a: [\n")
    assert run.refused("create", "-f", str(tmp_path)).startswith(f"error: error parsing {tmp_path}/2.yaml: ")
    assert run.refused("delete", "cm", "first") == 'Error from server (NotFound): configmaps "first" not found\n'


def test_a_namespace_and_what_is_in_it_from_one_file(run: Commands) -> None:
    text = '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}\n' + config("in", namespace="shop")
    assert run("create", "-f", "-", stdin=text).out == "namespace/shop created\nconfigmap/in created\n"
    refusal = run.refused("create", "-f", "-", "-n", "other", stdin=config("x", namespace="shop"))
    assert refusal == (
        'error: the namespace from the provided object "shop" does not match the namespace "other". '
        "You must pass '--namespace=shop' to perform this operation.\n"
    )


# patch, label and annotate on Karmada's own kinds


def test_several_clusters_are_patched_at_once(run: Commands) -> None:
    for name in ("kind-cluster01", "kind-cluster02"):
        cluster = {
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"syncMode": "Push"},
        }  # fmt: skip
        run("create", "-f", "-", stdin=json.dumps(cluster))
    words = ["patch", "clusters.cluster.karmada.io", "kind-cluster01", "kind-cluster02"]
    patched = [f"cluster.cluster.karmada.io/kind-cluster0{i} patched" for i in (1, 2)]
    assert run(*words, "-p", '{"spec": {"provider": "kind"} }').out.splitlines() == patched
    assert run(*words, "-p", '{"spec": {"provider": "kind"} }').out.splitlines() == [
        f"{p} (no change)" for p in patched
    ]
    assert (
        run("label", "cluster", "kind-cluster01", "region=eu").out
        == "cluster.cluster.karmada.io/kind-cluster01 labeled\n"
    )
    listed = run("label", "clusters", "--all", "--list").out
    assert listed == (
        "Listing labels for Cluster.cluster.karmada.io/kind-cluster01:\n region=eu\n"
        "Listing labels for Cluster.cluster.karmada.io/kind-cluster02:\n"
    )


def test_patches_on_this_side(run: Commands) -> None:
    policy = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "p"}}
    words = ["patch", "--local", "-f", "-", "-p", '{"spec":{"priority":1}}', "-o", "jsonpath={.spec}"]
    refusal = "strategic merge patch is not supported for policy.karmada.io/v1alpha1, Kind=PropagationPolicy locally"
    assert run.refused(*words, stdin=json.dumps(policy)) == f"error: {refusal}, try --type merge\n"
    assert run(*words, "--type=merge", stdin=json.dumps(policy)).out == '{"priority":1}'
    refusal = run.refused(*words[:5], '[{"op":"remove","path":"/spec"}]', "--type=json", stdin=json.dumps(policy))
    assert refusal.startswith("error: ")
    assert run.refused("patch", "cm", "x", "-p", "{bad").startswith('error: unable to parse "{bad": yaml: ')
    assert run.refused("patch", "cm", "x", "-p", "text").startswith('error: unable to parse "text": ')


# warnings


def test_the_servers_warnings_are_shown_once(run: Commands) -> None:
    odd = json.loads(config("odd"))
    odd["dataa"] = {}
    text = "\n".join(json.dumps({**odd, "metadata": {"name": f"odd{i}"}}) for i in (1, 2))
    said = run("create", "-f", "-", "--validate=warn", stdin=text)
    assert said.err == 'Warning: unknown field "dataa"\n'
    assert said.out == "configmap/odd1 created\nconfigmap/odd2 created\n"


# delete


def test_deleting_waits_for_finalizers(run: Commands) -> None:
    run("create", "-f", "-", stdin=config("held", finalizers=["example.com/held"]))
    releasing = threading.Thread(target=lambda: asyncio.run(release(run.kubeconfig, "held")))
    releasing.start()
    assert run("delete", "cm", "held").out == 'configmap "held" deleted\n'
    releasing.join()
    assert run.refused("delete", "cm", "held") == 'Error from server (NotFound): configmaps "held" not found\n'


async def release(kubeconfig: Path, name: str) -> None:
    """Take the finalizers away, once deletion was requested."""
    async with connected(control_config(str(kubeconfig))) as client:
        async for event in await client.watch(CONFIG_MAPS, "default", field_selector=f"metadata.name={name}"):
            if event.object["metadata"].get("deletionTimestamp"):
                await client.patch(CONFIG_MAPS, name, "default", {"metadata": {"finalizers": None}})
                return


def test_waiting_has_an_end(run: Commands) -> None:
    run("create", "-f", "-", stdin=config("stuck", finalizers=["example.com/held"]))
    refusal = run.refused("delete", "cm", "stuck", "--timeout=50ms")
    assert refusal == "error: timed out waiting for the condition on configmaps/stuck\n"


def test_not_waiting(run: Commands) -> None:
    run("create", "-f", "-", stdin=config("going", finalizers=["example.com/held"]))
    assert run("delete", "cm", "going", "--wait=false").out == 'configmap "going" deleted\n'
    run("patch", "cm", "going", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    assert run.refused("delete", "cm", "going") == 'Error from server (NotFound): configmaps "going" not found\n'


def test_confirmation_before_deleting(run: Commands) -> None:
    run("create", "cm", "dear")
    question = "You are about to delete the following 1 resource(s):\nconfigmap/dear\nDo you want to continue? (y/n): "
    assert run("delete", "cm", "dear", "-i", stdin="n\n").out == f"{question}deletion is cancelled\n"
    assert run("delete", "cm", "dear", "-i", stdin="").out == f"{question}deletion is cancelled\n"
    assert run("delete", "cm", "dear", "-i", stdin="y\n").out == f'{question}configmap "dear" deleted\n'


def test_force_and_scope_are_warned_of(run: Commands) -> None:
    run("create", "cm", "forced")
    said = run("delete", "cm", "forced", "--force")
    assert (said.out, said.err) == ('configmap "forced" force deleted\n', WORDS_OF_FORCE)
    run("create", "priorityclass", "high", "--value=1")
    said = run("delete", "priorityclass", "high", "-n", "default")
    assert said.err == "Warning: deleting cluster-scoped resources, not scoped to the provided namespace\n"
    run("create", "cm", "old")
    said = run("delete", "cm", "old", "--cascade=false")
    assert (
        said.err
        == "warning: --cascade=false is deprecated (boolean value) and can be replaced with --cascade=orphan.\n"
    )


def test_a_page_of_every_kind_of_refusal(run: Commands) -> None:
    for words, refusal in (
        (["delete", "cm", "x", "--karmada-context=none"], "error: "),
        (["delete", "cm", "x", "--kubeconfig=none"], "error: "),
        (["label", "cm", "--wait"], "error: unknown flag: --wait\n"),
        (["delete", "nothing", "x"], 'error: the server doesn\'t have a resource type "nothing"\n'),
    ):
        assert run.refused(*words).startswith(refusal)


# help


def commands() -> Iterator[list[str]]:
    yield from (["delete"], ["edit"], ["patch"], ["label"], ["annotate"], ["create"])
    for name in SUBCOMMANDS:
        yield ["create", name]
    for kind, table in (("secret", SECRETS), ("service", SERVICES)):
        for name in table:
            yield ["create", kind, name]


@pytest.mark.parametrize("words", [*commands()], ids=" ".join)
def test_help_has_an_example_and_every_flag_a_text(run: Commands, words: list[str]) -> None:
    text = run(*words, "--help").out
    assert f"\nExamples:\n  karmadactl {' '.join(words)} " in text or f" | karmadactl {' '.join(words)} " in text
    options = text.partition("\nOptions:\n")[2].partition("\nUsage:")[0]
    assert ":\n\t\n" not in options


@pytest.mark.parametrize("wrong", ["foo", "jsonpath={.x", "go-template={{.x"])
def test_what_cannot_be_shown_is_not_done(run: Commands, wrong: str) -> None:
    run("delete", "cm", "shown", "--ignore-not-found")
    assert run.refused("create", "cm", "shown", "-o", wrong).startswith("error: ")
    run("create", "cm", "shown")
    for words in (["label", "cm", "shown", "a=b"], ["annotate", "cm", "shown", "a=b"]):
        assert run.refused(*words, "-o", wrong).startswith("error: ")
    assert run.refused("patch", "cm", "shown", "-p", '{"data":{"a":"b"}}', "-o", wrong).startswith("error: ")
    left = read(run, "cm", "shown")
    assert "data" not in left
    assert not {"labels", "annotations"} & set(left["metadata"])  # type: ignore[call-overload]


def test_documents_are_parted_whatever_was_done_to_each(run: Commands) -> None:
    for name in ("one", "two"):
        run("create", "cm", name)
    run("label", "cm", "one", "part=x")
    out = run("label", "cm", "one", "two", "part=x", "-o", "yaml").out
    assert [document["metadata"]["name"] for document in yaml.safe_load_all(out)] == ["one", "two"]


def test_a_patch_file_that_is_no_text(run: Commands, tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"\xff")
    refusal = f"error: unable to read patch file: {tmp_path}/p: not UTF-8\n"
    assert run.refused("patch", "cm", "x", "--patch-file", str(tmp_path / "p")) == refusal


@pytest.mark.parametrize("words", ["get cm", "delete cm", "label cm", "patch cm", "describe cm", "edit cm", "exec"])
def test_a_name_that_leads_elsewhere_is_refused(run: Commands, words: str) -> None:
    more = {"label": ["a=b"], "patch": ["-p", "{}"], "exec": ["--", "ls"]}.get(words.split()[0], [])
    for name, why in (("..", "may not be '..'"), ("a%2fb", "may not contain '%'")):
        assert run.refused(*words.split(), name, *more) == f'error: invalid resource name "{name}": [{why}]\n'
    refusal = "error: invalid namespace \"..\": [may not be '..']\n"
    assert run.refused(*words.split(), "x", "-n", "..", *more) == refusal
