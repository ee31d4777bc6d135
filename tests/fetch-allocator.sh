#!/bin/sh
# Unpack jemalloc from the machine's own Debian mirror into a folder, without root: a test spends a sixth less CPU time with it.
#
#   tests/fetch-allocator.sh FOLDER
#
# Makes FOLDER/libjemalloc.so.2. Where it cannot be had, tests run without it.
set -eu
[ -e "$1/libjemalloc.so.2" ] && exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || exit 0
mkdir -p "$1"
folder=$(cd "$1" && pwd)
state=$folder/apt
. "$(dirname "$0")/private-apt.sh"
(private_apt update && cd "$folder" && private_apt download libjemalloc2 && dpkg -x libjemalloc2_*.deb tree) >/dev/null 2>&1 || true
cp -L "$folder"/tree/usr/lib/*/libjemalloc.so.2 "$folder/" 2>/dev/null || echo "allocator: no jemalloc; tests run without it" >&2
rm -rf "$state" "$folder/tree" "$folder"/*.deb
