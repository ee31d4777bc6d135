#!/bin/sh
# Unpack Prometheus 2, Prometheus 3, its Pushgateway and VictoriaMetrics from the machine's own Debian mirror into a folder, without root.
#
#   tests/fetch-servers.sh FOLDER
#
# What is there already, or named by PROMETHEUS_BIN, PROMTOOL_BIN, PROMETHEUS3_BIN, PUSHGATEWAY_BIN, VICTORIA_METRICS_BIN, is left alone.
# What cannot be had costs one line; the tests that need it are skipped and say so.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
state=$folder/apt

. "$(dirname "$0")/private-apt.sh"

# The machine's own sources with another suite in place of its release: the mirror stays the one configured here.
sources_of_suite() {
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    mkdir -p "$state/$1"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] && awk -v RS= -v release="$release" -v suite="$1" '
            $0 ~ "(^|\n)Suites:[^\n]*[ \t]" release "([ \t\n]|$)" {
                gsub(/(^|\n)#[^\n]*/, ""); sub(/Suites:[^\n]*/, "Suites: " suite); print $0 "\n"
            }' "$file"
    done > "$state/$1/own.sources"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] && sed -n "s/^\(deb .*\) $release \(.*\)\$/\1 $1 \2/p" "$file"
    done > "$state/$1/own.list"
    [ -s "$state/$1/own.sources" ] || [ -s "$state/$1/own.list" ]
}

# unpack PACKAGE INTO [apt options]: download with the given options and unpack; the folder appears whole.
unpack() {
    package=$1 into=$folder/$2
    shift 2
    staged=$(mktemp -d "$folder/staged.XXXXXX")
    if (cd "$staged" && "$@" download "$package") >"$staged/log" 2>&1 && dpkg -x "$staged"/*.deb "$staged/tree"; then
        rm -rf "$into" && mv "$staged/tree" "$into" && rm -rf "$staged"
    else
        rm -rf "$staged"
        return 1
    fi
}

fetch() {
    [ -d "$folder/$2" ] && return 0
    unpack "$1" "$2" apt-get -qq && return 0
    private_apt update >/dev/null 2>&1 && unpack "$1" "$2" private_apt && return 0
    echo "servers: $1 cannot be had from the package mirror; the tests that need it will be skipped" >&2
}

sid_apt() {
    private_apt -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$state/sid" -o Dir::State::lists="$state/sid-lists" "$@"
}

fetch_newer() {
    [ -d "$folder/prometheus-3" ] && return 0
    mkdir -p "$state/sid-lists/partial"
    if sources_of_suite sid && sid_apt update >/dev/null 2>&1 && unpack prometheus prometheus-3 sid_apt; then
        rm -rf "$state/sid-lists"
        return 0
    fi
    echo "servers: no Prometheus 3 from the package mirror; its tests will be skipped" >&2
}

if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    echo "servers: no apt here; name the programs by PROMETHEUS_BIN, PROMTOOL_BIN, PROMETHEUS3_BIN, VICTORIA_METRICS_BIN" >&2
    exit 0
fi
[ -n "${PROMETHEUS_BIN:-}" ] && [ -n "${PROMTOOL_BIN:-}" ] || fetch prometheus prometheus-2
[ -n "${PUSHGATEWAY_BIN:-}" ] || fetch prometheus-pushgateway pushgateway
[ -n "${VICTORIA_METRICS_BIN:-}" ] || fetch victoria-metrics victoria-metrics
[ -n "${PROMETHEUS3_BIN:-}" ] || fetch_newer
rm -rf "$state"
