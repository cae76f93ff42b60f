"""A quiet repository: git finds it where Crow does, and runs nothing and reads nothing else for it.

Only what is positively of the ordinary shape is quiet. What git would find differently (a broken
``.git``, which sends git on to the directory itself or above it; a bare layout; a link or a file
that leads elsewhere; a variable that says where it is) is not, and neither is what cannot be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from crow.extensions.permissions.paths.disk import Disk

HARMLESS = re.compile(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode"
    r"|symlinks|autocrlf|eol|safecrlf|quotepath|abbrev|compression|untrackedcache|commitgraph"
    r"|preloadindex|longpaths|protecthfs|protectntfs|whitespace|trustctime|checkstat)"
    r"|remote\..*\.(?:url|fetch|pushurl|push|tagopt|prune|mirror|skipdefaultupdate|gh-resolved)"
    r"|branch\..*\.(?:remote|merge|rebase|pushremote|description|vscode-merge-base|gh-merge-base)"
    r"|user\.(?:name|email|signingkey)|author\.(?:name|email)|committer\.(?:name|email)"
    r"|init\.defaultbranch|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote|followtags)"
    r"|fetch\.(?:prune|prunetags|parallel|writecommitgraph)|merge\.(?:ff|conflictstyle|log)"
    r"|rebase\.(?:autostash|autosquash|updaterefs)|commit\.(?:gpgsign|verbose)|tag\.gpgsign"
    r"|color\..*|column\..*|advice\..*|log\.(?:date|abbrevcommit|decorate|follow|mailmap)"
    r"|diff\.(?:renames|algorithm|mnemonicprefix|noprefix|colormoved|context|relative|renamelimit)"
    r"|rerere\.(?:enabled|autoupdate)|gc\.(?!recentobjectshook).*|maintenance\.(?:auto|strategy)"
    r"|feature\.\w+|index\.\w+|pack\.\w+|transfer\.\w+|receive\.\w+|lfs\.repositoryformatversion"
    r"|blame\.(?:date|coloring)|status\.(?:short|branch|showuntrackedfiles|relativepaths|renames)"
    r"|help\.autocorrect|i18n\.\w+|grep\.(?:linenumber|patterntype|column)"
)
SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)')
KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=.*)?")
ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Where git and Python do not agree on what a line or a name is."""
HEAD = re.compile(rb"ref:\s*refs/\S+\s*|[0-9a-f]{40}(?:[0-9a-f]{24})?\s*")
SUBMODULE_ENTRY = b"\x00\x00\xe0\x00"
HIGHEST = 40
MOST = 10_000
"""Names in a repository that are looked at; where there are more, it is asked about."""

WITHOUT = ("commondir", "config.worktree", "hooks/post-index-change", "objects/info/alternates")
"""What leads git elsewhere, or is run by commands that only read."""
FOLDERS = ("objects", "refs")
READ = (
    *("info", "refs", "logs", "objects/info", "objects/pack", "reftable", "worktrees"),
    *("rebase-merge", "rebase-apply", "sequencer"),
)
"""Folders whose files git reads, and says so where it does not understand them."""
KNOWN = re.compile(
    r"GIT_(?:(?:AUTHOR|COMMITTER)_\w+|EDITOR|SEQUENCE_EDITOR|ASKPASS|TERMINAL_PROMPT"
    r"|OPTIONAL_LOCKS|MERGE_AUTOEDIT|MERGE_VERBOSITY|PS1_\w+|SSL_\w+|HTTP_\w+|FLUSH|ADVICE)"
)
"""Variables that neither move a repository nor name a program that reading runs."""


def is_quiet(disk: Disk, cwd: str) -> bool:
    """Whether a git command that reads, in ``cwd``, runs nothing else and reads nothing elsewhere.

    The user's own git settings are the user's affair. Where there is no repository, git does
    nothing at all; but that is believed only where nothing up to the root looks like one.
    """
    path = disk.real(cwd)
    if path is None or not disk.is_dir(path) or not all(map(_is_known, os.environ.items())):
        return False
    for _ in range(HIGHEST):
        base = path.rstrip("/")
        if disk.exists(f"{base}/.git"):
            return _is_ordinary(disk, f"{base}/.git") and _is_still(disk, f"{base}/.git")
        if disk.exists(f"{base}/HEAD"):  # git may take the directory itself for a repository
            return False
        if not base:
            return True
        path = base.rpartition("/")[0] or "/"
    return False


def _is_known(variable: tuple[str, str]) -> bool:
    name, value = variable[0].upper(), variable[1]
    if name == "GIT_PAGER":
        return value in ("", "cat")
    return not name.startswith("GIT_") or KNOWN.fullmatch(name) is not None


def _is_ordinary(disk: Disk, git: str) -> bool:
    """Whether git takes it for a repository that lies there as a whole."""
    if disk.is_link(git) or not all(_is_folder(disk, f"{git}/{name}") for name in FOLDERS):
        return False
    if any(disk.exists(f"{git}/{name}") for name in WITHOUT):
        return False
    head = _content(disk, f"{git}/HEAD")
    return head is not None and HEAD.fullmatch(head) is not None


def _is_folder(disk: Disk, path: str) -> bool:
    """Whether it is a directory itself, and one that may be entered."""
    return not disk.is_link(path) and disk.is_dir(f"{path}/.")


def _is_still(disk: Disk, git: str) -> bool:
    """Whether nothing in it runs a program, is a link, or has a repository below it."""
    if not _has_no_links(disk, git):
        return False
    if disk.exists(f"{git}/index"):
        index = _content(disk, f"{git}/index")
        if index is None or SUBMODULE_ENTRY in index:
            return False
    if not disk.exists(f"{git}/config"):
        return True
    data = _content(disk, f"{git}/config")
    return data is not None and is_harmless(data.decode("utf-8", "replace"))


def _has_no_links(disk: Disk, git: str) -> bool:
    """Whether all that git reads there are plain files in plain directories."""
    names, objects = disk.names(git, MOST), disk.names(f"{git}/objects", MOST)
    if names is None or any(name.startswith("sharedindex.") for name in names):
        return False
    if objects is None or not all(name.endswith("/") for name in objects):
        return False
    files = [f"{git}/{name}" for name in names if not name.endswith("/")]
    read = [f"{git}/{name}" for name in READ if disk.exists(f"{git}/{name}")]
    return all(disk.links(path) for path in (*files, *_files(disk, read)))


def _files(disk: Disk, folders: list[str]) -> Iterator[str]:
    """What lies in folders and those below them; a folder itself that cannot be looked through."""
    left = MOST
    while folders:
        folder = folders.pop()
        names = disk.names(folder, left) if _is_folder(disk, folder) else None
        if names is None:
            yield folder
            continue
        left -= len(names)
        for name in names:
            if name.endswith("/"):
                folders.append(f"{folder}/{name[:-1]}")
            else:
                yield f"{folder}/{name}"


def _content(disk: Disk, path: str) -> bytes | None:
    """A plain file's content; None for everything else."""
    return disk.data(path) if disk.links(path) else None


def is_harmless(config: str) -> bool:
    """Whether every key of a git configuration is one that cannot run anything."""
    section = ""
    config = config.removeprefix("\ufeff").replace("\r\n", "\n")
    if ODD.search(config):
        return False
    for raw in config.split("\n"):
        line = raw.strip(" \t")
        if match := SECTION.match(line):
            section = match[1].lower() + (f".{match[2]}" if match[2] is not None else "")
            line = match[3].strip(" \t")
        if not line or line[0] in "#;":
            continue
        key = KEY.fullmatch(line)
        if key is None or line.endswith("\\") or not section:
            return False
        if not HARMLESS.fullmatch(f"{section}.{key[1]}".lower()):
            return False
    return True
