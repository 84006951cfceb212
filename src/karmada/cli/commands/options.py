"""The flags that every command takes, and `karmadactl options`, which shows them."""

from __future__ import annotations

import click


def _flag(*names: str, default: object, text: str) -> click.Option:
    return click.Option(names, default=default, help=text)


GLOBAL: tuple[click.Option, ...] = (
    _flag("--add-dir-header", default=False, text="Put the folder of the source file into the head of log lines."),
    _flag("--alsologtostderr", default=False, text="Log to standard error as well as to files."),
    _flag("--kubeconfig", default="", text="The kubeconfig of the control plane, for commands that need one."),
    _flag("--log-backtrace-at", default=":0", text="Accepted for compatibility."),
    _flag("--log-dir", default="", text="Write logs into this folder, with --logtostderr=false."),
    _flag("--log-file", default="", text="Write logs to this file, with --logtostderr=false."),
    _flag("--log-file-max-size", default=1800, text="Accepted for compatibility."),
    click.Option(["--log-flush-frequency"], default="5s", help="Accepted for compatibility: nothing is held back."),
    _flag("--logtostderr", default=True, text="Log to standard error rather than to files."),
    _flag("--one-output", default=False, text="Accepted for compatibility: every line is written once."),
    _flag("--skip-headers", default=False, text="Leave out the head of log lines: level, time and place."),
    _flag("--skip-log-headers", default=False, text="Accepted for compatibility: log files have no head."),
    _flag("--stderrthreshold", default=2, text="From which level on logs go to standard error besides files."),
    _flag("-v", "--v", default=0, text="How much to log: 0 is what went wrong, 6 is every request, 8 what it sent."),
    _flag("--vmodule", default="", text="Accepted for compatibility."),
)


@click.command()
@click.argument("words", nargs=-1, metavar="")
def options(words: tuple[str, ...]) -> None:  # noqa: ARG001 - kubectl takes and ignores them, too
    """Show the flags that every command takes.

    \b
    Examples:
      karmadactl options
    """
    from karmada.cli.parsing.help import options_text

    click.echo(f"The following options can be passed to any command:\n\n{options_text(GLOBAL)}")
