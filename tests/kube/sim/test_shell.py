from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.sim.kubelet.filesystem import FileSystem, Mount, Volume
from karmada.kube.sim.kubelet.machine import Machine, Reply
from karmada.kube.sim.kubelet.shell import execute, interactive, is_shell
from karmada.kube.sim.kubelet.shell_grammar import parse
from karmada.kube.sim.kubelet.shell_words import ScriptError
from tests.support.cases import cases


class Ends:
    """An Io in memory."""

    def __init__(self, stdin: bytes = b"") -> None:
        self.stdin = [stdin] if stdin else []
        self.stdout = b""
        self.stderr = b""
        self.slept = 0.0

    async def read(self) -> bytes:
        return self.stdin.pop(0) if self.stdin else b""

    async def out(self, data: bytes) -> None:
        self.stdout += data

    async def err(self, data: bytes) -> None:
        self.stderr += data

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds

    async def attend(self, work: object) -> int:
        return await work  # type: ignore[misc]


def machine(**parts: object) -> Machine:
    env = {"PATH": "/bin", "HOSTNAME": "web-0", "HOME": "/root", "GREETING": "good day"}
    files = {"/etc/config/a.txt": b"alpha\n", "/etc/config/b.txt": b"beta\n", "/run.sh": b"echo $1 $#\nexit 6\n"}
    made: dict[str, Any] = {
        "hostname": "web-0",
        "env": env,
        "files": FileSystem.of(files),
        "now": lambda: 1_700_000_000.0,
        **parts,
    }
    return Machine(**made)


async def run(*command: str, stdin: bytes = b"", **parts: object) -> tuple[int, str, str]:
    ends = Ends(stdin)
    code = await execute(machine(**parts), list(command), ends)
    return code, ends.stdout.decode(), ends.stderr.decode()


@cases(
    (["echo", "hi", "there"], "hi there\n"),
    (["echo", "-n", "hi"], "hi"),
    (["echo", "-e", r"a\tb"], "a\tb\n"),
    (["/bin/echo", "$HOME"], "$HOME\n"),
    (["printf", r"%s is %s\n", "x", "y"], "x is y\n"),
    (["cat", "/etc/config/a.txt", "/etc/config/b.txt"], "alpha\nbeta\n"),
    (["hostname"], "web-0\n"),
    (["printenv", "GREETING"], "good day\n"),
    (["env", "A=1", "printenv", "A"], "1\n"),
    (["pwd"], "/\n"),
    (["ls", "/etc/config"], "a.txt\nb.txt\n"),
    (["ls", "/"], "dev\netc\nrun.sh\ntmp\n"),
    (["whoami"], "root\n"),
    (["id", "-u"], "0\n"),
    (["date"], "Tue Nov 14 22:13:20 UTC 2023\n"),
)
async def test_programs_print_what_their_namesakes_do(command: list[str], output: str) -> None:
    assert await run(*command) == (0, output, "")


async def test_env_shows_everything() -> None:
    _, output, _ = await run("env")
    assert "GREETING=good day\n" in output
    assert output.count("\n") == 4


@cases(
    (["true"], 0, ""),
    (["false"], 1, ""),
    (["cat", "/nowhere"], 1, "cat: can't open '/nowhere': No such file or directory\n"),
    (["cat", "/etc"], 1, "cat: read error: Is a directory\n"),
    (["ls", "/nowhere"], 1, "ls: /nowhere: No such file or directory\n"),
    (["printenv", "NOTHING"], 1, ""),
    (["sleep", "soon"], 1, "sleep: invalid number 'soon'\n"),
    (["sh", "-c", "nosuch"], 127, "sh: nosuch: not found\n"),
    (["sh", "/nowhere.sh"], 2, "sh: can't open '/nowhere.sh': No such file or directory\n"),
    (["sh", "-c", "cd /nowhere"], 2, "sh: cd: can't cd to /nowhere: No such file or directory\n"),
    (["sh", "-c", "echo x > /nowhere/f"], 1, "sh: can't create /nowhere/f: nonexistent directory\n"),
    (["sh", "-c", "echo x > /etc/config/a.txt"], 1, "sh: can't create /etc/config/a.txt: Read-only file system\n"),
    (["sh", "-c", "cat < /nowhere"], 1, "sh: can't open /nowhere: no such file\n"),
    (["sh", "-c", "rm /nowhere"], 1, "rm: /nowhere: No such file or directory\n"),
    (["sh", "-c", "rm /tmp"], 1, "rm: /tmp: is a directory\n"),
    (["sh", "-c", "mkdir /tmp"], 1, "mkdir: /tmp: File exists\n"),
    (["sh", "-c", "[ one -eq 1 ]"], 2, "sh: bad number 'one'\n"),
    (["sh", "-c", "expr 1 / 0"], 2, "expr: division by zero\n"),
    (["sh", "-c", "while true; do :; done"], 2, "sh: too many steps\n"),
    (["sh", "-c", "while true; do echo"], 2, "sh: syntax error: unexpected end of file\n"),
    (["sh", "-c", "if true; then fi"], 2, 'sh: syntax error: unexpected "fi"\n'),
    (["sh", "-c", "case a in a) echo;; esac"], 2, 'sh: syntax error: unexpected "case"\n'),
    (["sh", "-c", "f() { true; }"], 2, 'sh: syntax error: unexpected "("\n'),
    (["sh", "-c", "sleep 1 &"], 2, 'sh: syntax error: unexpected "&"\n'),
    (["sh", "-c", "eval true"], 2, "sh: not supported in a simulated container\n"),
    (["sh", "-c", "echo 'a"], 2, "sh: syntax error: unterminated quoted string\n"),
    (["sh", "-c", "echo $(hostname"], 2, "sh: syntax error: unterminated substitution\n"),
    (["sh", "-c", "&& a"], 2, 'sh: syntax error: unexpected "&&"\n'),
)
async def test_failures_have_a_code_and_a_complaint(command: list[str], code: int, complaint: str) -> None:
    assert await run(*command) == (code, "", complaint)


async def test_a_program_that_is_not_there_is_127() -> None:
    code, output, complaint = await run("nosuch", "-x")
    assert (code, output) == (127, "")
    assert 'exec: "nosuch": executable file not found in $PATH' in complaint


async def test_what_only_a_shell_knows_is_no_program() -> None:
    assert (await run("cd", "/"))[0] == 127
    assert (await run("exit", "3"))[0] == 127


@cases(
    ("echo a; echo b", "a\nb\n", 0),
    ("echo a && echo b", "a\nb\n", 0),
    ("false && echo b", "", 1),
    ("false || echo b", "b\n", 0),
    ("true || echo b | cat", "", 0),
    ("false && echo b | cat; echo c", "c\n", 0),
    ("false; echo $?", "1\n", 0),
    ("exit 3; echo never", "", 3),
    ("echo $HOSTNAME", "web-0\n", 0),
    ("echo '$HOSTNAME' \"$HOSTNAME\" ${HOSTNAME}x", "$HOSTNAME web-0 web-0x\n", 0),
    ("echo ${NOTHING:-else}", "else\n", 0),
    ("X=1; echo $X$X", "11\n", 0),
    ("X=1 printenv X; printenv X", "1\n", 1),
    ("export X='a  b'; sh -c 'echo \"$X\"; echo $X'", "a  b\na b\n", 0),
    ("cat /etc/config/a.txt | cat", "alpha\n", 0),
    ("cd /etc/config && cat a.txt && pwd", "alpha\n/etc/config\n", 0),
    ("echo out; echo err >&2", "out\n", 0),
    ("nosuch 2>/dev/null; echo $?", "127\n", 0),
    ("nosuch 2>&1 | cat", "sh: nosuch: not found\n", 0),
    ("echo gone > /dev/null", "", 0),
    ("# only words\necho a # and more\n\n", "a\n", 0),
    ("[ -f /etc/config/a.txt ] && echo yes", "yes\n", 0),
    ("test -d /nowhere || echo no", "no\n", 0),
    ('[ "$GREETING" = "good day" ] && echo same', "same\n", 0),
    ("sh /run.sh one two", "one 2\n", 6),
    ("if true; then echo a; else echo b; fi", "a\n", 0),
    ("if false; then echo a; elif [ 2 -gt 1 ]; then echo b; else echo c; fi", "b\n", 0),
    ("if false\nthen\n echo a\nelse\n echo c\nfi", "c\n", 0),
    ("if [[ -r /etc/config/a.txt ]]; then exit 4; fi", "", 4),
    ("if ! [ -f /tmp/x ]; then touch /tmp/x; fi; [ -f /tmp/x ] && echo there", "there\n", 0),
    ("! true; echo $?", "1\n", 0),
    ("for i in 1 2 3; do if [ $i = 2 ]; then continue; fi; echo $i; done", "1\n3\n", 0),
    ("for i in 1 2 3; do [ $i -ge 2 ] && break; echo $i; done; echo $i", "1\n2\n", 0),
    ("i=0; while [ $i -lt 3 ]; do echo $i; i=$((i + 1)); done", "0\n1\n2\n", 0),
    ("i=3; until [ $i -eq 0 ]; do i=$(expr $i - 1); done; echo $i", "0\n", 0),
    ("for f in /etc/config/*; do echo $f; done", "/etc/config/a.txt\n/etc/config/b.txt\n", 0),
    ("cd /etc/config; echo *.txt '*.txt' *.none", "a.txt b.txt *.txt *.none\n", 0),
    ("echo $(hostname) `echo b` \"$(printf 'a  b')\"", "web-0 b a  b\n", 0),
    ("x=$(false) || echo failed", "failed\n", 0),
    ("x='a  b'; y=$x; echo \"$y\"", "a  b\n", 0),
    ("exit $(expr 7 % 2)", "", 1),
    ("exit $((2 * (3 + 4) / 2))", "", 7),
    ("(cd /etc; X=1; exit 3); echo $? $(pwd) $X.", "3 / .\n", 0),
    ("{ echo a; echo b; } | wc -l", "2\n", 0),
    ("echo one > /tmp/f; echo two >> /tmp/f; cat /tmp/f; wc -l < /tmp/f", "one\ntwo\n2\n", 0),
    ("mkdir -p /tmp/a/b && touch /tmp/a/b/c && ls /tmp/a/b && rm -r /tmp/a && ls /tmp", "c\n", 0),
    ("if true; then echo a; echo b; fi > /tmp/f; cat /tmp/f", "a\nb\n", 0),
    ("{ echo out; echo err >&2; } > /tmp/f 2>&1; cat /tmp/f", "out\nerr\n", 0),
    ("seq 2 | cat; seq 3 -1 2", "1\n2\n3\n2\n", 0),
    ("set -e; false; echo never", "", 1),
    ("set -e; if false; then :; fi; false || true; echo on", "on\n", 0),
    ("exec echo last; echo never", "last\n", 0),
    ("[ -s /etc/config/a.txt -a -d /etc ] && [ a = b -o -n x ] && echo both", "both\n", 0),
    ("expr abc = abc; expr 2 \\* 3; expr 3 '>' 2", "1\n6\n1\n", 0),
    ("sh -c 'exit 5' || echo $?", "5\n", 0),
    ("trap 'echo bye' EXIT; unset HOME; echo [$HOME]", "[]\n", 0),
    (r"echo a\ b \"c\"", 'a b "c"\n', 0),
    ("", "", 0),
)
async def test_scripts_do_what_a_shell_does(script: str, output: str, code: int) -> None:
    ends = Ends()
    assert await execute(machine(), ["sh", "-c", script], ends) == code
    assert ends.stdout.decode() == output


async def test_arguments_of_a_script_are_counted_behind_its_name() -> None:
    assert await run("sh", "-c", 'echo $0 $1 "$@"', "name", "one", "two") == (0, "name one one two\n", "")


async def test_stdin_is_read_by_cat_and_by_a_shell() -> None:
    assert await run("cat", stdin=b"from outside") == (0, "from outside", "")
    assert await run("sh", stdin=b"echo a\necho b\nexit 4\necho c\n") == (4, "a\nb\n", "")
    assert await run("bash", "-x", stdin=b"echo last") == (0, "last\n", "")


async def test_sleep_sleeps_on_the_clock_it_is_given() -> None:
    ends = Ends()
    assert await execute(machine(), ["sh", "-c", "sleep 1m; sleep 0.5"], ends) == 0
    assert ends.slept == 60.5


async def test_configured_replies_go_first() -> None:
    def reply(line: str) -> Reply | None:
        return Reply(b"PONG\n", b"warm\n", 9, 2.0) if line.startswith("redis-cli") else None

    ends = Ends()
    assert await execute(machine(reply=reply), ["redis-cli", "ping"], ends) == 9
    assert (ends.stdout, ends.stderr, ends.slept) == (b"PONG\n", b"warm\n", 2.0)
    assert await run("sh", "-c", "redis-cli ping", reply=reply) == (9, "PONG\n", "warm\n")


async def test_at_a_terminal_a_shell_prompts_until_exit_or_the_end_of_input() -> None:
    ends = Ends()
    ends.stdin = [b"echo hi\n", b"cd /etc\n", b"exit 5\n", b"echo never\n"]
    assert await interactive(machine(), ends) == 5
    assert ends.stdout == b"/ # hi\n/ # /etc # "
    ended = Ends()
    ended.stdin = [b"false\n"]
    assert await interactive(machine(), ended) == 1


def test_a_shell_is_one_that_has_no_script() -> None:
    assert is_shell(machine(), ["/bin/sh"])
    assert not is_shell(machine(), ["sh", "-c", "true"])
    assert not is_shell(machine(), ["cat"])
    assert not is_shell(machine(reply=lambda _line: Reply()), ["sh"])


SCRAPS = (
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "for", "in", "(", ")", "{", "}", ";", "\n",
    "&", "&&", "|", ">", "<", "!", "$(", "$((", "`", '"', "x", "2>&1",
)  # fmt: skip


@given(st.text(), st.lists(st.sampled_from(SCRAPS)))
def test_no_script_breaks_the_parser(text: str, words: list[str]) -> None:
    for script in (text, " ".join(words)):
        try:
            parse(script)
        except ScriptError:
            continue


@given(st.lists(st.text(st.characters(exclude_characters="'", exclude_categories=["Cs"])), min_size=1))
def test_quoted_words_arrive_as_they_were(words: list[str]) -> None:
    quoted = " ".join(f"'{word}'" for word in words)
    ends = Ends()
    asyncio.run(execute(machine(), ["sh", "-c", f'for w in {quoted}; do echo -n "$w"; echo -n .; done'], ends))
    shown = [word for word in words if not word.startswith("-")]
    assert len(shown) < len(words) or ends.stdout.decode() == "".join(f"{word}." for word in words)


async def test_variables_cannot_grow_beyond_what_a_command_line_holds() -> None:
    script = "a=0123456789; " + "a=$a$a; " * 40 + "echo $a"
    code, _, err = await run("sh", "-c", script)
    assert code != 0
    assert "argument list too long" in err


RECURSIVE = "echo '{ { { { { sh /tmp/f; }; }; }; }; }' > /tmp/f; sh /tmp/f"


@cases("(" * 100 + "true" + ")" * 100, "echo " + "$(echo " * 100 + "a" + ")" * 100, "env " * 500 + "true", RECURSIVE)
async def test_nesting_has_an_end(script: str) -> None:
    code, _, _ = await run("sh", "-c", script)
    assert code != 0


async def test_output_that_is_kept_has_an_end() -> None:
    code, _, err = await run("sh", "-c", "x=0123456789; for i in $(seq 20); do x=$x$x; done; echo $x | cat")
    assert code != 0
    assert "too long" in err


async def test_a_volume_is_shared_by_its_containers_and_has_a_size() -> None:
    shared = Volume()
    one = machine(files=FileSystem({"/a": Mount(shared)}))
    other = machine(files=FileSystem({"/b": Mount(shared, "deep", writable=False)}))
    assert await execute(one, ["sh", "-c", "mkdir /a/deep; echo hi > /a/deep/f"], Ends()) == 0
    ends = Ends()
    assert await execute(other, ["sh", "-c", "cat /b/f; echo x > /b/f"], ends) == 1
    assert (ends.stdout, ends.stderr) == (b"hi\n", b"sh: can't create /b/f: Read-only file system\n")
    ends = Ends()
    script = "x=$(seq 10000); for i in $(seq 100); do echo $x >> /a/f || exit 9; done"
    assert await execute(one, ["sh", "-c", script], ends) == 9
    assert b"No space left on device" in ends.stderr


async def test_patterns_find_files_in_mounts_of_mounts() -> None:
    deep = Volume({"sub/a/x.txt": b"", "sub/b/y.txt": b"", "sub/.hidden/z.txt": b"", "other/q.txt": b""})
    files = FileSystem({"/v": Mount(deep, "sub"), "/v/b": Mount(Volume({"new.txt": b""}))})
    ends = Ends()
    assert await execute(machine(files=files), ["sh", "-c", "echo /v/*/*.txt /v/* /?/b; cd /v; echo */x*"], ends) == 0
    assert ends.stdout == b"/v/a/x.txt /v/b/new.txt /v/a /v/b /v/b\na/x.txt\n"


async def test_lines_that_are_not_complete_wait_for_the_next() -> None:
    ends = Ends()
    ends.stdin = [b"if true\n", b"then echo a\n", b"fi\n", b"exit 2\n"]
    assert await interactive(machine(), ends) == 2
    assert ends.stdout == b"/ # > > a\n/ # "
    assert await run("sh", stdin=b"for i in 1 2\ndo echo $i\ndone\n") == (0, "1\n2\n", "")
