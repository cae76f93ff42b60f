"""Marketplaces of plugins, and which of their plugins lie in the user's folder.

A marketplace is a folder with ``.claude-plugin/marketplace.json``, in a git repository or not. What
comes from one is copied, pinned to the commit that it was seen at, and nothing of it is run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from crow.core.support.frozen import frozen
from crow.project.files import write_atomically
from crow.project.home import state_directory
from crow.project.plugins import (
    CLAUDES,
    INDEX,
    INLINE,
    MANIFEST,
    PARTS,
    STRICT,
    PluginError,
    is_plugin,
)

Table = dict[str, Any]
OURS = Path(".crow", "plugins")
"""Where plugins lie below the user's home."""
RECORD = "installed.json"
URL = re.compile(r"(?:https?|ssh|file)://\S+|[\w.-]+@[\w.-]+:\S+")
SHORT = re.compile(r"[\w.-]+/[\w.-]+")
"""A repository of GitHub's."""
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
COMMIT = re.compile(r"[0-9a-f]{40}")
GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
CACHE = "__pycache__"
SAID = frozenset(
    {*PARTS, "hooks", "mcpServers", "lspServers", "outputStyles", "userConfig", STRICT}
)
"""What a marketplace may say of a plugin that counts."""
PATIENCE = 300


@frozen
class Origin:
    """The origin of something: a ``folder`` or a git ``url``, and in it the ``path`` of a folder.

    ``ref`` is a branch or a tag, ``commit`` where it was pinned.
    """

    folder: str = ""
    url: str = ""
    path: str = ""
    ref: str = ""
    commit: str = ""

    @classmethod
    def of(cls, text: str) -> Origin:
        """What somebody typed: a folder, a URL, ``owner/repository``. Raises `PluginError`."""
        path = Path(os.path.expanduser(text))
        if path.is_dir():
            return cls(folder=str(path.absolute()))
        url, _, ref = text.partition("#")
        if URL.fullmatch(url):
            return cls(url=url, ref=ref)
        if SHORT.fullmatch(url):
            return cls(url=f"https://github.com/{url}.git", ref=ref)
        raise PluginError(f"{text!r} is no folder, no URL of a repository and no owner/repository")

    @classmethod
    def in_entry(cls, source: object, market: Origin) -> Origin:
        """What a marketplace's entry says. Raises `PluginError` for what is not known here."""
        if isinstance(source, str):
            return cls(market.folder, market.url, _below(source), market.ref, market.commit)
        table = cast(Table, source) if isinstance(source, dict) else {}
        kind, ref, sha = table.get("source"), str(table.get("ref") or ""), table.get("sha")
        commit = sha if isinstance(sha, str) and COMMIT.fullmatch(sha) else ""
        url = str(table.get("url") or "")
        if kind == "github" and SHORT.fullmatch(str(table.get("repo"))):
            url = f"https://github.com/{table['repo']}.git"
        elif kind not in ("url", "git", "git-subdir") or not URL.fullmatch(url):
            raise PluginError(f"a source of the kind {kind!r} cannot be had here")
        return cls(url=url, path=_below(str(table.get("path") or "")), ref=ref, commit=commit)

    def __str__(self) -> str:
        where = self.folder or self.url
        return f"{where}{f' ({self.path})' if self.path else ''}"

    @property
    def table(self) -> Table:
        """The same as JSON."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name))}


def _below(path: str) -> str:
    """A folder in another one. Raises `PluginError` for one that leads out of it."""
    clean = os.path.normpath(path or ".")
    if Path(clean).is_absolute() or Path(clean).parts[:1] == ("..",):
        raise PluginError(f"{path!r} leads out of the marketplace")
    return "" if clean == "." else clean


def fetch(origin: Origin, to: Path) -> Origin:
    """Copy what is there, without its history; where it was pinned. Raises `PluginError`."""
    if origin.folder:
        _copy(Path(origin.folder, origin.path), to)
        return origin
    with TemporaryDirectory() as scratch:
        clone = Path(scratch, "clone")
        branch = ["--branch", origin.ref] if origin.ref and not origin.commit else []
        depth = [] if origin.commit else ["--depth", "1"]
        _git(
            "clone", "--quiet", "--no-recurse-submodules", *depth, *branch, "--", origin.url, clone
        )
        if origin.commit:
            _git("-C", clone, "checkout", "--quiet", "--detach", origin.commit)
        commit = _git("-C", clone, "rev-parse", "HEAD")
        _copy(clone / origin.path, to)
    return Origin(url=origin.url, path=origin.path, ref=origin.ref, commit=commit)


def _git(*words: str | Path) -> str:
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        done = subprocess.run(
            [*GIT, *map(str, words)],
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise PluginError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise PluginError(f"git took longer than {PATIENCE} s") from None
    if done.returncode:
        raise PluginError(f"git: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


def _copy(source: Path, to: Path) -> None:
    if not source.is_dir():
        raise PluginError(f"there is no folder {source.name!r} in it")
    try:
        shutil.copytree(source, to, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    except (OSError, shutil.Error) as error:
        raise PluginError(f"it cannot be copied: {' '.join(str(error).split())[:300]}") from None


def digest(folder: Path) -> str:
    """A hash of all files in a folder, of what stands where; caches of Python are not counted."""
    told = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if CACHE not in each.parts):
        if path.is_symlink():
            told.update(f"{path.relative_to(folder)}\0-> {path.readlink()}\0".encode())
        elif path.is_file():
            told.update(f"{path.relative_to(folder)}\0".encode())
            told.update(hashlib.sha256(path.read_bytes()).digest())
    return told.hexdigest()


class Marketplaces:
    """The marketplaces that somebody has added, each a copy in the state directory."""

    def __init__(self) -> None:
        self.folder = state_directory() / "marketplaces"

    @property
    def known(self) -> dict[str, Origin]:
        """Their origins by name."""
        table = read_table(self.folder / RECORD)
        return {name: Origin(**cast(Table, each)) for name, each in table.items()}

    def claudes(self) -> dict[str, Origin]:
        """Those that Claude Code knows besides, by name: a plugin of theirs takes them in."""
        found: dict[str, Origin] = {}
        for name, about in read_table(Path.home() / CLAUDES / "known_marketplaces.json").items():
            with suppress(PluginError, TypeError, KeyError):
                if name not in self.known:
                    found[name] = _of_claude({**cast(Table, about)["source"]})
        return found

    def add(self, origin: Origin) -> tuple[str, int]:
        """Take a marketplace in, or anew; its name, and how many plugins it has."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with TemporaryDirectory(dir=self.folder) as scratch:
            pinned = fetch(origin, copy := Path(scratch, "copy"))
            table = read_index(copy)
            name = str(table["name"])
            if name == RECORD:
                raise PluginError(f"{name!r} is no name of a marketplace")
            shutil.rmtree(self.folder / name, ignore_errors=True)
            copy.rename(self.folder / name)
        self._write({**self.known, name: pinned})
        return name, len(list(entries(table)))

    def remove(self, name: str) -> bool:
        """Forget one; False where there is none."""
        known = self.known
        if known.pop(name, None) is None:
            return False
        shutil.rmtree(self.folder / name, ignore_errors=True)
        self._write(known)
        return True

    def entries(self, name: str) -> dict[str, Table]:
        """The plugins of a marketplace by name. Raises `PluginError`."""
        if name not in self.known:
            raise PluginError(f"there is no marketplace {name!r}: crow plugin market lists them")
        return dict(entries(read_index(self.folder / name)))

    def origin(self, plugin: str, market: str) -> Origin:
        """Where a plugin of a marketplace is. Raises `PluginError`."""
        source = self.entry(plugin, market)["source"]
        if isinstance(source, str) and not source.startswith("."):
            told: object = read_index(self.folder / market).get("metadata")
            table = cast(Table, told) if isinstance(told, dict) else {}
            source = f"{table.get('pluginRoot') or '.'}/{source}"
        return Origin.in_entry(source, self.known[market])

    def entry(self, plugin: str, market: str) -> Table:
        """What a marketplace says of a plugin. Raises `PluginError`."""
        entry = self.entries(market).get(plugin)
        if entry is None:
            raise PluginError(f"the marketplace {market!r} has no plugin {plugin!r}")
        return entry

    def _write(self, known: Mapping[str, Origin]) -> None:
        text = json.dumps({name: each.table for name, each in known.items()}, indent=2)
        write_atomically(self.folder / RECORD, f"{text}\n")


def _of_claude(source: Table) -> Origin:
    """Where a marketplace of Claude Code's is from. Raises `PluginError`."""
    if source.get("source") == "directory":
        return Origin.of(str(source.get("path")))
    return Origin.in_entry({**source, "path": ""}, Origin())


def read_index(folder: Path) -> Table:
    """A marketplace's list. Raises `PluginError`."""
    table = read_table(folder / INDEX)
    if not NAME.fullmatch(str(table.get("name") or "")) or not isinstance(
        table.get("plugins"), list
    ):
        raise PluginError(f"it is no marketplace: {INDEX} needs a 'name' and a list 'plugins'")
    return table


def entries(table: Table) -> Iterator[tuple[str, Table]]:
    """The plugins of a marketplace; what is broken is left out, and never stops the others."""
    for entry in cast("list[object]", table["plugins"]):
        each = cast(Table, entry) if isinstance(entry, dict) else {}
        name = str(each.get("name") or "")
        if NAME.fullmatch(name) and "source" in each:
            yield name, each


def complete(copy: Path, entry: Table) -> None:
    """Write what a marketplace says of a plugin into its manifest.

    The manifest's own word is stronger, unless the entry is said to stand for it: ``strict`` is
    false.
    """
    said = {key: value for key, value in entry.items() if key in SAID}
    if not said:
        return
    path = copy / MANIFEST
    if path.parent.is_symlink():  # nothing is written outside of the copy
        raise PluginError(f"its folder {path.parent.name} is a link")
    own = read_table(path)
    whole = {**own, **said} if entry.get("strict") is False else {**said, **own}
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, f"{json.dumps({'name': entry['name'], **whole}, indent=2)}\n")


class Installed:
    """The plugins that lie in the user's folder, and what is known of them, by their ids."""

    def __init__(self, home: Path | None = None) -> None:
        self.folder = (home or Path.home()) / OURS

    @property
    def known(self) -> dict[str, Table]:
        """What was written down: folder, origin, digest and description of each."""
        return {id_: cast(Table, each) for id_, each in read_table(self.folder / RECORD).items()}

    def ids(self) -> dict[str, str]:
        """Ids by the names of the folders."""
        return {str(each.get("folder")): id_ for id_, each in self.known.items()}

    def put(self, copy: Path, name: str, market: str, origin: Origin) -> str:
        """Move a plugin in, in the place of the one of its name; its id. Raises `PluginError`."""
        if not NAME.fullmatch(name):
            raise PluginError(f"{name!r} is no name of a plugin")
        id_, known = f"{name}@{market or INLINE}", self.known
        taken = self.ids().get(name)
        if (self.folder / name).exists() and taken != id_:
            raise PluginError(f"there is a plugin {taken or name!r} already: remove it first")
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.move(copy, self.folder / name)
        about = {"folder": name, "origin": origin.table, "digest": digest(self.folder / name)}
        self._write({**known, id_: about})
        return id_

    def remove(self, id_: str) -> None:
        """Take one away."""
        known = self.known
        about = known.pop(id_)
        shutil.rmtree(self.folder / str(about["folder"]), ignore_errors=True)
        self._write(known)

    def has_changed(self, id_: str) -> bool:
        """True where somebody has changed it since."""
        about = self.known[id_]
        with suppress(OSError):
            return digest(self.folder / str(about["folder"])) != about["digest"]
        return True

    def _write(self, known: Mapping[str, Table]) -> None:
        write_atomically(self.folder / RECORD, f"{json.dumps(known, indent=2)}\n")


def read_table(path: Path) -> Table:
    """A JSON object in a file; an empty one where there is none that can be read."""
    try:
        table: object = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return cast(Table, table) if isinstance(table, dict) else {}


def check_plugin(folder: Path) -> None:
    """Raise `PluginError` for a folder that is no plugin."""
    if not is_plugin(folder):
        raise PluginError("it is no plugin: there are neither hooks nor skills, commands or agents")
