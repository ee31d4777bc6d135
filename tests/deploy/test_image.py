"""The image: its Containerfile is clean, its lock is what is tested with, and its steps make a program that runs as it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from .containerfile import build, instructions, run_read_only
from .rendering import ROOT, TOOLS, tool

CONTAINERFILE = ROOT / "Containerfile"


def pins(text: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_hadolint_has_nothing_against_it() -> None:
    told = subprocess.run(
        [tool("HADOLINT_BIN", TOOLS / "bin" / "hadolint"), CONTAINERFILE], check=False, capture_output=True, text=True
    )
    assert (told.returncode, told.stdout) == (0, "")


def test_every_base_is_named_by_a_digest_that_the_builder_gives_and_the_user_is_nobody() -> None:
    steps = instructions(CONTAINERFILE.read_text())
    assert [each.rest.split()[0] for each in steps if each.word == "FROM"] == ["${PYTHON_IMAGE}@${PYTHON_DIGEST}"] * 2
    assert "PYTHON_DIGEST" in [each.rest for each in steps if each.word == "ARG"]  # without a default
    assert [each.rest for each in steps if each.word == "USER"] == ["65532:65532"]


def test_the_builder_is_given_what_the_steps_copy_and_nothing_else() -> None:
    copied = [each.rest.split() for each in instructions(CONTAINERFILE.read_text()) if each.word == "COPY"]
    from_here = {name for words in copied if not words[0].startswith("--from=") for name in words[:-1]}
    nothing, *exceptions, caches = (ROOT / ".containerignore").read_text().split()
    assert (nothing, caches) == ("*", "**/__pycache__")
    assert {each.removeprefix("!") for each in exceptions} == from_here


def test_the_lock_holds_what_is_tested_with_by_hash_and_all_that_the_program_needs() -> None:
    text = (ROOT / "deploy" / "requirements.lock").read_text()
    locked = pins(text)
    tested = pins((ROOT / "constraints.txt").read_text())
    assert {name: version for name, version in locked.items() if tested.get(name, version) != version} == {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", each)[0]).lower() for each in project["dependencies"]}  # type: ignore[index]
    assert names - locked.keys() == set(), "run 'make lock'"
    entries = re.split(r"\n(?=[\w.-]+==)", text)
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def compiled_in(folder: Path) -> Counter[str]:
    """How often each loop is there as machine code."""
    return Counter(path.name.partition("-")[0].rpartition(".")[2] for path in folder.rglob("*.nbc"))


def every_loop() -> set[str]:
    source = "".join(path.read_text() for path in (ROOT / "gpureport").rglob("*.py"))
    return {*re.findall(r"^@compiled\ndef (\w+)", source, re.MULTILINE)}


@pytest.mark.skipif(not os.environ.get("GPUREPORT_IMAGE_STEPS"), reason="installs everything anew: `make image-steps` does it")
def test_the_steps_make_a_program_that_runs_as_nobody_where_nothing_else_can_be_written(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root may mount, and change to the image's user")
    image = build(CONTAINERFILE, tmp_path)
    bill = json.loads((image.root / "opt" / "gpureport" / "sbom.cdx.json").read_text())
    assert (bill["bomFormat"], "duckdb" in {each["name"] for each in bill["components"]}) == ("CycloneDX", True)
    assert not (image.root / "opt" / "gpureport" / "bin" / "pip").exists()
    data = tmp_path / "data"
    told = run_read_only(image, data, "demo", "--out", "/mnt/demo")
    assert told.returncode == 0, told.stderr
    assert "cannot be preloaded" not in told.stderr
    assert (data / "demo" / "report.html").stat().st_uid == 65532
    brought = compiled_in(image.root / "opt" / "gpureport" / "lib" / "loops")
    assert compiled_in(data / "tmp" / "numba") - brought == Counter()
    assert every_loop() <= {*brought}
    elsewhere = run_read_only(image, data, "demo", "--out", "/opt/gpureport/demo")
    assert elsewhere.returncode == 1
    assert "Read-only file system" in elsewhere.stderr
