#!/bin/sh
# Known vulnerabilities of what the image installs, by pip-audit; argument: a Python with venv.
#
# Fails where there are any. Where the service cannot be reached, or answers for no package, that is one line and no failure:
# nothing was audited then.
set -eu
tools=.cache/audit
[ -x "$tools/bin/pip-audit" ] || {
    "$1" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1 || {
        rm -rf "$tools"
        echo "audit: pip-audit cannot be had from the package index; nothing was audited" >&2
        exit 0
    }
}
found=$(mktemp)
trap 'rm -f "$found" "$found.log"' EXIT
status=0
"$tools/bin/pip-audit" --requirement deploy/requirements.lock --disable-pip --progress-spinner off --timeout 15 \
    --format json --output "$found" 2>"$found.log" || status=$?
"$tools/bin/python" - "$found" "$status" <<'PYTHON'
import json, sys
try:
    packages = json.load(open(sys.argv[1]))["dependencies"]
except ValueError:
    sys.exit(print("audit: the service of known vulnerabilities cannot be reached; nothing was audited"))
audited = [each for each in packages if "skip_reason" not in each]
bad = [(each["name"], each["version"], known["id"]) for each in audited for known in each["vulns"]]
if not audited:
    print(f"audit: the service of known vulnerabilities answers for none of {len(packages)} packages; nothing was audited")
else:
    print(f"audit: {len(audited)} of {len(packages)} packages were audited, {len(bad)} known vulnerabilities")
for each in bad:
    print("audit:", *each)
sys.exit(bool(bad))
PYTHON
