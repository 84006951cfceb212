"""The global flags, and `karmadactl options`, which lists them."""

from __future__ import annotations

import click


def _flag(*names: str, default: object, text: str) -> click.Option:
    return click.Option(names, default=default, help=text)


GLOBAL: tuple[click.Option, ...] = (
    _flag("--add-dir-header", default=False, text="Add the folder of the source file to the header of log lines."),
    _flag("--alsologtostderr", default=False, text="Log to standard error and to files."),
    _flag("--kubeconfig", default="", text="The kubeconfig of the control plane, for commands that need one."),
    _flag("--log-backtrace-at", default=":0", text="Accepted for compatibility."),
    _flag("--log-dir", default="", text="Write logs into this folder, with --logtostderr=false."),
    _flag("--log-file", default="", text="Write logs to this file, with --logtostderr=false."),
    _flag("--log-file-max-size", default=1800, text="Accepted for compatibility."),
    click.Option(["--log-flush-frequency"], default="5s", help="Accepted for compatibility: logs are not buffered."),
    _flag("--logtostderr", default=True, text="Log to standard error rather than to files."),
    _flag("--one-output", default=False, text="Accepted for compatibility: every line is written once."),
    _flag("--skip-headers", default=False, text="Omit the header of log lines: level, time and source."),
    _flag("--skip-log-headers", default=False, text="Accepted for compatibility: log files have no header."),
    _flag(
        "--stderrthreshold", default=2, text="Logs of this level and above go to standard error as well as to files."
    ),
    _flag("-v", "--v", default=0, text="Log level: 0 logs errors, 6 every request, 8 request bodies."),
    _flag("--vmodule", default="", text="Accepted for compatibility."),
)


@click.command()
@click.argument("words", nargs=-1, metavar="")
def options(words: tuple[str, ...]) -> None:  # noqa: ARG001 - kubectl takes and ignores them, too
    """Show the flags that every command accepts.

    \b
    Examples:
      karmadactl options
    """
    from karmada.cli.parsing.help import options_text

    click.echo(f"The following options can be passed to any command:\n\n{options_text(GLOBAL)}")
