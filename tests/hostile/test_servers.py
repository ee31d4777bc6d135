"""Whatever a server sends, a question ends with one sentence and exit code 5, within its deadline and within 600 MB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .attacks import hostile_server

MOST_MB = 600
SENTENCES = {
    "bomb:series": "implausibly large",
    "bomb:matrix": "implausibly large",
    "bomb:remote-read": "implausibly large",
    "bomb:kubernetes": "more than 64 MiB; check the server",
    "drip:series": "not whole within 5 s",
    "drip:kubernetes": "not whole within 5 s",
    "headers:series": "not whole within 5 s",
    "headers:kubernetes": "not whole within 5 s",
    "headers:pushgateway": "did not accept them",
    "frames:remote-read": "even a minute is too much",
    "labels:remote-read": "even a minute is too much",
    "labels:series": "implausibly large",
    "many:series": "implausibly large",
    "varint:remote-read": "not a stream of chunks",
    "braces:series": "implausibly large",
    "braces:matrix": "implausibly large",
    "nested:series": "did not answer with JSON",
    "nested:kubernetes": "not JSON",
    "line:victoria-metrics": "a line without an end",
    "circle:kubernetes": "again and again",
    "more:kubernetes": "does not end",
    "thick:kubernetes": "pages of 20,000 objects; 500 were requested",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, tuple[int, str]], int]:
    """(exit code, sentence) by attack, and the peak of memory in MB of the process that bore them all."""
    with hostile_server() as url:
        command = [sys.executable, "-m", "hostile.client", url, str(tmp_path_factory.mktemp("hostile")), *SENTENCES]
        done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    *lines, peak = done.stdout.splitlines()
    return {attack: (code, sentence) for attack, code, sentence in map(json.loads, lines)}, int(peak)


@pytest.mark.parametrize("attack", SENTENCES)
def test_an_attack_ends_with_one_sentence(attack: str, answers: tuple[dict[str, tuple[int, str]], int]) -> None:
    code, sentence = answers[0][attack]
    assert (code, "\n" in sentence, len(sentence) < 500) == (5, False, True)
    # A drip that stands still for a second, on a busy machine, is a silence.
    assert SENTENCES[attack] in sentence or (SENTENCES[attack].startswith("not whole") and "answer within 1 s" in sentence)


def test_no_attack_takes_more_memory_than_a_small_pod_has(answers: tuple[dict[str, tuple[int, str]], int]) -> None:
    assert answers[1] < MOST_MB
