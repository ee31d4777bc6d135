"""What more or fewer nodes would have come to, of a simulated day, through the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_case import NOW

from gpureport.cli import main

DAY = "2026-11-18"


def test_the_command_prints_what_was_recorded_replayed_and_changed(simulated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["whatif", "--since", DAY, "--lake", str(simulated), "--nodes", "-1..1", "-o", "json"]
    capsys.readouterr()
    assert main(arguments, environ={}, now=NOW) == 0
    printed = capsys.readouterr()
    rows = json.loads(printed.out)
    assert [(row["variant"], row["node_count"]) for row in rows] == [
        ("recorded", 0),
        ("replayed", 0),
        *(("changed", n) for n in (-1, 0, 1)),
    ]
    recorded, again, less, same, more = rows
    assert again["allocated_gpu_hours"] == pytest.approx(recorded["allocated_gpu_hours"], rel=0.02)
    assert again["wait_seconds_p95"] == pytest.approx(recorded["wait_seconds_p95"], rel=0.05)
    assert same == {**again, "variant": "changed", "gpu_model": same["gpu_model"]}
    assert less["placeable_gpus"] < same["placeable_gpus"] < more["placeable_gpus"]
    assert less["pending_gpu_hours"] >= same["pending_gpu_hours"] >= more["pending_gpu_hours"]
    assert "allocated GPU-hours" in printed.err


def test_idle_pods_give_gpus_back(simulated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the planted idle pods stopped or cut down others wait no longer, and GPU-hours are returned."""
    found = {}
    for arguments in (["--idle-timeout", "1h"], ["--return-idle"], ["--idle-timeout", "1h", "--return-idle"]):
        capsys.readouterr()
        assert main(["whatif", "--since", DAY, "--lake", str(simulated), *arguments, "-o", "json"], environ={}, now=NOW) == 0
        recorded, again, changed = json.loads(capsys.readouterr().out)
        assert recorded["returned_gpu_hours"] == again["returned_gpu_hours"] == 0 < changed["returned_gpu_hours"]
        assert changed["allocated_gpu_hours"] < again["allocated_gpu_hours"]
        assert changed["placeable_gpus"] == again["placeable_gpus"]
        assert changed["pending_gpu_hours"] <= again["pending_gpu_hours"]
        found[" ".join(arguments)] = changed["returned_gpu_hours"]
    assert max(found.values()) == found["--idle-timeout 1h --return-idle"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--nodes", "-99"], "can remove no more"),
        (["--nodes", "1", "--like", "B200"], "nor a GPU model here"),
        (["--nodes", "1", "--add-gpus", "2"], "alone"),
        (["--idle-timeout", "soon"], "not a duration"),
        (["--mig", "1g.10gb", "for", "nobody/*"], "no pod of such a workload"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(
    simulated: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", "--since", DAY, "--lake", str(simulated), *arguments], environ={}, now=NOW) == 2
    assert sentence in capsys.readouterr().err


def test_gpus_of_unknown_allocation_are_not_free_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten minutes of one GPU that names no pod, without Kubernetes: its allocation is unknown, and no pod can be placed."""
    labels = '{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n",instance="10.0.0.1:9400",job="dcgm"}'
    lines = [f"DCGM_FI_DEV_GPU_UTIL{labels} 50 {1795132800 + 30 * number}" for number in range(20)]
    (tmp_path / "bare.txt").write_text("\n".join([*lines, "# EOF\n"]))
    for arguments in (["import", str(tmp_path / "bare.txt")], ["compute", "--date", "2026-11-20"]):
        assert main([*arguments, "--lake", str(tmp_path / "lake")], environ={}, now=NOW) == 0
    whatif = ["whatif", "--since", "2026-11-20", "--until", "2026-11-21", "--lake", str(tmp_path / "lake"), "--nodes", "1"]
    assert main(whatif, environ={}, now=NOW) == 1
    assert "no pod on a GPU is known" in capsys.readouterr().err
