"""`karmadactl completion`: scripts for shells. The candidates come from the program itself (see complete)."""

from __future__ import annotations

import click

from karmada.cli.parsing import program
from karmada.cli.targeting import connect

_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Completion of {name} for {shell}.
"""

_BASH = r"""
__@FUNCTION@_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" own="${COMP_WORDS[COMP_CWORD]}" cur prefix out directive value
    local -a words
    read -ra words <<< "$line"
    case "$line" in *[[:space:]]) words+=("") ;; esac
    cur="${words[${#words[@]}-1]}"
    # bash takes words apart at = and :, and wants only the last piece back
    case "$own" in "=" | ":") own="" ;; esac
    prefix="${cur%"$own"}"
    out="$(@NAME@ __complete "${words[@]:1}" 2>/dev/null)" || return 0
    directive="${out##*:}"
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        case "$value" in "" | ":$directive") continue ;; esac
        case "$value" in "$cur"*) COMPREPLY+=("${value#"$prefix"}") ;; esac
    done <<< "$out"
    if type compopt >/dev/null 2>&1; then
        (( directive & 2 )) && compopt -o nospace
        (( directive & 4 )) || compopt -o default
    fi
    return 0
}
complete -F __@FUNCTION@_complete @NAME@
"""

_ZSH = r"""
_@FUNCTION@() {
    local -a lines found spaces
    local line directive value about
    lines=("${(@f)$(@NAME@ __complete "${(@)words[2,CURRENT-1]}" "${words[CURRENT]}" 2>/dev/null)}")
    directive="${lines[-1]#:}"
    for line in "${(@)lines[1,-2]}"; do
        value="${line%%$'\t'*}"
        about="${line#*$'\t'}"
        [[ "$line" == *$'\t'* ]] && found+=("${value//:/\\:}:$about") || found+=("${value//:/\\:}")
    done
    (( directive & 2 )) && spaces=(-S '')
    if (( ${#found} )); then
        _describe -V 'values' found $spaces
    elif (( ! (directive & 4) )); then
        _files
    fi
}
if [ "$funcstack[1]" = "_@FUNCTION@" ]; then
    _@FUNCTION@ "$@"
else
    compdef _@FUNCTION@ @NAME@
fi
"""

_FISH = r"""
function __@FUNCTION@_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l lines (@NAME@ __complete $words[2..-1] "$cur" 2>/dev/null)
    set -l directive (string replace ':' '' -- $lines[-1])
    set -e lines[-1]
    if test (count $lines) -gt 0
        printf '%s\n' $lines
    else if test "$directive" = 0
        __fish_complete_path "$cur"
    end
end
complete -c @NAME@ -f -a '(__@FUNCTION@_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def script(shell: str, name: str) -> str:
    head = _HEAD.format(name=name, shell=shell)
    body = SCRIPTS[shell].replace("@NAME@", name).replace("@FUNCTION@", name.replace("-", "_"))
    return (f"#compdef {name}\n" if shell == "zsh" else "") + head + body


@click.command()
@click.argument("shells", nargs=-1, metavar="SHELL")
def completion(shells: tuple[str, ...]) -> None:
    """Print the script that completes commands, flags, resources and clusters in bash, zsh or fish.

    \b
    Examples:
      # In this shell, until it ends
      source <(karmadactl completion bash)
    \b
      # In every shell from now on
      karmadactl completion bash > ~/.local/share/bash-completion/completions/karmadactl
      karmadactl completion zsh > "${fpath[1]}/_karmadactl"
      karmadactl completion fish > ~/.config/fish/completions/karmadactl.fish
    """
    problem = ""
    if not shells:
        problem = "Shell not specified."
    elif len(shells) > 1:
        problem = "Too many arguments. Expected only the shell type."
    elif shells[0] not in SCRIPTS:
        problem = f'Unsupported shell type "{shells[0]}".'
    if problem:
        raise connect.failure(f"{problem}\nSee '{program.command()} completion -h' for help and examples")
    click.echo(script(shells[0], program.binary()))
