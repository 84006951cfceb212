"""Security contexts of pods and containers."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.container_rules import containers
from karmada.kube.kinds.security_rules import app_armor, seccomp
from karmada.kube.objects.errors import FieldError
from tests.support.cases import cases

_PROFILES = '"Localhost", "RuntimeDefault", "Unconfined"'


@cases(
    ({"runAsUser": 0, "allowPrivilegeEscalation": False}, []),
    ({"privileged": True, "allowPrivilegeEscalation": True}, []),
    ({"runAsUser": -1}, ["c[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, "
                         "inclusive"]),
    ({"procMount": "Odd"}, ['c[0].securityContext.procMount: Unsupported value: "Odd": supported values: '
                            '"Default", "Unmasked"']),
    ({"privileged": True, "allowPrivilegeEscalation": False},
     ['c[0].securityContext: Invalid value: {"privileged":true,"allowPrivilegeEscalation":false}: cannot set '
      "`allowPrivilegeEscalation` to false and `privileged` to true"]),
    ({"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}},
     ['c[0].securityContext: Invalid value: {"allowPrivilegeEscalation":false,"capabilities":{"add":'
      '["CAP_SYS_ADMIN"]}}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN']),
)  # fmt: skip
def test_containers(context: dict[str, Any], wanted: list[str]) -> None:
    errors: list[FieldError] = []
    container = {
        "name": "a", "image": "x", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
        "securityContext": context,
    }  # fmt: skip
    containers(errors, "c", [container], {}, set(), False)
    assert [str(error) for error in errors] == wanted


@cases(
    (seccomp, None, []),
    (seccomp, {"type": "RuntimeDefault"}, []),
    (seccomp, {"type": "Localhost", "localhostProfile": "a/b.json"}, []),
    (seccomp, {}, ["p.type: Required value: type is required when seccompProfile is set"]),
    (seccomp, {"type": "Odd"}, [f'p.type: Unsupported value: "Odd": supported values: {_PROFILES}']),
    (seccomp, {"type": "Localhost"}, ["p.localhostProfile: Required value: must be set when seccomp type is "
                                      "Localhost"]),
    (seccomp, {"type": "Unconfined", "localhostProfile": "x"},
     ['p.localhostProfile: Invalid value: "x": can only be set when seccomp type is Localhost']),
    (app_armor, {"type": "Localhost", "localhostProfile": "mine"}, []),
    (app_armor, {"type": "Localhost", "localhostProfile": " "},
     ['p.localhostProfile: Invalid value: " ": must not be padded with whitespace',
      "p.localhostProfile: Required value: must be set when AppArmor type is Localhost"]),
    (app_armor, {"type": "RuntimeDefault", "localhostProfile": "x"},
     ['p.localhostProfile: Invalid value: "x": can only be set when AppArmor type is Localhost']),
    (app_armor, {"type": "Odd"}, [f'p.type: Unsupported value: "Odd": supported values: {_PROFILES}']),
)  # fmt: skip
def test_profiles(rule: Any, profile: dict[str, Any] | None, wanted: list[str]) -> None:
    errors: list[FieldError] = []
    rule(errors, "p", profile)
    assert [str(error) for error in errors] == wanted
