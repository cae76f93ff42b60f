"""The programs that may run unasked, tried for real: whatever Crow allows runs under a tracer.

None may write, connect, start another program, or open a file that was not judged. The lists of
arguments are made up (`tests.arguments`), and a file has those that a person thought of. As often
as ``CROW_PROGRAM_LISTS`` says for each program, in the slow test.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.arguments import SessionSettings, allowed, fault, known
from tests.tracing import Tracer

from crow.extensions.permissions.programs.table import programs

HOSTILE = Path(__file__).with_name("hostile.txt")
LISTS = int(os.environ.get("CROW_PROGRAM_LISTS", "60"))
SHARES = 6
WORLDS = ("as it is", "stopping at operands", "busybox", "bundled ripgrep")
NOT_HERE = "it needs Linux, strace, bubblewrap and bash"
Trying = Callable[..., list[str]]

traced = pytest.mark.skipif(not (sys.platform == "linux" and Tracer.is_there()), reason=NOT_HERE)


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> SessionSettings:
    made = SessionSettings(tmp_path_factory.mktemp("ground").resolve())
    made.fill()
    return made


@pytest.fixture
def trying(ground: SessionSettings) -> Trying:
    """Runs commands in one of the worlds, and names what they did that they must not."""

    def tried(cases: list[tuple[str, Path]], world: str = WORLDS[0]) -> list[str]:
        tracer = in_world(ground, world)
        found: list[str] = []
        for start in range(0, len(cases), 400):
            part = cases[start : start + 400]
            for (command, cwd), deeds in zip(part, tracer.run(part, seconds=240), strict=True):
                wrong = fault(ground, command, cwd, deeds, follows=world == "busybox")
                found += [f"{command!r} in {cwd.name}: {wrong}"] if wrong else []
        return found

    return tried


def in_world(ground: SessionSettings, world: str) -> Tracer:
    """The tracer with the programs of a world."""
    variables = {"HOME": str(ground.top / "home"), "X": "-o w"}
    own = ground.top / world
    if world == "stopping at operands":
        variables["POSIXLY_CORRECT"] = "1"
    elif world == "busybox":
        path = shutil.which("busybox") or pytest.skip("there is no busybox")
        link_all(own, {name: path for name in applets(path) if not name.endswith("sh")})
    elif world == "bundled ripgrep":
        path = Path(sys.executable).with_name("rg")
        link_all(own, {"rg": str(path)} if path.exists() else pytest.skip("there is no ripgrep"))
    return Tracer(ground.top, f"{own}:{os.defpath}", variables)


def applets(busybox: str) -> list[str]:
    done = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def link_all(folder: Path, targets: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, target in targets.items():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(target)


def thought_of() -> list[str]:
    """The lists of the file; a quote that is open at the end of a line goes on in the next."""
    lines: list[str] = []
    for line in HOSTILE.read_text().splitlines():
        if lines and lines[-1].count("'") % 2:
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    return lines


@pytest.mark.slow
@traced
def test_nothing_that_a_person_thought_of_does_more_than_to_read(ground, trying):
    judge = ground.permissions()
    cases = [
        (command, cwd)
        for command in thought_of()
        for cwd in ground.places
        if judge.judge("Bash", {"command": command}, cwd=str(cwd)).decision == "allow"
    ]
    assert len(cases) > 100
    assert trying(cases) == []


@pytest.mark.slow
@traced
def test_no_made_up_list_of_arguments_does_more_than_to_read(ground, trying):
    cases = allowed(ground, random.Random(4), known(), 6)
    assert len(cases) > 100
    assert trying(cases) == []


ASKED = [name for name, one in programs().items() if one.operands == "version"]
WRITES = "wget curl npm npx yarn java javac gdb apt pip psql cargo rustc go docker".split()
"""They write, start others or read settings before they tell their version, or were not tried."""


@traced
def test_who_is_asked_for_a_version_tells_it_and_does_nothing_more(ground, trying):
    judge = ground.permissions()
    cases = [(f"{name} --version", ground.places[0]) for name in ASKED if shutil.which(name)]
    assert {"make", "gcc", "tar", "python3"} <= {*ASKED}
    assert trying(cases) == []
    for command, cwd in cases:
        name = command.split()[0]  # a shell is asked about elsewhere
        if name != "bash" and str(shutil.which(name)).startswith(("/usr/bin/", "/bin/")):
            assert judge.judge("Bash", {"command": command}, cwd=str(cwd)).decision == "allow"
    for name in [*WRITES, *(f"{each} -x" for each in ASKED)]:
        asked = judge.judge("Bash", {"command": f"{name} --version"}, cwd=str(ground.places[0]))
        assert asked.decision != "allow"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("share", range(SHARES))
@traced
def test_nor_does_any_of_many(ground, trying, world, share):
    seed = random.randrange(2**32) if "CROW_PROGRAM_LISTS" in os.environ else share
    names, count = known()[share::SHARES], LISTS
    if world == "bundled ripgrep":
        names, count = ["rg"], LISTS // 2
    elif world != WORLDS[0]:
        names, count = [name for name in names if not name.startswith("git ")], LISTS // 4
    cases = allowed(ground, random.Random(seed), names, count)
    print(f"seed {seed}: {len(names) * count} lists, {len(cases)} allowed")
    assert trying(cases, world) == []


SAID = re.compile(r"(?<![\w-])(--?[A-Za-z0-9][a-z0-9-]*)(\[=|=[a-z]?| [A-Z])?")
KINDS = {"": "", "=": ":", " ": ":", "[": "::"}
GNU = [name for name, one in programs().items() if one.reader == "getopt_long" and name != "which"]


def said(text: str) -> dict[str, set[str]]:
    """What each option takes, by a help text; a letter takes what the word behind it does."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        named = SAID.findall(line.strip().split("   ")[0]) if line.strip().startswith("-") else []
        kinds = {KINDS[mark[:1]] for option, mark in named if option.startswith("--")}
        for option, mark in named:
            own = {KINDS[mark[:1]]} if mark or option.startswith("--") else kinds or {""}
            fixed = "::" in own or any(mark[1:].islower() for _, mark in named)
            letter = {""} if fixed and not option.startswith("--") else set[str]()
            found.setdefault(option, set()).update(own | letter)
    return {
        option: kinds | ({"::"} if {"", ":"} <= kinds else set()) for option, kinds in found.items()
    }


@pytest.mark.parametrize("name", GNU)
def test_an_option_takes_what_the_help_of_its_program_says(name):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"there is no {name}")
    helped, version = (
        subprocess.run([path, option], capture_output=True, text=True, check=False).stdout
        for option in ("--help", "--version")
    )
    if "Free Software" not in version:
        pytest.skip(f"{name} is not GNU's")
    options = said(helped)
    for option, takes in programs()[name].takes.items():
        wanted = options.get(option if option.startswith("--") else f"-{option}")
        assert wanted is None or takes.replace("@", ":") in wanted, f"{name} {option}"
