"""What other libraries say becomes part of one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpureport.commands.work.delivering import out_errors
from gpureport.values.errors import OutputError, first_line


@pytest.mark.parametrize(
    ("error", "expected"),
    [(ValueError("not so\nLINE 1: …"), "not so"), (ValueError("\n\nnot so"), "not so"), (OSError(), "OSError")],
)
def test_an_errors_first_line_stands_for_it_or_its_kind_where_it_says_nothing(error: Exception, expected: str) -> None:
    assert first_line(error) == expected


def test_a_disk_that_says_nothing_is_one_sentence_too(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"out cannot be written \(OSError\); free space"), out_errors(tmp_path / "out"):
        raise OSError
