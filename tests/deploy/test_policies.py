"""A policy engine's rules for pods, those of Pod Security `restricted` among them, against every manifest."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .rendering import TOOLS, Manifest, chart, kustomization, of_kind, tool
from .test_manifests import CHARTS, EVERYTHING

MEANT = {
    "CKV_K8S_11": "no limit of CPU: a night that is throttled only ends later",
    "CKV_K8S_15": "an image of a version does not change, so it need not be pulled each time",
    "CKV_K8S_38": "the service account's token reads the cluster's state",
    "CKV_K8S_43": "an image without a digest is the reader's choice",
}


def refused(manifests: list[Manifest], folder: Path) -> set[str]:
    """Ids of the rules that some manifest breaks."""
    checkov = tool("CHECKOV_BIN", TOOLS / "bin" / "checkov")
    (folder / "manifests.yaml").write_text(yaml.safe_dump_all(manifests))
    flags = ["--framework", "kubernetes", "--compact", "--quiet", "--skip-download", "-o", "json"]
    told = subprocess.run(
        [checkov, "-f", folder / "manifests.yaml", *flags], capture_output=True, text=True, timeout=300, check=False
    )
    found: Any = json.loads(told.stdout)
    assert found["summary"]["passed"] > 50, told.stderr
    return {each["check_id"] for each in found["results"]["failed_checks"]}


@pytest.mark.parametrize("name", EVERYTHING)
def test_no_policy_refuses_a_manifest(name: str, tmp_path: Path) -> None:
    made = chart(CHARTS[name]) if name in CHARTS else kustomization(name.removeprefix("kustomize "))
    assert refused(made, tmp_path) - MEANT.keys() == set()


RESTRICTED: dict[str, tuple[str, Any]] = {
    "CKV_K8S_16": ("privileged", True),
    "CKV_K8S_20": ("allowPrivilegeEscalation", True),
    "CKV_K8S_37": ("capabilities", {}),
}
"""What Pod Security `restricted` forbids a container, by the rule that says so."""


@pytest.mark.parametrize("rule", RESTRICTED)
def test_the_engine_refuses_what_restricted_forbids(rule: str, tmp_path: Path) -> None:
    made = chart()
    name, value = RESTRICTED[rule]
    for job in of_kind(made, "CronJob"):
        [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        container["securityContext"][name] = value
    assert rule in refused(made, tmp_path)
