"""The rules that are handed to a cluster's owner allow exactly what is listed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpureport.collect.state import KINDS

ROOT = Path(__file__).parents[2]
MANUAL = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL)
BASE = [(ROOT / "deploy" / "kustomize" / "base" / "account.yaml").read_text()]


def roles(texts: Iterable[str]) -> list[dict[str, Any]]:
    objects = [each for text in texts for each in yaml.safe_load_all(text)]
    return [each for each in objects if each.get("kind") == "ClusterRole"]


@pytest.mark.parametrize("texts", [MANUAL, BASE], ids=["manual", "kustomize"])
def test_the_rules_allow_reading_what_is_listed_and_nothing_else(texts: list[str]) -> None:
    [role] = roles(texts)
    rules = [rule for rule in role["rules"] if "resources" in rule]
    allowed = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    listed = {(kind.group, kind.resource) for kind in KINDS}
    assert allowed >= listed
    assert {group for group, _ in allowed} == {kind.group for kind in KINDS}
    assert {name for _, name in allowed} == {kind.resource for kind in KINDS}
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list"}
    [paths] = [rule for rule in role["rules"] if "nonResourceURLs" in rule]
    assert paths == {"nonResourceURLs": ["/apis", "/version"], "verbs": ["get"]}
