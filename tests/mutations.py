"""`python -m tests.mutations [WORD]`: put plausible mistakes into a copy of the sources, and run the tests of each.

A mistake that no test fails with has SURVIVED: then a test is missing, and the exit code is 1. With a word only those
whose file or mistake has it. Takes minutes; nothing in the working tree changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutation(NamedTuple):
    file: str
    """Below src/karmada."""
    right: str
    """Occurs once in the file."""
    wrong: str
    tests: str


MUTATIONS = [
    Mutation(
        "kube/server/auth/rbac.py", "key = (user.name, groups, verb", "key = (user.name, verb", "kube/server/auth"
    ),
    Mutation(
        "kube/runtime/leader.py",
        "        if won:\n            self._renewed_at = started",
        "        if won:\n            self._renewed_at = self._clock.monotonic()",
        "kube/runtime/test_leader.py",
    ),
    Mutation("kube/autoscaling/behavior.py", "now - max(up, down))", "now - up)", "kube/autoscaling"),
    Mutation("kube/autoscaling/replicas.py", "* max(100, target) //", "* 100 //", "kube/autoscaling"),
    Mutation("scheduler/spread.py", "and at >= 0 and", "and at > 0 and", "scheduler/test_spread_constraints.py"),
    Mutation(
        "controllers/cert_rotation.py",
        "lifetime=int(validity([old]).seconds)",
        "lifetime=int(validity([old]).seconds) // 2",
        "components/test_agent_certificates.py",
    ),
    Mutation(
        "kube/server/storage/sqlite.py",
        "latest[key] = 0 if packed is None else revision",
        "latest[key] = revision",
        "kube/server/storage/test_store_contract.py",
    ),
    Mutation(
        "kube/server/admission/resource_quota.py",
        " + unrecorded[name]",
        "",
        "kube/server/admission/test_resource_quota.py",
    ),
    Mutation("overrides/image.py", "(image.tag or image.digest) + value", "image.tag + value", "overrides"),
    Mutation(
        "controllers/execution/controller.py",
        "if key is not None and key.namespace == well_known.execution_namespace(cluster):",
        "if key is not None:",
        "controllers/execution/test_execution_applying.py",
    ),
    Mutation(
        "kube/server/auth/impersonation.py",
        "name=group) for group in wanted.groups]",
        "name=group) for group in wanted.groups[:1]]",
        "kube/server/auth/test_impersonation.py",
    ),
    Mutation(
        "kube/server/auth/impersonation.py",
        "account is not None and not groups",
        "account is not None",
        "kube/server/auth/test_impersonation.py",
    ),
    Mutation(
        "kube/server/auth/escalation.py",
        "(bool(wanted) and all(name in names for name in wanted or ()))",
        "all(name in names for name in wanted or ())",
        "kube/server/auth/test_escalation.py",
    ),
    Mutation(
        "kube/server/auth/escalation.py",
        'return bool(slash) and f"*/{subresource}" in held',
        "return bool(slash)",
        "kube/server/auth/test_escalation.py",
    ),
    Mutation(
        "controllers/failover/fate.py",
        "return source.ready or not _targets(binding)",
        "return source.ready",
        "controllers/failover",
    ),
    Mutation(
        "controllers/failover/fate.py",
        "if not _is_observed(binding) or not (targets",
        "if not (targets",
        "controllers/failover",
    ),
    Mutation(
        "controllers/failover/fate.py",
        " or not source.ready or not source.eligible:",
        " or not source.ready:",
        "controllers/failover",
    ),
    Mutation(
        "controllers/failover/pace.py",
        "heapreplace(self._free, due + self._pause)",
        "heapreplace(self._free, now + self._pause)",
        "controllers/failover",
    ),
    Mutation(
        "controllers/failover/tasks.py",
        'if any(found["fromCluster"] == cluster for found in tasks):',
        "if False:",
        "controllers/failover",
    ),
    Mutation(
        "kube/runtime/membership.py",
        "if self._view and view - self._view:",
        "if self._view and self._view - view:",
        "kube/runtime/test_membership.py",
    ),
    Mutation(
        "kube/runtime/membership.py",
        "self._lease, self._renewed_at = written, started",
        "self._lease, self._renewed_at = written, self._clock.monotonic()",
        "kube/runtime/test_membership.py",
    ),
    Mutation(
        "kube/runtime/membership.py",
        "while any(not self.assignment.owns(shard) for shard in self._busy):",
        "while False:",
        "kube/runtime/test_membership.py",
    ),
    Mutation(
        "kube/runtime/membership.py",
        "uid=meta.uid(lease), resource_version=held)",
        "uid=meta.uid(lease))",
        "kube/runtime/test_membership.py",
    ),
    Mutation("members/retention.py", "for key in others if key not in ours}", "for key in others}", "members"),
    Mutation(
        "members/retention.py",
        '_MARKS_WITH_NAMESPACE if metadata.get("namespace") else _MARKS_WITHOUT',
        "_MARKS_WITH_NAMESPACE",
        "members",
    ),
    Mutation("kube/autoscaling/behavior.py", "longest = max((policy", "longest = min((policy", "kube/autoscaling"),
    Mutation(
        "kube/autoscaling/behavior.py", "moment.at >= now - window", "moment.at > now - window", "kube/autoscaling"
    ),
    Mutation(
        "kube/server/admission/resource_quota.py",
        "return bool(reservation.version)",
        "return False",
        "kube/server/admission/test_resource_quota.py",
    ),
    Mutation("overrides/image.py", '"" if tag else digest)', "digest)", "overrides"),
    Mutation("scheduler/spread.py", "if count >= enough and room >= share", "if room >= share", "scheduler"),
    Mutation(
        "scheduler/spread.py",
        "for place in groups[group.name] if place not in selected)",
        "for place in groups[group.name])",
        "scheduler",
    ),
    Mutation(
        "apiserver/agent_isolation.py",
        "if well_known.cluster_of_namespace(info.namespace) not in (None, cluster):",
        "if False:",
        "apiserver/test_agent_isolation.py",
    ),
    Mutation(
        "apiserver/agent_isolation.py",
        'return found is None or found["spec"].get("username") == user.name',
        "return True",
        "apiserver/test_agent_isolation.py",
    ),
    Mutation(
        "apiserver/agent_isolation.py",
        "own = namespace == well_known.NAMESPACE_CLUSTER and name == cluster",
        "own = namespace == well_known.NAMESPACE_CLUSTER",
        "apiserver/test_agent_isolation.py",
    ),
    Mutation(
        "apiserver/agent_isolation.py",
        "own = requested_user(obj) == attributes.user.name",
        "own = True",
        "apiserver/test_agent_isolation.py",
    ),
    Mutation(
        "apiserver/agent_isolation.py",
        'f"{given},{own}" if given else own',
        "given or own",
        "apiserver/test_agent_isolation.py",
    ),
    Mutation(
        "controllers/agent_csr_approving.py",
        "and request.organizations == (well_known.AGENT_GROUP,)",
        "and well_known.AGENT_GROUP in request.organizations",
        "controllers/test_agent_csr_approving.py",
    ),
    Mutation(
        "controllers/agent_csr_approving.py",
        "        and not any(other_names)\n",
        "",
        "controllers/test_agent_csr_approving.py",
    ),
    Mutation(
        "controllers/agent_csr_approving.py",
        'if not r.own or request.common_name == spec.get("username")]',
        "if True]",
        "controllers/test_agent_csr_approving.py",
    ),
    Mutation(
        "kube/server/auth/bootstrap_tokens.py",
        "    if _expired(secret, now):\n        raise",
        "    if False:\n        raise",
        "kube/server/auth/test_bootstrap_tokens.py",
    ),
    Mutation(
        "kube/server/auth/bootstrap_tokens.py",
        "if not _GROUP.fullmatch(group)",
        "if not _GROUP.match(group)",
        "kube/server/auth/test_bootstrap_tokens.py",
    ),
    Mutation(
        "kube/server/auth/service_accounts.py",
        "for audience in wanted if audience in verified.audiences)",
        "for audience in wanted)",
        "kube/server/auth",
    ),
    Mutation("kube/server/auth/service_accounts.py", 'and ":" not in name else None', "else None", "kube/server/auth"),
    Mutation("kube/server/auth/jwt.py", 'if "=" in token or not isinstance', "if not isinstance", "kube/server/auth"),
    Mutation(
        "kube/server/auth/csr_admission.py", "elif _outcome(old) == _outcome(new):", "elif True:", "kube/server/auth"
    ),
    Mutation("kube/server/auth/csr_admission.py", "!= attributes.user.info():", "is None:", "kube/server/auth"),
    Mutation(
        "kube/server/auth/frontproxy.py",
        "allowed_names=(FRONT_PROXY_CLIENT,))",
        "allowed_names=())",
        "kube/server/auth",
    ),
    Mutation(
        "kube/server/watchcache/collection.py",
        "self.floor = dropped.revision",
        "self.floor = dropped.revision - 1",
        "kube/server/watchcache",
    ),
    Mutation(
        "kube/runtime/back_off.py",
        "if now - self._last > self._reset_after",
        "if now - self._last < self._reset_after",
        "kube/runtime/test_back_off.py",
    ),
    Mutation(
        "controllers/cluster/monitor.py",
        "grace = settings.cluster_startup_grace_period if never",
        "grace = settings.cluster_monitor_grace_period if never",
        "controllers/cluster",
    ),
    Mutation("kube/server/handlers/fencing.py", " or meta.uid(lease) != token.uid", "", "integration/test_fencing.py"),
    Mutation(
        "kube/server/handlers/fencing.py",
        "if epoch == token.epoch",
        "if epoch >= token.epoch",
        "integration/test_fencing.py",
    ),
    Mutation(
        "kube/server/handlers/deletes.py",
        "seconds = min(seconds, pending)",
        "seconds = seconds",
        "integration/test_delete.py",
    ),
    Mutation(
        "kube/server/handlers/deletes.py",
        "if ORPHAN in finalizers or FOREGROUND in finalizers:",
        "if ORPHAN in finalizers:",
        "integration/test_delete.py",
    ),
    Mutation(
        "kube/server/handlers/deletes.py",
        'if "deletionTimestamp" in meta:\n            begun',
        "if False:\n            begun",
        "kube/server/handlers/test_deletes.py",
    ),
]


def environment(sources: Path) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}


def caught(mutation: Mutation, sources: Path) -> bool:
    """Whether a test fails with the mistake."""
    file = sources / "karmada" / mutation.file
    text = file.read_text()
    if text.count(mutation.right) != 1:
        raise SystemExit(f"{mutation.file} has {mutation.right!r} {text.count(mutation.right)} times instead of once")
    file.write_text(text.replace(mutation.right, mutation.wrong))
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{mutation.tests}"]
        done = subprocess.run(command, cwd=ROOT, env=environment(sources), capture_output=True, text=True, check=False)
    finally:
        file.write_text(text)
    if done.returncode not in (0, 1):
        raise SystemExit(f"tests/{mutation.tests} did not run:\n{done.stdout}{done.stderr}")
    return done.returncode == 1


def main() -> None:
    word = "".join(sys.argv[1:])
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder)
        shutil.copytree(ROOT / "src/karmada", sources / "karmada", ignore=shutil.ignore_patterns("__pycache__"))
        for mutation in MUTATIONS:
            if word in f"{mutation.file} {mutation.right} {mutation.wrong}":
                ended = caught(mutation, sources)
                survived += not ended
                verdict = "caught  " if ended else "SURVIVED"
                print(f"{verdict} {mutation.file}: {mutation.right!r} → {mutation.wrong!r}", flush=True)
    sys.exit(bool(survived))


if __name__ == "__main__":
    main()
