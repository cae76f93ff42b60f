"""Parts of a git repository, made by a command, that would run programs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from crow.extensions.sandbox.mounts import is_below, real

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
_LONGEST = 65536
_FOLDERS = 100
_SECTION = re.compile(r'\[\s*([A-Za-z0-9-]+)(?:\s+"[^"\\]*")?\s*\]')
_ANY_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]')
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
_NAMES = {"core": ("hookspath",), "include": ("path",), "includeif": ("path",)}
_IN_QUOTES = re.compile(r'(?:[^"#;]|"[^"]*")*')


def named_paths(config: str, worktrees: Iterable[str]) -> list[str]:
    """What settings of git name that counts as much as they do: more settings, a folder of hooks.

    A path of hooks is relative to a worktree, one of settings to those that name it.
    """
    try:
        with open(config, encoding="utf-8") as file:  # noqa: PTH123
            text = file.read(_LONGEST)
    except (OSError, UnicodeDecodeError):
        return []
    found: list[str] = []
    for section, name, value in _entries(text):
        if name in _NAMES.get(section, ()) and value:
            bases = worktrees if section == "core" else (os.path.dirname(config),)  # noqa: PTH120
            path = os.path.expanduser(value)
            found += [os.path.normpath(os.path.join(base, path)) for base in bases]  # noqa: PTH118
    return found


def _entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, name and value of each setting, the first two in small letters."""
    section = ""
    for line in text.splitlines():
        head = _ANY_SECTION.match(line)
        section = head[1].lower() if head else section
        if entry := _ENTRY.fullmatch(line[head.end() if head else 0 :].strip()):
            value = (_IN_QUOTES.match(entry[2] or "") or [""])[0]
            yield section, entry[1].lower(), value.strip().replace('"', "")


def culprits(repository: str) -> list[str]:
    """Files of a repository that git would run, or that name programs."""
    hooks, config = f"{repository}/hooks", f"{repository}/config"
    found = [f"{repository}/commondir", f"{repository}/config.worktree"]
    if os.path.islink(hooks):  # noqa: PTH114
        found.append(hooks)
    elif os.path.isdir(hooks):  # noqa: PTH112
        with suppress(OSError):
            names = [name for name in os.listdir(hooks) if not name.endswith(".sample")]  # noqa: PTH208
            found += [f"{hooks}/{name}" for name in names]
    found = [path for path in found if os.path.lexists(path)]
    return found if is_harmless(config) else [*found, config]


def new_links(repository: str, since: int, tops: Iterable[str]) -> list[str]:
    """Links that a command made where git writes, to places outside of ``tops``, which are real.

    Git follows them: a line of its log, with the words of a commit, would be written there.
    ``since`` is a time in nanoseconds.
    """
    found: list[str] = []
    left = [repository]
    for _ in range(_FOLDERS):
        if not left:
            break
        at = left.pop()
        with suppress(OSError), os.scandir(at) as entries:
            for entry in entries:
                is_new = (
                    entry.is_symlink() and entry.stat(follow_symlinks=False).st_ctime_ns >= since
                )
                if is_new and not is_below(real(entry.path), tops):
                    found.append(entry.path)
                is_log = at != repository or entry.name == "logs"
                if is_log and entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
    return found


def is_harmless(config: str) -> bool:
    """True for settings of git that name no program, and where there are none."""
    if not os.path.lexists(config):
        return True
    try:
        if os.path.islink(config) or not os.path.isfile(config):  # noqa: PTH113, PTH114
            return False
        with open(config, encoding="utf-8") as file:  # noqa: PTH123
            return _names_nothing(file.read(_LONGEST + 1))
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
    return len(text) <= _LONGEST
