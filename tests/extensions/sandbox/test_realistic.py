"""A day's work in the sandbox: how often its user is asked, and that everything worked.

The user lets the model edit files (``acceptEdits``), as people do who want to get on; what is
counted is every question.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crow.core.events import Event, ToolEnded
from crow.core.ports.client import Files, PermissionRequest, Question
from crow.extensions.sandbox.probe import find_backend
from crow.testing import BuildAgent, call

MOST = 3
PYTHON = sys.executable
RECORDED = Path(__file__).parents[2] / "acp" / "transcripts"
MAKEFILE = f"""\
test:
\t{PYTHON} -B -m unittest -q
build:
\tmkdir -p dist && tar czf dist/shop.tgz shop && ls dist
clean:
\trm -rf dist
"""
SHOP = "def total(prices):\n    return sum(prices)\n"
TEST = """\
import unittest
from shop import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)
"""


def bash(command: str, **more: Any) -> Any:
    return call("Bash", **{"command": command, **more})


def edit(path: str, old: str, new: str) -> Any:
    return call("Edit", file_path=path, old_string=old, new_string=new)


TASKS: dict[str, list[Any]] = {
    "look around": [bash("ls -la && git status --short"), bash("git log --oneline | head -5")],
    "find a function": [
        bash("grep -rn 'def total' . --include=*.py"),
        call("Grep", pattern="total"),
    ],
    "read it": [call("Read", file_path="shop/__init__.py"), bash("sed -n 1,20p shop/__init__.py")],
    "count lines": [bash("find . -name '*.py' -not -path './.git/*' | xargs wc -l | tail -1")],
    "run the tests": [bash("make test")],
    "run one test": [bash(f"{PYTHON} -B -m unittest -q test_shop.TotalTest")],
    "fix a function": [edit("shop/__init__.py", "sum(prices)", "round(sum(prices), 2)")],
    "test the fix": [bash("make test 2>&1 | tail -3")],
    "write a module": [call("Write", file_path="shop/tax.py", content="RATE = 0.2\n")],
    "try it out": [bash(f"{PYTHON} -Bc 'from shop.tax import RATE; print(RATE)'")],
    "write by the shell": [
        bash("cat > notes.md <<'EOF'\n# Notes\n\n- rounding\nEOF\ncat notes.md")
    ],
    "rename in many files": [bash("sed -i 's/RATE/VAT/g' shop/*.py && grep -n VAT shop/tax.py")],
    "see what changed": [bash("git diff --stat && git diff | head -40")],
    "build": [bash("make build && tar tzf dist/shop.tgz")],
    "clean up": [bash("make clean && rm -f notes.md && ls")],
    "a branch": [bash("git checkout -q -b rounding && git branch --show-current")],
    "commit": [bash('git add -A && git commit -qm "Round totals" && git show --stat | head -5')],
    "stash and back": [
        bash("echo x >> shop/tax.py && git stash -q && git stash pop -q && git diff")
    ],
    "undo": [bash("git checkout -q -- shop/tax.py && git status --short")],
    "merge": [bash("git checkout -q main && git merge -q rounding && git log --oneline | head -3")],
    "a script with a loop": [bash('for f in shop/*.py; do echo "$f: $(wc -l < $f)"; done')],
    "a scratch file": [bash("d=$(mktemp -d) && cp -r shop $d/ && ls $d/shop && rm -rf $d")],
    "in the background": [
        bash(f"{PYTHON} -Bc 'print(1)'", run_in_background=True),
        call("BashOutput", bash_id="bash_1", wait=5000),
    ],
    "reach the network": [
        bash(
            "git push origin main", description="Push to the remote", dangerouslyDisableSandbox=True
        )
    ],
}


@dataclass
class Person:
    """Somebody who says yes, and counts."""

    asked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    files: Files | None = None
    terminals: Any = None

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, ToolEnded) and event.outcome != "ok":
            self.failed.append(event.result.text)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(f"{request.title}: {request.reason}")
        return "allow_once"

    async def ask(self, session_id: str, question: Question) -> Any:
        return question.default


@pytest.fixture(autouse=True)
def held(build_agent: BuildAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip where nothing on this machine holds the workspace ring; `build_agent` wants no sandbox."""
    del build_agent
    monkeypatch.delenv("CROW_SANDBOX")
    found = find_backend()
    if not {"write", "protected", "network", "processes"} <= found.holds:
        pytest.skip(f"{found.name} does not hold the workspace ring on this machine")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project with a history and a remote."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "person@example.org")
    folder = tmp_path / "shop"
    (folder / "shop").mkdir(parents=True)
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "shop/__init__.py").write_text(SHOP)
    (folder / "test_shop.py").write_text(TEST)
    remote = tmp_path / "remote.git"
    for line in (
        f"git init -q --bare -b main {remote}",
        "git init -q -b main .",
        f"git remote add origin {remote}",
        "git add -A",
        "git commit -qm First",
    ):
        subprocess.run(line.split(), cwd=folder, check=True)
    return folder


async def played(build_agent: BuildAgent, project: Path, script: list[Any]) -> Person:
    person = Person()
    async with build_agent(*script, "Done.", cwd=project) as agent:
        session = await agent.new_session(str(project), client=person)
        session.mode = "acceptEdits"
        await agent.prompt(session, "Work")
    return person


@pytest.mark.slow
async def test_a_days_work_asks_three_times_at_most_and_all_of_it_works(
    build_agent: BuildAgent, project: Path
):
    person = await played(build_agent, project, [each for task in TASKS.values() for each in task])
    assert len(TASKS) >= 20
    assert person.failed == []
    assert len(person.asked) <= MOST
    removal, push = person.asked
    assert removal.endswith("rm would remove a path that cannot be foreseen")
    assert push.startswith("git push origin main  # Push to the remote  (outside the sandbox): ")


def recorded() -> list[str]:
    """The commands of the conversations that are recorded."""
    shown = "\n".join(path.read_text("utf-8") for path in sorted(RECORDED.glob("*.txt")))
    commands = dict.fromkeys(re.findall(r'"command": "((?:[^"\\]|\\.)*)"', shown))
    return [each for each in commands if "<" not in each and "sleep" not in each]


async def test_the_recorded_conversations_ask_for_nothing(build_agent: BuildAgent, project: Path):
    commands = recorded()
    assert "touch a" in commands
    person = await played(build_agent, project, [bash(each) for each in commands])
    assert person.asked == []
