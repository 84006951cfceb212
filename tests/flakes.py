"""`python -m tests.flakes RECORD ... [-- WORD ...]`: repeat alone what failed, and tell flakes from failures.

A session of pytest with `--record FILE` leaves a record of what failed. After all sessions have ended, each failed test
runs again in a process of its own with nothing beside it, twice at most; the words are for pytest. One that passes then
is a flake: a defect, but not one of the change that is tested. It is shown and added to `build/flakes.json`. What fails
again is a failure, and so is a flake that `tests/flakes.json` lists: it was to be mended. More than MOST failures are
not repeated: they are no accident.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

KNOWN = Path("tests/flakes.json")
FOUND = Path("build/flakes.json")
MOST = 5
REPETITIONS = 2
_MESSAGE_LENGTH = 2000


@dataclass
class Failure:
    """What is repeated together: one test, or all that a broken fixture or a dead worker has failed."""

    name: str
    tests: list[str]
    message: str


@dataclass
class Record:
    """What a session leaves. Without its verdict, or if it ended early, nobody knows what else would have failed."""

    whole: bool = False
    failures: list[Failure] = field(default_factory=list)

    def save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, file: Path) -> Record:
        if not file.exists():
            return cls()
        loaded = json.loads(file.read_text())
        return cls(loaded["whole"], [Failure(**failure) for failure in loaded["failures"]])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, metavar="FILE", help="Where to write what failed, for tests.flakes.")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("record"):
        config.pluginmanager.register(Recorder(file))


class Recorder:
    """A plug-in of pytest."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._record = Record(whole=True)
        file.unlink(missing_ok=True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._record.whole &= not report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        message, test = message_of(report), report.nodeid
        file = test.partition("::")[0]
        if message.startswith("The worker died"):  # it may be an earlier test of the file that broke it
            self._add(Failure(file, [file], message))
        elif report.when == "setup":
            self._add(Failure(file, [test], message))
        else:
            self._add(Failure(test.partition("[")[0], [test], message))

    def _add(self, new: Failure) -> None:
        for failure in self._record.failures:
            if (failure.name, failure.message) == (new.name, new.message):
                failure.tests += [test for test in new.tests if test not in failure.tests]
                return
        self._record.failures.append(new)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        ran = exitstatus == (pytest.ExitCode.TESTS_FAILED if self._record.failures else pytest.ExitCode.OK)
        self._record.whole &= ran and not session.shouldfail and not session.shouldstop
        self._record.save(self._file)


def message_of(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else report.longreprtext)[:_MESSAGE_LENGTH]


def repeated(failure: Failure, words: list[str]) -> bool:
    """Whether it passes now."""
    command = [sys.executable, "-m", "pytest", *words, *failure.tests]
    for number in range(1, REPETITIONS + 1):
        print(f"==> {failure.name}: once more, alone ({number} of {REPETITIONS})", flush=True)
        if subprocess.run(command, check=False).returncode == 0:
            return True
    return False


def read(ledger: Path) -> dict[str, str]:
    """Flakes by name, each with what it said."""
    found: dict[str, str] = json.loads(ledger.read_text()) if ledger.exists() else {}
    return found


def judge(failures: list[Failure], words: list[str]) -> int:
    """Repeat them; 0 if each is a flake that was not known."""
    flakes = [failure for failure in failures if repeated(failure, words)]
    if flakes:
        FOUND.parent.mkdir(exist_ok=True)
        FOUND.write_text(json.dumps(read(FOUND) | {flake.name: flake.message for flake in flakes}, indent=2) + "\n")
    known = read(KNOWN)
    failed = False
    for failure in failures:
        if failure not in flakes:
            verdict = "FAILED again"
        elif failure.name in known:
            verdict = f"FLAKE, as before: {KNOWN} lists it, so the run fails"
        else:
            verdict = f"FLAKE: passes alone; add it to {KNOWN}, or better mend it"
        failed |= failure not in flakes or failure.name in known
        print(f"==> {failure.name}: {verdict}\n{indented(failure.message)}", flush=True)
    return int(failed)


def indented(message: str) -> str:
    return "\n".join(f"    {line}" for line in message.splitlines())


def run(files: Iterable[Path], words: list[str]) -> int:
    records = {file: Record.load(file) for file in files}
    for file, record in records.items():
        if not record.whole:
            print(f"==> The session of {file} did not come to its end: nothing is repeated")
            return 1
    failures = [failure for record in records.values() for failure in record.failures]
    if not failures:
        print("==> No test failed, but a session did")
        return 1
    if len(failures) > MOST:
        print(f"==> {len(failures)} failures: more than {MOST} are no accident, nothing is repeated")
        return 1
    return judge(failures, words)


def main() -> None:
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    sys.exit(run(map(Path, words[:at]), words[at + 1 :]))


if __name__ == "__main__":
    main()
