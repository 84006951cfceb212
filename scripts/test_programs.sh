#!/usr/bin/env bash
# What the tests run besides Python packages: installs what is missing where it can, and says what to install elsewhere.
set -euo pipefail

need() { # command, Debian package
    command -v "$1" >/dev/null 2>&1 && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "==> Installing $2"
        apt-get update -qq && apt-get install -y -qq -o DPkg::Lock::Timeout=300 "$2" >/dev/null
    else
        echo "the tests need $1, which is not installed (Debian and Ubuntu: sudo apt-get install $2)" >&2
        exit 1
    fi
}
need kubectl kubernetes-client
need chromium chromium
