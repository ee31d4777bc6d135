"""`make release` twice, in unlike surroundings: the same bytes, of what is committed and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from gpureport import __version__

from .containerfile import instructions
from .rendering import ROOT

TOOLS = ROOT / ".cache" / "release-tools"
WHEEL, SOURCE = f"gpureport-{__version__}-py3-none-any.whl", f"gpureport-{__version__}.tar.gz"
IMAGE, BILL = f"gpureport-{__version__}-image.tar.gz", f"gpureport-{__version__}.cdx.json"


BILL_WRITER = """#!{0}
import sys
sys.modules["rfc3987_syntax"] = None
from cyclonedx_py._internal.cli import run
sys.exit(run(argv=sys.argv[1:] + {1}))
"""
"""It holds the bill to its schema, but for the grammar of addresses, which takes five times as long as all else."""


def release(folder: Path, umask: int, *more: str, **environ: str) -> Path:
    if not (TOOLS / "installed").exists():
        pytest.skip("the tools of a release are not here: run `make release-tools`")
    tools = folder / "tools" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").write_text(f'#!/bin/sh\nexec {TOOLS}/bin/python "$@"\n')
    (tools / "cyclonedx-py").write_text(BILL_WRITER.format(TOOLS / "bin" / "python", list(more)))
    for tool in tools.iterdir():
        tool.chmod(0o755)
    done = subprocess.run(
        ["sh", ROOT / "deploy" / "release.sh", tools.parent, folder / "dist"],
        check=False,
        capture_output=True,
        text=True,
        umask=umask,
        env=os.environ | environ,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release(tmp_path_factory.mktemp("release"), 0o022)


def test_two_builds_of_a_commit_have_the_same_bytes(released: Path, tmp_path: Path) -> None:
    other = {"TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "7", "HOME": str(tmp_path)}
    again = release(tmp_path / "other", 0o077, "--no-validate", **other)  # the same bill is checked in the first build
    first, second = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in (released, again))
    assert first.keys() == second.keys() == {WHEEL, SOURCE, IMAGE, BILL, "SHA256SUMS"}
    assert [name for name in first if first[name] != second[name]] == []


def test_the_checksums_are_of_all_files(released: Path) -> None:
    sums = dict(reversed(line.split()) for line in (released / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((released / name).read_bytes()).hexdigest() for name in (WHEEL, SOURCE, IMAGE, BILL)}


def test_only_what_is_committed_is_released(released: Path) -> None:
    listed = subprocess.run(["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    committed = set(listed.stdout.splitlines())
    with tarfile.open(released / SOURCE) as source:
        files = {name.partition("/")[2] for name in source.getnames()}
    assert files - committed == {"PKG-INFO"}
    with zipfile.ZipFile(released / WHEEL) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    moved = {"queries": "queries", "templates": "templates", "fixtures": "data/fixtures"}
    for name in names:
        first, _, rest = name.removeprefix("gpureport/").partition("/")
        assert name in committed or f"{moved[first]}/{rest}" in committed


def test_the_image_context_has_what_the_containerfile_copies(released: Path) -> None:
    with tarfile.open(released / IMAGE) as context:
        files = {member.name for member in context if member.isfile()}
    steps = instructions((ROOT / "Containerfile").read_text())
    copied = [name for step in steps if step.word == "COPY" and "--from" not in step.rest for name in step.rest.split()[:-1]]
    assert {"Containerfile", ".containerignore"} < files
    for name in copied:
        assert any(file == name or file.startswith(f"{name}/") for file in files), name


def test_the_bill_of_materials_has_every_locked_package(released: Path) -> None:
    bill = json.loads((released / BILL).read_text())
    locked = [line for line in (ROOT / "deploy" / "requirements.lock").read_text().splitlines() if "==" in line]
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "gpureport"
    assert len(bill["components"]) == len(locked)
    assert all(each["externalReferences"][0]["hashes"] for each in bill["components"])
    assert {each["externalReferences"][0]["url"] for each in bill["components"]} == {
        f"https://pypi.org/simple/{line.partition('==')[0].partition('[')[0]}/" for line in locked
    }
