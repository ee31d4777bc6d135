"""What a hostile day brings: each gives one sentence that says what to do, the right exit code, and the lake as it was.

What Prometheus may do wrong is in ``prometheus/``; this is about files, dates, disks and lakes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from built_once import built_once

from gpureport.cli import main

from .samples import DAY, GOOD, NOW, Refused, assert_one_sentence, digests, metrics, write


@pytest.fixture(scope="session")
def pristine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a day of samples and facts."""

    def build(folder: Path) -> None:
        file = write(folder / "good.txt", metrics(*GOOD))
        for arguments in (["import", str(file), "--cluster", "lab"], ["compute", "--date", DAY]):
            assert main([*arguments, "--lake", str(folder / "lake")], environ={}, now=NOW) == 0

    return built_once("pristine", build, request, tmp_path_factory) / "lake"


@pytest.fixture
def lake(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "lake"))


@pytest.fixture
def refused(lake: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must fail in one sentence and leave the lake alone; the sentence."""

    def run(code: int, *arguments: str | Path, at: Path = lake, environ: dict[str, str] | None = None) -> str:
        before = digests(at)
        capsys.readouterr()
        found = main([*map(str, arguments), "--lake", str(at)], environ=environ or {}, now=NOW)
        sentence = capsys.readouterr().err
        assert_one_sentence(sentence)
        assert found == code, sentence
        assert digests(at) == before
        return sentence

    return run
