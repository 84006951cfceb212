"""Command lines are read as kubectl reads them."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.cli.parsing.flags import FlagError, FlagSet, default_text, shown_name
from karmada.cli.parsing.resolving import distance, resolve, suggestions
from karmada.cli.targeting.connect import Duration
from tests.support.cases import cases

FLAGS = [
    click.Option(["-n", "--namespace"], default=""),
    click.Option(["-w", "--watch"], is_flag=True),
    click.Option(["-A", "--all-namespaces"], is_flag=True),
    click.Option(["--wait"], is_flag=True, default=True),
    click.Option(["--color/--no-color"], default=True),
    click.Option(["--cascade"], type=bool, default=True),
    click.Option(["--dry-run"], is_flag=False, flag_value="client", default="none"),
    click.Option(["--tail"], type=int, default=-1),
    click.Option(["--ratio"], type=float, default=1.0),
    click.Option(["-f", "--filename"], multiple=True),
    click.Option(["-q"], default=""),
]


@click.command(params=list(FLAGS))
@click.argument("words", nargs=-1)
def command(words: tuple[str, ...], **_flags: object) -> None:
    """All sorts of flags."""


def values(*args: str) -> dict[str, object]:
    """What the command gets, having been read by us and then by click."""
    reading = FlagSet(FLAGS).read(args)
    off = {str(option.name): False for option in reading.off}
    context = command.make_context("x", [*reading.flags_of(command), *reading.positional()], default_map=off)
    return context.params


@cases(
    (["-n", "x"], {"namespace": "x"}),
    (["-nx"], {"namespace": "x"}),
    (["-n=x"], {"namespace": "x"}),
    (["--namespace=x"], {"namespace": "x"}),
    (["--namespace", "x"], {"namespace": "x"}),
    (["--namespace=a=b"], {"namespace": "a=b"}),
    (["--namespace="], {"namespace": ""}),
    (["--namespace", "--watch"], {"namespace": "--watch", "watch": False}),
    (["-n", "a", "-n", "b"], {"namespace": "b"}),
    (["-wAn", "x"], {"watch": True, "all_namespaces": True, "namespace": "x"}),
    (["-wAnx"], {"watch": True, "all_namespaces": True, "namespace": "x"}),
    (["-w=false"], {"watch": False}),
    (["--watch=t"], {"watch": True}),
    (["--watch", "false"], {"watch": True, "words": ("false",)}),
    (["--watch", "--watch=0"], {"watch": False}),
    ([], {"wait": True, "color": True, "cascade": True, "dry_run": "none"}),
    (["--wait=false"], {"wait": False}),
    (["--wait=false", "--wait"], {"wait": True}),
    (["--color=false"], {"color": False}),
    (["--no-color"], {"color": False}),
    (["--no-color=false"], {"color": True}),
    (["--cascade"], {"cascade": True}),
    (["--cascade=false"], {"cascade": False}),
    (["--dry-run", "pods"], {"dry_run": "client", "words": ("pods",)}),
    (["--dry-run=server", "pods"], {"dry_run": "server", "words": ("pods",)}),
    (["--tail=-5"], {"tail": -5}),
    (["--tail", "-5"], {"tail": -5}),
    (["--ratio", "0.5"], {"ratio": 0.5}),
    (["-f", "a", "--filename=b", "-f-"], {"filename": ("a", "b", "-")}),
    (["-q", "-x"], {"q": "-x"}),
    (["a", "-w", "b", "-", "-n", "x"], {"words": ("a", "b", "-"), "watch": True, "namespace": "x"}),
    (["a", "--", "-w", "--foo"], {"words": ("a", "-w", "--foo"), "watch": False}),
    (["--all_namespaces"], {"all_namespaces": True}),
)
def test_a_flag_may_be_written_in_every_way_kubectl_takes(args: list[str], expected: dict[str, object]) -> None:
    found = values(*args)
    assert {name: found[name] for name in expected} == expected


@cases(
    (["--foo"], "unknown flag: --foo"),
    (["--foo=1"], "unknown flag: --foo"),
    (["-z"], "unknown shorthand flag: 'z' in -z"),
    (["-wzn"], "unknown shorthand flag: 'z' in -zn"),
    (["-n"], "flag needs an argument: 'n' in -n"),
    (["-wn"], "flag needs an argument: 'n' in -wn"),
    (["--namespace"], "flag needs an argument: --namespace"),
    (["---x"], "bad flag syntax: ---x"),
    (["--=x"], "bad flag syntax: --=x"),
    (
        ["--watch=maybe"],
        'invalid argument "maybe" for "-w, --watch" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
    ),
    (["--tail=x"], 'invalid argument "x" for "--tail" flag: strconv.ParseInt: parsing "x": invalid syntax'),
    (["--ratio=x"], 'invalid argument "x" for "--ratio" flag: strconv.ParseFloat: parsing "x": invalid syntax'),
)
def test_what_kubectl_would_not_take_is_refused_in_its_words(args: list[str], problem: str) -> None:
    with pytest.raises(FlagError) as caught:
        FlagSet(FLAGS).read(args)
    assert str(caught.value) == problem


@given(st.lists(st.sampled_from(["-w", "-A", "-n", "x", "--tail=3", "--dry-run", "-f", "a", "--", "-nx", "--wait=0"])))
def test_what_was_read_reads_the_same_once_more(args: list[str]) -> None:
    try:
        once = FlagSet(FLAGS).read(args)
    except FlagError:
        return
    again = FlagSet(FLAGS).read([*once.flags_of(command), *once.positional()])
    assert (again.given, again.words, again.dash) == (
        {option: parts for option, parts in once.given.items() if parts},
        once.words,
        once.dash,
    )


def test_help_is_a_flag_of_every_command() -> None:
    for args in (["--help"], ["-h"], ["-wh"], ["a", "--help=true"]):
        assert FlagSet(FLAGS).read(args).help
    assert not FlagSet(FLAGS).read(["--", "--help"]).help


def test_the_flag_of_a_command_hides_that_of_all_commands() -> None:
    own, shared = click.Option(["--kubeconfig"]), click.Option(["--kubeconfig"])
    assert list(FlagSet([own], [shared]).read(["--kubeconfig=x"]).given) == [own]


@cases(
    (FLAGS[0], "-n, --namespace", "''"),
    (FLAGS[1], "-w, --watch", "false"),
    (FLAGS[3], "--wait", "true"),
    (FLAGS[6], "--dry-run", "'none'"),
    (FLAGS[7], "--tail", "-1"),
    (FLAGS[9], "-f, --filename", "[]"),
    (click.Option(["--x"], type=int), "--x", "0"),
    (click.Option(["--x"]), "--x", "''"),
    (click.Option(["--x"], type=Duration(), default=90.0), "--x", "90s"),
    (click.Option(["--x"], type=Duration(), default="1m0s"), "--x", "1m0s"),
)
def test_help_shows_flags_and_defaults_as_kubectl_does(option: click.Option, name: str, default: str) -> None:
    assert (shown_name(option), default_text(option)) == (name, default)


# commands


@click.group()
def root() -> None:
    """The root."""


@root.command()
@click.argument("words", nargs=-1)
@click.option("-n", "--namespace", default="")
@click.option("-A", "--all-namespaces", is_flag=True)
def get(words: tuple[str, ...], namespace: str, all_namespaces: bool) -> None:
    """Get."""


@root.group()
@click.option("--data-dir", default="")
def sim(data_dir: str) -> None:
    """Groups."""


@sim.command()
@click.argument("words", nargs=-1)
@click.option("--nodes", type=int)
@click.option("--fast", is_flag=True)
def create(words: tuple[str, ...], nodes: int, fast: bool) -> None:
    """Create."""


@sim.group()
@click.argument("name")
def fail(name: str) -> None:
    """A group that takes a word of its own."""


@fail.command()
@click.option("--times", type=int)
def down(times: int) -> None:
    """Down."""


@cases(
    ("get pods", ("get",), "pods"),
    ("-n x get pods", ("get",), "-n x pods"),
    ("-n get get pods", ("get",), "-n get pods"),
    ("-n=x get pods", ("get",), "-n=x pods"),
    ("-A get pods", ("get",), "-A pods"),
    ("--kubeconfig F --namespace N get pods", ("get",), "--kubeconfig F --namespace N pods"),
    ("-v 4 get pods", ("get",), "-v 4 pods"),
    ("--logtostderr get pods", ("get",), "--logtostderr pods"),
    ("sim create a", ("sim", "create"), "a"),
    ("sim --data-dir D create a", ("sim", "create"), "--data-dir D a"),
    ("--nodes 3 sim --fast create a", ("sim", "create"), "--nodes 3 --fast a"),
    ("sim", ("sim",), ""),
    ("sim fail alpha down", ("sim", "fail", "down"), ""),
    ("sim fail down down", ("sim", "fail", "down"), ""),
    ("sim fail --data-dir D alpha --times 3 down", ("sim", "fail", "down"), "--data-dir D --times 3"),
    ("sim fail down --help", ("sim", "fail", "down"), "--help"),
    ("", (), ""),
    ("--help", (), "--help"),
    ("-- get", (), "-- get"),
)
def test_flags_may_stand_before_the_command_they_belong_to(args: str, names: tuple[str, ...], rest: str) -> None:
    found = resolve(root, args.split())
    assert (found.names, " ".join(found.rest)) == (names, rest)


@cases(("get", "get", 0), ("gte", "get", 2), ("", "abc", 3), ("joi", "join", 1))
def test_the_distance_between_words(one: str, other: str, steps: int) -> None:
    assert distance(one, other) == distance(other, one) == steps


def test_a_group_may_take_words_before_its_subcommand() -> None:
    assert resolve(root, ["sim", "fail", "alpha", "down"]).taken == ((), ("alpha",), ())


def test_suggestions_are_words_nearby_and_words_only_begun() -> None:
    assert suggestions("cordn", ["uncordon", "cordon", "get"]) == ["cordon"]
    assert suggestions("api", ["api-versions", "api-resources", "get"]) == ["api-resources", "api-versions"]
