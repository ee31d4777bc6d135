"""What the chart and the kustomizations make, by the real tools, and whether Kubernetes 1.36 would take it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "gpureport"
KUSTOMIZE = ROOT / "deploy" / "kustomize"
TOOLS = ROOT / ".cache" / "deploy-tools"
Manifest = dict[str, Any]


def tool(variable: str, path: Path) -> Path:
    """The program that the variable names, else the one of `make deploy-tools`; the test is skipped without it."""
    found = Path(os.environ.get(variable) or path)
    if not found.exists():
        pytest.skip(f"{path.name} is not here: run `make deploy-tools`, or set {variable}")
    return found


def helm(values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """``rendered`` and ``lint``, or ``error``, of the chart with these values."""
    answer: dict[str, Any] = json.loads(_asked(yaml.safe_dump(dict(values or {}))))
    return answer


def anew(values: Mapping[str, Any]) -> dict[str, Any]:
    """As ``helm``, by a process of its own."""
    answer: dict[str, Any] = json.loads(_asked.__wrapped__(yaml.safe_dump(dict(values))))
    return answer


@cache
def _asked(values: str) -> str:
    python = tool("DEPLOY_TOOLS_PYTHON", TOOLS / "bin" / "python")
    command = [python, Path(__file__).with_name("helm_render.py"), CHART]
    asked = subprocess.run(command, input=values, check=False, capture_output=True, text=True, timeout=120)
    if "No module named" in asked.stderr:
        pytest.skip("helm is not here: `make deploy-tools` could not have it")
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


def chart(values: Mapping[str, Any] | None = None) -> list[Manifest]:
    """The manifests of the chart."""
    answer = helm(values)
    assert "error" not in answer, answer["error"]
    texts = {name: text for name, text in answer["rendered"].items() if not name.endswith(".txt")}
    return [each for name in sorted(texts) for each in yaml.safe_load_all(texts[name]) if each]


@cache
def kustomization(name: str) -> list[Manifest]:
    """The manifests of a kustomization."""
    kubectl = os.environ.get("KUBECTL_BIN") or shutil.which("kubectl")
    if not kubectl:
        pytest.skip("kubectl is not here: install it, or set KUBECTL_BIN")
    made = subprocess.run([kubectl, "kustomize", KUSTOMIZE / name], check=False, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    return list(yaml.safe_load_all(made.stdout))


def refusals(manifests: list[Manifest], folder: Path) -> list[str]:
    """What the API's own schemas, of Kubernetes 1.36 and without fields that they do not know, have against them."""
    program = tool("KUBERNETES_VALIDATE_BIN", TOOLS / "bin" / "kubernetes-validate")
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    told = subprocess.run(
        [program, "-k", "1.36", "--strict", "--no-warn", file], capture_output=True, text=True, timeout=300, check=False
    )
    lines = (told.stdout + told.stderr).splitlines()
    passed = [line for line in lines if " passed for resource " in line]
    wrong = [line for line in lines if line not in passed]
    return wrong if len(passed) == len(manifests) else [*wrong, f"{len(passed)} of {len(manifests)} passed"]


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [each for each in manifests if each["kind"] == kind]


def toml(manifests: list[Manifest]) -> str:
    """The configuration file that the manifests mount."""
    [found] = of_kind(manifests, "ConfigMap")
    text: str = found["data"]["gpureport.toml"]
    return text


def http(manifests: list[Manifest]) -> dict[str, Any]:
    """The HTTP client file beside it; nothing where there is none."""
    [found] = of_kind(manifests, "ConfigMap")
    given: dict[str, Any] = yaml.safe_load(found["data"].get("http.yaml", "{}"))
    return given
