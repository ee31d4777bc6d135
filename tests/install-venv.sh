#!/bin/sh
# Debian and Ubuntu ship Python without venv; install it where that is possible, else say what to do.
set -eu
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv
else
    echo "Python's venv module is missing; run: sudo apt-get install python3-venv" >&2
    exit 1
fi
