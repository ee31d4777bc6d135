"""A kept table whose rows over the recordings change has a new revision: facts of older days then count as of another one.

``--new-digests`` writes the digests of the rows as they are, once a revision is raised in the header of the table's query.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gpureport.compute.query import connection, load, of_life
from gpureport.lake import open_lake, views

DIGESTS = Path(__file__).parent / "facts_digests.json"


def digests(*lakes: Path) -> dict[str, list[Any]]:
    """Revision and digest of each kept table's rows, columns by name, numbers to nine digits."""
    tables, rows = of_life(load(), "facts"), dict[str, list[str]]()
    for path in lakes:
        with connection() as con:
            views(con, open_lake(path), [table.replace(".", "/") for table in tables])
            for table in tables:
                found = con.sql(f"from {table}").to_arrow_table().to_pylist()
                rows.setdefault(table, []).extend(sorted(json.dumps(plain(row), sort_keys=True, default=str) for row in found))
    return {table: [load()[table].revision, sha256("\n".join(rows[table]).encode()).hexdigest()[:16]] for table in sorted(tables)}


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value * (1 + 1e-13):.9g}"  # halves are rounded alike, whichever side the order of a sum leaves them on
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def test_what_a_kept_table_holds_changes_with_its_revision_alone(
    recorded: Path, recorded_cluster: Path, request: pytest.FixtureRequest
) -> None:
    found = digests(recorded / "lake", recorded_cluster / "lake")
    if request.config.getoption("--new-digests"):
        DIGESTS.write_text(json.dumps(found, indent=1) + "\n")
    stored = json.loads(DIGESTS.read_text())
    unchanged = [table for table, (revision, _) in found.items() if stored.get(table, [0])[0] == revision]
    changed = [table for table in unchanged if stored[table] != found[table]]
    assert not changed, f"raise `-- revision:` in the headers of {', '.join(changed)}, then run this test with --new-digests"
    assert found == stored, "run this test with --new-digests"
