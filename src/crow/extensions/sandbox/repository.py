"""What in a git repository that a command made would run programs."""

from __future__ import annotations

import os
import re

# all that `git init` and `git clone` write, and what people set without running anything by it
_HARMLESS = {
    "core": """repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode
        symlinks autocrlf eol""".split(),
    "remote": "url fetch pushurl tagopt".split(),
    "branch": "remote merge rebase".split(),
    "submodule": "url active".split(),
    "extensions": "objectformat refstorage".split(),
    "user": "name email".split(),
    "init": ["defaultbranch"],
    "pull": ["rebase"],
    "push": ["default", "autosetupremote"],
}
_SECTION = re.compile(r'\[\s*([A-Za-z0-9-]+)(?:\s+"[^"\\]*")?\s*\]')
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")


def culprits(repository: str) -> list[str]:
    """Files of a repository that git would run, or that name programs."""
    hooks, config = f"{repository}/hooks", f"{repository}/config"
    found = [f"{repository}/commondir", f"{repository}/config.worktree"]
    if os.path.islink(hooks):  # noqa: PTH114
        found.append(hooks)
    elif os.path.isdir(hooks):  # noqa: PTH112
        names = [name for name in os.listdir(hooks) if not name.endswith(".sample")]  # noqa: PTH208
        found += [f"{hooks}/{name}" for name in names]
    found = [path for path in found if os.path.lexists(path)]
    return found if is_harmless(config) else [*found, config]


def is_harmless(config: str) -> bool:
    """True for settings of git that name no program, and where there are none."""
    if not os.path.lexists(config):
        return True
    try:
        if os.path.islink(config) or not os.path.isfile(config):  # noqa: PTH113, PTH114
            return False
        with open(config, encoding="utf-8") as file:  # noqa: PTH123
            return _names_nothing(file.read(65537))
    except (OSError, UnicodeDecodeError):
        return False


def _names_nothing(text: str) -> bool:
    section = ""
    for line in (line.strip() for line in text.splitlines()):
        if not line or line[0] in "#;":
            continue
        if head := _SECTION.fullmatch(line):
            section = head[1].lower()
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None or entry[1].lower() not in _HARMLESS.get(section, ()):
            return False
        if (entry[2] or "").endswith("\\") or "::" in (entry[2] or ""):
            return False  # goes on in the next line; a transport that is a program
    return len(text) <= 65536
