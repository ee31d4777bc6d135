"""A policy engine's rules for pods, those of Pod Security `restricted` among them, against every manifest."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from built_once import built_once

from .rendering import TOOLS, Manifest, chart, of_kind, tool
from .test_manifests import EVERYTHING, made

MEANT = {
    "CKV_K8S_11": "no limit of CPU: a night that is throttled only ends later",
    "CKV_K8S_15": "an image of a version does not change, so it need not be pulled each time",
    "CKV_K8S_38": "the service account's token reads the cluster's state",
    "CKV_K8S_43": "an image without a digest is the reader's choice",
}


RESTRICTED: dict[str, tuple[str, Any]] = {
    "CKV_K8S_16": ("privileged", True),
    "CKV_K8S_20": ("allowPrivilegeEscalation", True),
    "CKV_K8S_37": ("capabilities", {}),
}
"""What Pod Security `restricted` forbids a container, by the rule that says so."""


@pytest.fixture(scope="module")
def checked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine's findings about all manifests, and about charts that break a rule each; it starts once."""
    return built_once("policies", check, request, tmp_path_factory) / "found.json"


def check(folder: Path) -> None:
    for number, name in enumerate(EVERYTHING):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump_all(made(name)))
    for rule in RESTRICTED:
        (folder / f"{rule}.yaml").write_text(yaml.safe_dump_all(breaking(rule)))
    checkov = tool("CHECKOV_BIN", TOOLS / "bin" / "checkov")
    flags = ["--framework", "kubernetes", "--compact", "--skip-download", "-o", "json"]
    told = subprocess.run([checkov, "-d", folder, *flags], capture_output=True, text=True, timeout=300, check=False)
    assert json.loads(told.stdout), told.stderr
    (folder / "found.json").write_text(told.stdout)


def breaking(rule: str) -> list[Manifest]:
    manifests = chart()
    name, value = RESTRICTED[rule]
    for job in of_kind(manifests, "CronJob"):
        [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        container["securityContext"][name] = value
    return manifests


def refused(checked: Path, file: str) -> set[str]:
    """Ids of the rules that a manifest breaks, of more than fifty that were tried on it."""
    results = json.loads(checked.read_text())["results"]
    passed, failed = (
        {each["check_id"] for each in results[f"{outcome}_checks"] if Path(each["file_path"]).stem == file}
        for outcome in ("passed", "failed")
    )
    assert len(passed) > 50
    return failed


@pytest.mark.parametrize("name", EVERYTHING)
def test_no_policy_refuses_a_manifest(name: str, checked: Path) -> None:
    assert refused(checked, str([*EVERYTHING].index(name))) - MEANT.keys() == set()


@pytest.mark.parametrize("rule", RESTRICTED)
def test_the_engine_refuses_what_restricted_forbids(rule: str, checked: Path) -> None:
    assert rule in refused(checked, rule)
