"""Trust in projects: each by its path and the content of what would run.

A project whose settings, extensions or hooks have changed since is not trusted any more, nor is one
whose own scripts have that a hook or an MCP server runs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from itertools import islice
from pathlib import Path
from typing import Literal, cast

from crow.project.files import Stamp, stamp, write_atomically
from crow.project.home import state_directory

NEVER = "never"
MARKS = (".crow", ".claude", ".git")
"""What a project's directory has."""
HOMES = (".claude", ".crow", ".agents")
WATCHED = ("settings.json", "settings.toml", "settings.local.json", "settings.local.toml")
WATCHED_FOLDERS = (
    "extensions",
    "hooks",
    "skills",
    "agents",
    "commands",
    "plugins",
    "output-styles",
)
FOREIGN = {
    ".codex": (("config.toml",), ("prompts", "skills", "agents")),
    ".opencode": (
        ("opencode.json", "opencode.jsonc"),
        ("command", "commands", "agent", "agents", "skill", "skills"),
    ),
    ".pi": (("mcp.json",), ("prompts", "skills")),
    ".cursor": (("mcp.json",), ("commands", "skills", "agents")),
}
"""Of other agents' folders the files and folders that Crow uses, too."""
KINDS = {"commands": ("prompts", "command", "commands"), "skills": ("skill", "skills")}
"""What those folders are called that hold commands and skills."""
FOREIGN_FILES = ("opencode.json", "opencode.jsonc")
TELLING = frozenset({".json", ".jsonc", ".toml", ".md"})
"""Of the watched files, those that can name scripts."""
MOST_LINKED = 5_000
"""Files behind a link to a folder that are looked at; what lies beyond them is not trusted."""
LARGEST = 100_000_000
"""Bytes of a file whose content is compared; of a larger one it is the size and the times."""


TOOLS = frozenset({".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis"})
"""Folders of tools that look at an extension: what is no code there changes with every look."""
CODE = frozenset({*SOURCE_SUFFIXES, *BYTECODE_SUFFIXES, *EXTENSION_SUFFIXES})
PYTEST = "-pytest-"
"""In the name of what pytest compiles: Python itself imports no file of such a name."""


def project_of(cwd: str | Path, home: Path | None = None) -> Path:
    """The nearest directory from here upwards that holds settings or a repository, else here."""
    here, home = Path(cwd), home or Path.home()
    for folder in (here, *here.parents):
        if folder == home:
            break
        if any(map(Path.exists, map(folder.joinpath, MARKS))):
            return folder
    return here


def repository_folders(cwd: Path) -> list[Path]:
    """A directory and those above it up to the root of its repository; itself outside of one."""
    chain = [cwd, *cwd.parents]
    for depth, folder in enumerate(chain, 1):
        if (folder / ".git").exists():
            return chain[:depth]
    return chain[:1]


def foreign_folders(
    base: Path, kind: Literal["commands", "skills"], agents: Collection[str]
) -> list[tuple[str, Path]]:
    """Where other agents have commands or skills below a directory, each with whose it is."""
    found: list[tuple[str, Path]] = []
    for name, (_, folders) in FOREIGN.items():
        if name[1:] in agents and os.path.isdir(f"{base}/{name}"):  # noqa: PTH112 - every prompt
            named = [base / name / each for each in folders if each in KINDS[kind]]
            found += [(name[1:], each) for each in named if each.is_dir()]
    return found


def is_trusted(project: Path, file: str | Path | None = None) -> bool:
    """True where the user trusted what would run there now, or nothing would.

    With a ``file`` it has to be among what is trusted.
    """
    paths = list(what_would_run(project))
    if file is not None and Path(file) not in paths:
        return False
    return not paths or _record().get(str(project.resolve())) == fingerprint(project)


def trust(project: Path, shown: str | None = None) -> str | None:
    """Trust a project as it is now; returns the fingerprint that was kept.

    ``shown`` is the fingerprint of what the user saw: None is returned, and nothing is trusted,
    where it has become another one since.
    """
    now = fingerprint(project)
    if shown is not None and shown != now:
        return None
    _write({**_record(), str(project.resolve()): now})
    return now


def distrust(project: Path) -> bool:
    """Forget what the user said of a project; False where it was not trusted."""
    record = _record()
    known = record.pop(str(project.resolve()), None)
    if known is not None:
        _write(record)
    return known not in (None, NEVER)


def refuse(project: Path) -> None:
    """Ask no more about a project, whatever it wants to run, until somebody trusts it."""
    _write({**_record(), str(project.resolve()): NEVER})


def is_refused(project: Path) -> bool:
    """True where the user wants to hear no more of it."""
    return _record().get(str(project.resolve())) == NEVER


def projects() -> dict[str, str]:
    """Every project that the user has decided about: ``trusted``, ``changed`` since, ``never``."""
    return {path: _state(Path(path), said) for path, said in _record().items()}


def _state(project: Path, said: str) -> str:
    if said == NEVER:
        return NEVER
    return "trusted" if said == fingerprint(project) else "changed"


def what_would_run(project: Path) -> Iterator[Path]:
    """The project's files that could make Crow run something, or let it."""
    said = list(_said(project))
    yield from said
    yield from (path for path in _named(said, project) if path.is_file())


def scripts(project: Path) -> list[Path]:
    """The project's files that its hooks and MCP servers would run, there or not."""
    return _named(list(_said(project)), project)


def _named(said: list[Path], project: Path) -> list[Path]:
    """The scripts that files name, without those that are among them."""
    telling = [path for path in said if path.suffix in TELLING]
    if not telling:
        return []
    from crow.project.scripts import scripts_in

    found = {script: None for path in telling for script in scripts_in(path, project)}
    return [path for path in found if path not in set(said)]


def _said(project: Path) -> Iterator[Path]:
    for folder in filter(Path.is_dir, map(project.joinpath, HOMES)):
        yield from (folder / name for name in WATCHED if (folder / name).is_file())
        for inner in filter(Path.is_dir, map(folder.joinpath, WATCHED_FOLDERS)):
            seen = None if inner.name == "extensions" else set[str]()
            yield from sorted(filter(_counts, _below(inner, os.path.realpath(project), seen)))
    for name in (".mcp.json", *FOREIGN_FILES):
        if (project / name).is_file():
            yield project / name
    for name, (files, folders) in FOREIGN.items():
        if (folder := project / name).is_dir():
            yield from (folder / each for each in files if (folder / each).is_file())
            for inner in filter(Path.is_dir, map(folder.joinpath, folders)):
                yield from sorted(filter(_counts, _below(inner, os.path.realpath(project), set())))


def _below(folder: Path, project: str, seen: set[str] | None) -> Iterator[Path]:
    """The files below a folder; with ``seen`` also behind links to folders, each followed once.

    One that leads to the project itself, or to what it lies in, is not followed. Nothing is
    imported through links, so what is behind those of extensions is of no account.
    """
    for where, folders, names in os.walk(folder):
        yield from (Path(where, name) for name in names)
        if seen is None:
            continue
        for link in (Path(where, name) for name in folders):
            real = os.path.realpath(link)
            is_round = Path(project).is_relative_to(real) or real in seen
            if link.is_symlink() and not is_round:
                seen.add(real)
                yield from islice(_below(link, project, seen), MOST_LINKED)


def _counts(path: Path) -> bool:
    """Whether a file can run; the caches of other programs than Crow are theirs.

    Crow lets no program that it starts for a project read them, and reads none itself; but an
    extension may.
    """
    is_cache = path.parent.name == "__pycache__" and path.suffix == ".pyc"
    if is_cache and ("extensions" not in path.parts or PYTEST in path.name):
        return False
    is_noted = "extensions" in path.parts and not TOOLS.isdisjoint(path.parts)
    return path.is_file() and (path.suffix in CODE or not is_noted)


def fingerprint(project: Path) -> str:
    """A hash over the names and contents of what would run."""
    return _over(_contents(project), project)


def sealed(project: Path) -> dict[str, str] | None:
    """The hashes of what is trusted, by path; None where it is not trusted as it is now."""
    contents = _contents(project)
    is_current = _record().get(str(project.resolve())) == _over(contents, project)
    return contents if is_current or not contents else None


def _contents(project: Path) -> dict[str, str]:
    contents: dict[str, str] = {}
    for path in what_would_run(project):
        try:
            contents[str(path)] = _content(path)
        except OSError:
            contents[str(path)] = "cannot be read"
    return contents


def _content(path: Path) -> str:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size > LARGEST:
            return f"{status.st_size} bytes of {status.st_mtime_ns}, {status.st_ctime_ns}"
        return hashlib.file_digest(file, "sha256").hexdigest()


def _over(contents: Mapping[str, str], project: Path) -> str:
    digest = hashlib.sha256()
    for path, content in contents.items():
        digest.update(f"{Path(path).relative_to(project)}\0{content}\n".encode())
    return digest.hexdigest()


def stamps(project: Path) -> tuple[tuple[str, Stamp], ...]:
    """What is different after every change of what would run; cheaper than its content."""
    found = ((str(path), stamp(str(path))) for path in what_would_run(project))
    return tuple((path, look) for path, look in found if look is not None)


def is_touched(known: tuple[tuple[str, Stamp], ...]) -> bool:
    """True where one of the files with these `stamps` has changed; new ones are not looked for."""
    return any(stamp(path) != look for path, look in known)


def state_file() -> Path:
    """Where trust is kept."""
    return state_directory() / "trust.json"


def _record() -> dict[str, str]:
    try:
        record: object = json.loads(state_file().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return cast(dict[str, str], record) if isinstance(record, dict) else {}


def _write(record: dict[str, str]) -> None:
    write_atomically(state_file(), json.dumps(record, indent=1, sort_keys=True), private=True)
