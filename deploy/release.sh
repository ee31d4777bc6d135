#!/bin/sh
# What a release is, of the last commit: wheel, sdist, image context, bill of materials, checksums. The same commit gives the same bytes.
#
#   deploy/release.sh TOOLS FOLDER
#
# TOOLS: a virtual environment of deploy/build-tools.lock (`make release-tools`).
set -eu
umask 022
tools=$(cd "$1" && pwd)
mkdir -p "$2"
target=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct HEAD)
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
tree=$made/gpureport
mkdir "$tree"
git archive HEAD | tar -x -C "$tree"
rm -f "$target"/gpureport-* "$target/SHA256SUMS"

(cd "$tree" && "$tools/bin/python" -m hatchling build -t wheel -t sdist -d "$target" > "$made/told" 2>&1) || {
    cat "$made/told" >&2
    exit 1
}
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' gpureport/__init__.py)

# What the Containerfile copies, and itself: `podman build - < gpureport-VERSION-image.tar.gz`.
copied=$(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' Containerfile)
# shellcheck disable=SC2086
git archive --prefix="" HEAD Containerfile .containerignore $copied | gzip -n9 > "$target/gpureport-$version-image.tar.gz"

"$tools/bin/cyclonedx-py" requirements --output-reproducible --of JSON --pyproject "$tree/pyproject.toml" \
    -o "$target/gpureport-$version.cdx.json" "$tree/deploy/requirements.lock"
(cd "$target" && sha256sum gpureport-* > SHA256SUMS)
