"""register and unregister: a control plane, a simulated cluster, and nothing between them but HTTPS."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from cryptography import x509

from karmada.api.work import Work
from karmada.cli.karmadactl import main
from karmada.cli.targeting.connect import connected
from karmada.controllers.agent_csr_approving import CSRS
from karmada.install.images import IMAGE
from karmada.joining.join import cluster_id_of
from karmada.joining.pull.discovery import Discovery
from karmada.joining.pull.objects import ROLES, Agent, agent_lease, agents_own_objects
from karmada.joining.pull.register import Registering, Registration
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import Kubeconfig
from karmada.kube.kinds.signing_requests import condition, conditions, with_condition
from karmada.kube.objects.bootstrap_tokens import BootstrapToken
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, DEPLOYMENTS, NAMESPACES, SECRETS
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.auth.kubeconfig import write_kubeconfig
from karmada.kube.server.auth.user import User
from karmada.kube.sim.behaviours import Outcome, Rule
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.registering import PHASES, SYSTEM, Pair, registering_pair
from tests.support.rights import binding, group, role

AGENT = "system:karmada:agent:m1"


@pytest.fixture
async def pair(folder: Path) -> AsyncIterator[Pair]:
    async with registering_pair(folder) as pair:
        yield pair


# registering


async def test_the_printed_command_registers_a_cluster(pair: Pair) -> None:
    code, out, err = await pair.register()
    assert (code, out, err) == (0, PHASES, "")
    deployment = await pair.member.get(DEPLOYMENTS, "karmada-agent", "karmada-system")
    assert deployment["metadata"]["labels"].items() >= {"app": "karmada-agent"}.items()
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "karmada-agent-sa"
    assert pod["tolerations"] == [{"key": "node-role.kubernetes.io/master", "operator": "Exists"}]
    (container,) = pod["containers"]
    assert container["image"] == IMAGE
    assert container["volumeMounts"] == [{"name": "kubeconfig", "mountPath": "/etc/kubeconfig"}]
    assert pod["volumes"][0]["secret"]["secretName"] == "karmada-kubeconfig"
    assert container["command"] == [
        "/bin/karmada-agent",
        "--karmada-kubeconfig=/etc/kubeconfig/karmada-kubeconfig",
        "--cluster-name=m1",
        f"--cluster-api-endpoint={pair.sim.server.url}",
        "--cluster-provider=",
        "--cluster-region=",
        "--cluster-zones=",
        "--controllers=*",
        "--proxy-server-address=",
        "--leader-elect-resource-namespace=karmada-system",
        "--cluster-namespace=karmada-cluster",
        "--cluster-status-update-frequency=10s",
        "--metrics-bind-address=:8080",
        "--health-probe-bind-address=0.0.0.0:10357",
        "--v=2",
    ]
    role = await pair.member.get(CLUSTER_ROLES, "karmada-agent")
    assert role["rules"] == [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    binding = await pair.member.get(CLUSTER_ROLE_BINDINGS, "karmada-agent")
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "karmada-agent-sa", "namespace": "karmada-system"}
    ]


async def test_the_agent_gets_a_certificate_of_its_own_and_its_rights(pair: Pair) -> None:
    await pair.register("--cert-expiration-seconds", "86400")
    config = await pair.secret_kubeconfig()
    assert config["current-context"] == "m1@karmada-apiserver"
    assert config["clusters"][0]["name"] == "karmada-apiserver"
    assert config["clusters"][0]["cluster"]["server"] == pair.plane.server.url
    user = config["users"][0]
    assert user["name"] == "m1"
    certificate = x509.load_pem_x509_certificate(base64.b64decode(user["user"]["client-certificate-data"]))
    assert certificate.subject.rfc4514_string() == f"CN={AGENT},O=system:karmada:agents"
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime.total_seconds() == 86400
    client = Client(HttpTransport(Kubeconfig.parse(yaml.safe_dump(config)).resolve()))
    try:
        assert (await client.list_all(Work.gvr, "karmada-es-m1")).items == []
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
        who = await client.create(GVR("authentication.k8s.io", "v1", "selfsubjectreviews"), review)
        assert who["status"]["userInfo"]["username"] == AGENT
    finally:
        await client.close()
    (request,) = (await pair.plane.client.list_all(CSRS)).items
    assert re.fullmatch(r"m1-[a-z0-9]{5}", request["metadata"]["name"])
    assert request["metadata"]["labels"] == SYSTEM
    assert request["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client"
    assert request["spec"]["usages"] == ["digital signature", "key encipherment", "client auth"]
    assert request["spec"]["expirationSeconds"] == 86400


async def test_every_flag_reaches_the_agent(pair: Pair) -> None:
    code, _, err = await pair.register(
        "--namespace=agents", "--cluster-namespace=credentials", "--cluster-provider=sim", "--cluster-region=eu",
        "--cluster-zones=a,b", "--cluster-zones=c", "--enable-cert-rotation", "--karmada-agent-image=registry/agent:1",
        "--karmada-agent-replicas=2", "--proxy-server-address=http://proxy:3128",
    )  # fmt: skip
    assert (code, err) == (0, "")
    deployment = await pair.member.get(DEPLOYMENTS, "karmada-agent", "agents")
    assert deployment["spec"]["replicas"] == 2
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry/agent:1"
    assert set(container["command"]) >= {
        "--cluster-provider=sim",
        "--cluster-region=eu",
        "--cluster-zones=a,b,c",
        "--controllers=*,certRotation",
        "--proxy-server-address=http://proxy:3128",
        "--leader-elect-resource-namespace=agents",
        "--karmada-kubeconfig-namespace=agents",
        "--cluster-namespace=credentials",
    }
    assert await pair.secret_kubeconfig("agents")
    secrets = await pair.plane.client.get(ROLES, "system:karmada:m1:agent-secret", "credentials")
    assert secrets["rules"][0]["resourceNames"] == ["m1", "m1-impersonator"]
    assert await pair.plane.client.get(NAMESPACES, "agents"), "the agent's leases are in this namespace"


async def test_the_name_is_that_of_the_cluster_in_the_kubeconfig(pair: Pair) -> None:
    words = await pair.command()
    at = words.index("--cluster-name")
    code, out, err = await pair.run(*words[:at], *words[at + 2 :])
    assert (code, err) == (0, "")
    known = yaml.safe_load(pair.sim.kubeconfig.read_text())["clusters"][0]["name"]
    assert f"cluster({known}) is joined successfully" in out


async def test_without_a_hash_the_signature_alone_is_trusted_when_that_is_wanted(pair: Pair) -> None:
    words = await pair.command()
    at = words.index("--discovery-token-ca-cert-hash")
    bare = [*words[:at], *words[at + 2 :]]
    needed = "error: need to verify CACertHashes, or set --discovery-token-unsafe-skip-ca-verification=true\n"
    assert await pair.run(*bare) == (1, "", needed)
    code, out, _ = await pair.run(*bare, "--discovery-token-unsafe-skip-ca-verification")
    assert (code, out) == (0, PHASES)


async def test_a_dry_run_only_checks(pair: Pair) -> None:
    before = await pair.state()
    code, out, err = await pair.register("--dry-run")
    assert (code, out, err) == (0, "".join(PHASES.splitlines(keepends=True)[:2]), "")
    assert await pair.state() == before


async def test_what_is_registered_already_is_named_and_left_alone(pair: Pair) -> None:
    await pair.register()
    before = await pair.state()
    code, out, err = await pair.register()
    assert (code, err) == (0, "")
    assert out == (
        "[preflight] Running pre-flight checks\n"
        "error execution phase preflight: [preflight] Some fatal errors occurred:\n"
        "\t[ERROR]: karmada-system/karmada-kubeconfig Secret already exists\n"
        "\t[ERROR]: karmada-system/karmada-agent-sa ServiceAccount already exists\n"
        "\t[ERROR]: karmada-system/karmada-agent Deployment already exists\n"
        "\n[preflight] Please check the above errors\n"
    )
    assert await pair.state() == before


async def test_an_agent_in_another_namespace_keeps_its_rights(pair: Pair) -> None:
    await pair.register()
    code, out, _ = await pair.register("--namespace=elsewhere", "--cluster-name=m2")
    assert code == 0
    assert "[ERROR]: karmada-agent ClusterRoleBinding already exists, for an agent in another namespace" in out


# refusals


@cases(
    ([], "accepts 1 arg(s), received 0"),
    (["a:1", "b:1"], "accepts 1 arg(s), received 2"),
    (["a:1"], "token is required"),
    (["a:1", "--cluster-name=A"], "invalid cluster name(A): "),
    (
        ["a:1", "--cluster-name=rbac-generator"],
        'invalid cluster name(rbac-generator): must not be "rbac-generator"',
    ),
    (
        ["a:1", "--token=abcdef.1", "--discovery-token-unsafe-skip-ca-verification"],
        "couldn't validate the identity",
    ),
    (
        ["a:1", "--token=abcdef.0123456789abcdef", "--discovery-token-ca-cert-hash=md5:1"],
        'invalid discovery token CA certificate hash: unknown hash format "md5". Known format(s) are: sha256',
    ),
    (
        ["http://a:1", "--token=abcdef.0123456789abcdef", "--discovery-token-unsafe-skip-ca-verification"],
        '"http://a:1" is not the address of a control plane',
    ),
)
def test_flags_that_cannot_be_followed_are_refused_before_any_request(
    words: list[str], message: str, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "nowhere.config"
    write_kubeconfig(kubeconfig, "https://127.0.0.1:1", b"", b"", b"", "nowhere")
    result = CliRunner().invoke(main, ["register", *words, "--kubeconfig", str(kubeconfig)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


async def test_a_wrong_hash_is_refused_and_nothing_is_left(pair: Pair) -> None:
    before = await pair.state()
    words = await pair.command()
    at = words.index("--discovery-token-ca-cert-hash") + 1
    right, words[at] = words[at], f"sha256:{'0' * 64}"
    code, _, err = await pair.run(*words)
    assert code == 1
    assert err == (
        "error: couldn't validate the identity of the API Server: cluster CA found in cluster-info ConfigMap is "
        f'invalid: none of the public keys ["{right}"] are pinned\n'
    )
    await pair.nothing_is_left(before)


@cases(
    (
        lambda token: f"zzzzzz.{token[7:]}",
        "could not find a JWS signature in the cluster-info ConfigMap for token ID",
    ),
    (lambda token: f"{token[:7]}{'0' * 16}", "failed to verify JWS signature of received cluster info object"),
    ids=["unknown", "wrong secret"],
)
async def test_a_bad_token_is_refused_and_nothing_is_left(spoil: object, message: str, pair: Pair) -> None:
    before = await pair.state()
    words = await pair.command()
    at = words.index("--token") + 1
    assert callable(spoil)
    words[at] = spoil(words[at])
    code, _, err = await pair.run(*words, "--discovery-timeout=4s")
    assert code == 1
    assert err.startswith(f"error: couldn't validate the identity of the API Server: {message}")
    await pair.nothing_is_left(before)


async def test_an_expired_token_is_refused(pair: Pair) -> None:
    words = await pair.command("--ttl=1s")
    token_id = words[words.index("--token") + 1][:6]

    async def cleaned() -> bool:
        names = {s["metadata"]["name"] for s in (await pair.plane.client.list_all(SECRETS, "kube-system")).items}
        return f"bootstrap-token-{token_id}" not in names

    await eventually(cleaned)
    code, _, err = await pair.run(*words, "--discovery-timeout=4s")
    assert code == 1
    assert f'for token ID "{token_id}": the token is invalid for this cluster or it has expired' in err


async def test_a_token_that_may_not_request_certificates_is_refused(pair: Pair) -> None:
    before = await pair.state()
    code, _, err = await pair.run(*await pair.command("--groups=system:bootstrappers:others"))
    assert code == 1
    assert err.startswith("Error from server (Forbidden): certificatesigningrequests.certificates.k8s.io is forbidden")
    code, _, err = await pair.run(*await pair.command("--usages=signing"))
    assert (code, err) == (1, "error: You must be logged in to the server (Unauthorized)\n")
    await pair.nothing_is_left(before)


async def test_a_name_that_is_taken_is_refused_and_its_owner_keeps_everything(pair: Pair) -> None:
    await pair.register("--namespace=first", "--cluster-name=m1")
    await pair.plane.add_cluster("m1", "Pull", id="another")
    for kind, name, namespace in (
        (DEPLOYMENTS, "karmada-agent", "first"),
        (CLUSTER_ROLE_BINDINGS, "karmada-agent", ""),
    ):
        await pair.member.delete(kind, name, namespace)
    before = await pair.state()
    code, _, err = await pair.register()
    assert (code, err) == (1, "error: failed to register as cluster with name m1 already exists\n")
    await pair.nothing_is_left(before)
    agent = pair.plane.server.client(User(AGENT, groups=("system:karmada:agents",)))
    assert (await agent.list_all(Work.gvr, "karmada-es-m1")).items == []


async def test_a_cluster_that_is_a_member_under_another_name_is_refused(pair: Pair) -> None:
    cluster_id = await cluster_id_of(pair.member)
    await pair.plane.add_cluster("first", "Push", id=cluster_id)
    code, _, err = await pair.register()
    assert (code, err) == (1, f"error: the cluster ID {cluster_id} or the cluster name m1 has been registered\n")


async def test_join_refuses_a_cluster_that_is_registered(pair: Pair) -> None:
    cluster_id = await cluster_id_of(pair.member)
    await pair.plane.add_cluster("first", "Pull", id=cluster_id)
    words = ("--cluster-kubeconfig", str(pair.sim.kubeconfig), "--kubeconfig", str(pair.plane.server.kubeconfig))
    for name in ("first", "second"):
        message = f"error: the cluster ID {cluster_id} or the cluster name {name} has been registered\n"
        assert await pair.run("join", name, *words) == (1, "", message)


# failures on the way


async def test_an_agent_that_does_not_start_is_taken_back_on_both_sides(pair: Pair) -> None:
    before = await pair.state()
    pair.sim.add_rule("broken", Rule(Outcome("image-pull-error"), image="karmada"))
    code, out, err = await pair.register("--namespace=agents", "--discovery-timeout=10s")
    assert code == 1
    assert out.endswith("karmadactl register failed and started deleting the created resources\n")
    assert "error: Deployment agents/karmada-agent is not ready after 10s: pod karmada-agent-" in err
    await pair.nothing_is_left(before)
    pair.sim.remove_rule("broken")
    assert (await pair.register())[:2] == (0, PHASES)


async def test_what_the_agent_created_before_it_failed_is_deleted_as_well(pair: Pair) -> None:
    before = await pair.state()
    pair.sim.add_rule("broken", Rule(Outcome("never-ready"), image="karmada"))
    registering = asyncio.create_task(pair.register("--discovery-timeout=15s"))

    async def deployed() -> bool:
        return bool((await pair.member.list_all(DEPLOYMENTS, "karmada-system")).items)

    await eventually(deployed)
    for placed in agents_own_objects(Agent(cluster="m1", api_endpoint="", image="")):
        await pair.member.create(placed.gvr, placed.obj)
    lease = agent_lease("m1", "karmada-system")
    await pair.plane.client.create(lease.gvr, lease.obj)
    await pair.plane.add_cluster("m1", "Pull", id=await cluster_id_of(pair.member))
    assert (await registering)[0] == 1
    await pair.nothing_is_left(before)


async def test_a_member_that_does_not_allow_it_is_left_as_it_was(pair: Pair, tmp_path: Path) -> None:
    before = await pair.state()
    config = yaml.safe_load(pair.sim.kubeconfig.read_text())
    certificate = pair.sim.server.pki.ca.issue("jane", organizations=("editors",))
    config["users"][0]["user"] = {
        "client-certificate-data": base64.b64encode(certificate.cert_pem).decode(),
        "client-key-data": base64.b64encode(certificate.key_pem).decode(),
    }
    limited = tmp_path / "limited.config"
    limited.write_text(yaml.safe_dump(config))
    everything = {"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["*"]}
    reading = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}
    await pair.member.create(CLUSTER_ROLES, role("limited", everything, reading))
    await pair.member.create(CLUSTER_ROLE_BINDINGS, binding("limited", group("editors")))
    code, _, err = await pair.register("--kubeconfig", str(limited))
    assert code == 1
    assert err.startswith("Error from server (Forbidden): clusterroles.rbac.authorization.k8s.io is forbidden")
    await pair.member.delete(CLUSTER_ROLES, "limited")
    await pair.member.delete(CLUSTER_ROLE_BINDINGS, "limited")
    await pair.nothing_is_left(before)


async def test_an_interrupted_registration_is_taken_back(pair: Pair) -> None:
    before = await pair.state()
    pair.sim.add_rule("slow", Rule(Outcome("never-ready"), image="karmada-agent"))
    token = BootstrapToken.parse(await pair.token())
    assert token is not None
    discovery = Discovery(server=pair.plane.server.url, token=token)
    agent = Agent(cluster="m1", api_endpoint=pair.sim.server.url, image="karmada-agent")
    task = asyncio.create_task(
        Registering(connected, pair.member, Registration(discovery=discovery, agent=agent)).run()
    )

    async def deployed() -> bool:
        return bool((await pair.member.list_all(DEPLOYMENTS, "karmada-system")).items)

    await eventually(deployed)
    await cancel_and_wait(task)
    assert task.cancelled()
    await pair.nothing_is_left(before)


async def test_where_nothing_approves_certificates_people_do(folder: Path) -> None:
    async with registering_pair(folder, lambda _context: []) as pair:
        code, _, err = await pair.register("--discovery-timeout=8s")
        assert code == 1
        assert "was not approved and signed within 8s: approve it with `kubectl certificate approve agent-rbac-" in err
        task = asyncio.create_task(pair.register())

        async def approved() -> bool:
            for found in (await pair.plane.client.list_all(CSRS)).items:
                if not conditions(found):
                    entry = condition("Approved", "Manual", "by hand", pair.plane.clock.now())
                    await pair.plane.client.update(CSRS, with_condition(found, entry), subresource="approval")
            return task.done()

        await eventually(approved)
        assert (await task)[:2] == (0, PHASES)
