"""A Containerfile's own steps without a container engine: stages as folders, commands in mount namespaces, the user by setpriv.

It knows the instructions that ours has and fails on any other, so that a step is never left out unnoticed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

_NOTHING_TO_DO = {"ARG", "LABEL", "CMD"}


@dataclass(frozen=True)
class Instruction:
    word: str
    rest: str


@dataclass
class Stage:
    """A stage's folder, and what its instructions left behind."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = ""
    entrypoint: str = ""


def instructions(text: str) -> list[Instruction]:
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    whole = re.sub(r"\\\n\s*", " ", lines)
    return [Instruction(*line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


def build(file: Path, folder: Path) -> Stage:
    """The last stage, after every step of all of them; each has a folder for its root."""
    stages: dict[str, Stage] = {}
    stage = Stage(folder)
    for each in instructions(file.read_text()):
        if each.word == "FROM":
            name = each.rest.partition(" AS ")[2] or "last"
            stage = stages[name] = Stage(folder / name)
            stage.root.mkdir()
        elif each.word not in _NOTHING_TO_DO:
            _step(stage, each, file.parent, stages)
    return stage


def _step(stage: Stage, step: Instruction, context: Path, stages: dict[str, Stage]) -> None:
    match step.word:
        case "ENV":
            stage.environ |= dict(pair.split("=", 1) for pair in shlex.split(step.rest))
        case "WORKDIR":
            stage.workdir = step.rest
            _inside(stage, step.rest).mkdir(parents=True, exist_ok=True)
        case "USER":
            stage.user = step.rest
        case "ENTRYPOINT":
            stage.entrypoint = step.rest.strip('[]"')
        case "COPY":
            _copy(stage, shlex.split(step.rest), context, stages)
        case "RUN":
            _run(stage, step.rest)
        case _:
            raise NotImplementedError(step.word)


def _inside(stage: Stage, path: str) -> Path:
    return stage.root / (path.lstrip("/") if path.startswith("/") else f"{stage.workdir.lstrip('/')}/{path}")


def _copy(stage: Stage, words: list[str], context: Path, stages: dict[str, Stage]) -> None:
    source = context
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
    *names, to = words
    for name in names:
        found, target = source / name.lstrip("/"), _inside(stage, to)
        if found.is_dir():
            shutil.copytree(found, target, dirs_exist_ok=True, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(found, target / found.name if to.endswith("/") else target)


def _run(stage: Stage, command: str) -> None:
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("_proxy")}
    environ = {"PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin", "HOME": str(stage.root), **pip, **stage.environ}
    made = _in_namespace(stage, f"cd {stage.workdir}\n{command}", environ)
    assert made.returncode == 0, f"{command}\n{made.stdout[-2000:]}\n{made.stderr[-2000:]}"


def run_read_only(stage: Stage, data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The image's program as its user, without privileges, where only /mnt (the folder ``data``) and /tmp can be written."""
    uid, _, gid = stage.user.partition(":")
    environ = [f"{name}={value.replace('$PATH', '/usr/bin:/bin')}" for name, value in stage.environ.items()]
    command = [
        *("env", "-i", *environ),
        *("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"),
        *(stage.entrypoint, *arguments),
    ]
    (data / "tmp").mkdir(parents=True, exist_ok=True)
    for each in (data, data / "tmp"):
        os.chown(each, int(uid), int(gid))
    steps = f"""
        mount --bind {data} /mnt
        mount --bind {data / "tmp"} /tmp
        mount -o remount,ro,bind /opt
        mount -o remount,ro,bind /
        cd /tmp
        exec {shlex.join(command)}
    """
    return _in_namespace(stage, steps, {"PATH": "/usr/bin:/bin"})


def _in_namespace(stage: Stage, script: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Where /opt is the stage's, and this machine's Python can be read by anybody; no other process sees these mounts."""
    python, home = Path(sys.base_prefix), "/" + Path(sys.base_prefix).parts[1]
    shown = f"""
        mkdir -p {stage.root}/opt {stage.root}/python
        mount --bind {python} {stage.root}/python
        mount --bind {stage.root}/opt /opt
    """
    if home not in ("/usr", "/opt"):  # a home folder, as of pyenv, that others may not enter
        shown += f"""
        mount -t tmpfs -o mode=755 tmpfs {home}
        mkdir -p {python}
        mount --bind {stage.root}/python {python}
        """
    command = ["unshare", "--mount", "sh", "-euc", f"{shown}\n{script}"]
    return subprocess.run(command, env=environ, check=False, capture_output=True, text=True, timeout=900)
