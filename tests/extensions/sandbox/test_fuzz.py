"""Made-up commands that nobody judges: whatever runs, nothing outside of its ring changes."""

from __future__ import annotations

import os
import random
import shlex
import uuid
from pathlib import Path

import pytest
from tests import fuzz_shell
from tests.extensions.sandbox.conftest import BACKENDS, backend, run

from crow.extensions.sandbox.policy import Policy, Ring
from crow.extensions.sandbox.protected import protected_paths

COMMANDS = 150
MADE = (fuzz_shell.made_up, fuzz_shell.framed, fuzz_shell.interpreted, fuzz_shell.listed)
EVIL = """#!/bin/sh
for place in {outside} {outside}/d ~ ~/.ssh /tmp /var/tmp /dev/shm /etc /usr/local/bin; do
    echo x > $place/{mark}; ln -s / $place/{mark}-link; mkdir $place/{mark}-folder
done
echo x >> {outside}/f; chmod 777 {outside}/f; mv {outside}/d {outside}/e; rm -rf {outside} ~/.ssh
echo x >> ~/.bashrc; touch -d yesterday {outside}/f; kill -9 {pid}; sh -c 'kill -9 $PPID'
"""
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr/local/bin")


class Surroundings:
    """A workspace with ways out of it, and what lies around: two folders, and the system's."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mark = f"crow-fuzz-{uuid.uuid4().hex}"
        self.work, self.outside, home = (root / name for name in ("work", "outside", "home"))
        for folder in (self.work, home / ".ssh"):
            folder.mkdir(parents=True)
        (home / ".ssh/config").write_text("Host x\n")
        (home / ".bashrc").write_text("# mine\n")
        self._around = (self.outside, home / ".ssh", home / ".bashrc")
        self._places = (home, *map(Path, PLACES))
        programs = root / "bin"
        self._fill(self.outside)
        self._fill(self.work)
        programs.mkdir()
        evil = EVIL.format(outside=self.outside, mark=self.mark, pid=os.getpid())
        for path in (
            *(programs / name for name in fuzz_shell.STUBS if name != "sh"),
            self.work / "evil",
        ):
            path.write_text(evil)
            path.chmod(0o755)
        for name, target in (("w", "w"), ("o", ""), ("up", "..")):
            (self.work / name).symlink_to(self.outside / target)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def _fill(self, folder: Path) -> None:
        (folder / "d").mkdir(parents=True)
        for name in ("f", "d/g"):
            (folder / name).write_text("a\nb\n")

    def seen(self, *more: Path, mode: bool = True) -> dict[str, object]:
        """All that lies around, as it is now; files' modes and times only where these are held."""
        found: dict[str, object] = {}
        for path in (each for top in (*self._around, *more) for each in (top, *top.rglob("*"))):
            state = path.lstat()
            text = path.read_bytes() if path.is_file() else b""
            marks = (state.st_mode, state.st_mtime_ns) if mode else ()
            found[str(path)] = (state.st_ino, *marks, text)
        left = [path for place in self._places for path in place.glob(f"{self.mark}*")]
        return {**found, "left": left}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("ring", ["workspace", "reading"])
@pytest.mark.parametrize("name", BACKENDS)
async def test_nothing_outside_changes_whatever_runs(
    name: str, ring: Ring, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    confined, around = backend(name), Surroundings(root, monkeypatch)
    work = str(around.work)
    policy = Policy(ring, (work,), read_only=protected_paths(work))
    seed = os.environ.get("CROW_FUZZ_SEED", "8")
    rng = random.Random(None if seed == "random" else seed)
    commands = [rng.choice(MADE)(rng).replace("\0", "") for _ in range(COMMANDS)]
    inside = (around.work,) if ring == "reading" else ()
    mode = "attributes" in (confined.holds if ring == "workspace" else confined.holds_reading)
    before = around.seen(*inside, mode=mode)
    for command in ["./evil", *commands]:
        line = f"export X='-o {around.outside}/w'; exec bash -c {shlex.quote(command)}"
        await run(confined, policy, line, seconds=2)
        after = around.seen(*inside, mode=mode)
        assert [name for name in {*before, *after} if before.get(name) != after.get(name)] == []
