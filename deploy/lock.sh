#!/bin/sh
# The image's lock files: what constraints.txt pins, with the hashes of every wheel. Argument: a Python with pip.
set -eu
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"$1" -m pip install --quiet --disable-pip-version-check --target "$tools" uv==0.13.8
lock() {
    source=$1 target=$2
    shift 2
    "$tools/bin/uv" pip compile --quiet --upgrade --python-version 3.11 --python-platform linux --only-binary :all: \
        --generate-hashes --no-header --no-annotate --constraint constraints.txt "$@" "$source" -o "$target"
}
lock pyproject.toml deploy/requirements.lock --extra delta --extra aws --extra google --extra azure
printf 'hatchling\ncyclonedx-bom\n' > "$tools/build-tools.in"
lock "$tools/build-tools.in" deploy/build-tools.lock
