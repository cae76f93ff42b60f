"""Git commands that only read, in a repository whose own settings run nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crow.extensions.permissions.disk import Disk
from crow.extensions.permissions.programs import Program, option
from crow.extensions.permissions.script import Word

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
    r"|rerere\.(?:enabled|autoupdate)|gc\..*|maintenance\.(?:auto|strategy)|feature\.\w+|index\.\w+"
    r"|pack\.\w+|transfer\.\w+|receive\.\w+|lfs\.repositoryformatversion|blame\.(?:date|coloring)"
    r"|status\.(?:short|branch|showuntrackedfiles|relativepaths|renames)"
    r"|help\.autocorrect|i18n\.\w+|format\.pretty|grep\.(?:linenumber|patterntype|column)"
)
SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)')
KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=.*)?")
SUBMODULE_ENTRY = b"\x00\x00\xe0\x00"
HIGHEST = 40
RUNNING = ("commondir", "config.worktree", "hooks/post-index-change", "hooks/fsmonitor-watchman")

DIFF = (
    "stat shortstat numstat summary name-only name-status patch no-patch raw oneline color "
    "no-color cached staged word-diff ignore-all-space ignore-space-change "
    "ignore-blank-lines minimal "
    "patience histogram unified find-renames find-copies diff-filter check exit-code quiet "
    "no-renames relative text binary full-index abbrev compact-summary no-ext-diff no-textconv "
    "merge-base no-index function-context inter-hunk-context ignore-submodules"
)
LOG = (
    DIFF + " graph decorate no-decorate all branches tags remotes max-count skip since until after "
    "before author committer grep no-merges merges first-parent follow reverse date pretty format "
    "abbrev-commit no-abbrev-commit topo-order date-order author-date-order full-history "
    "simplify-by-decoration left-right cherry-pick cherry-mark boundary pickaxe-regex pickaxe-all "
    "regexp-ignore-case extended-regexp fixed-strings perl-regexp invert-grep all-match "
    "no-walk source use-mailmap no-notes children parents ancestry-path min-parents max-parents"
)


def _program(short: str, valued: str, long: str) -> Program:
    return Program(short, valued, frozenset(long.split()), "text")


COMMANDS = {
    "status": _program(
        "sbvuz",
        "",
        "short branch porcelain long verbose untracked-files ignored ahead-behind no-ahead-behind "
        "show-stash null no-renames ignore-submodules column no-column",
    ),
    "log": _program("pucizmrtwbaEFPgsM", "nLSGU", LOG),
    "show": _program("pucizmrtwbsM", "nSGU", LOG),
    "diff": _program("pucizmrtwbasRMCW", "USGO", DIFF + " no-prefix ours theirs base"),
    "shortlog": _program("nsec", "", "numbered summary email all since until no-merges"),
    "blame": _program(
        "wMCestlfbnp", "L", "date porcelain line-porcelain show-email show-name root"
    ),
    "ls-files": _program(
        "cdomsztvuk",
        "x",
        "cached deleted others modified stage exclude-standard full-name error-unmatch unmerged "
        "killed directory abbrev eol exclude deduplicate",
    ),
    "ls-tree": _program(
        "drtlz", "", "long name-only name-status full-name full-tree abbrev format"
    ),
    "rev-parse": _program(
        "q",
        "",
        "show-toplevel abbrev-ref short verify is-inside-work-tree git-dir absolute-git-dir "
        "show-prefix show-cdup symbolic-full-name all branches tags remotes is-bare-repository "
        "git-common-dir quiet is-inside-git-dir show-superproject-working-tree",
    ),
    "rev-list": _program("", "n", LOG + " count objects"),
    "describe": _program("", "", "tags always abbrev long all dirty match exclude exact-match"),
    "merge-base": _program("a", "", "all is-ancestor fork-point octopus independent"),
    "name-rev": _program("", "", "tags name-only refs all always"),
    "cat-file": _program("tpse", "", ""),
    "for-each-ref": _program("", "", "sort format count contains points-at merged no-merged"),
    "show-ref": _program("dqs", "", "heads tags hash verify abbrev dereference quiet branches"),
    "count-objects": _program("vH", "", "verbose human-readable"),
    "check-ignore": _program("vqn", "", "verbose quiet non-matching no-index"),
    "diff-tree": _program("rptszm", "U", DIFF + " root no-commit-id"),
    "version": _program("", "", "build-options"),
    "branch": _program(
        "avrvl",
        "",
        "all remotes list verbose show-current contains no-contains merged no-merged sort format "
        "points-at color no-color column no-column",
    ),
    "tag": _program("ln", "", "list sort format contains no-contains merged no-merged points-at"),
    "remote": _program("v", "", "verbose"),
    "stash": _program("pu", "", DIFF + " include-untracked only-untracked"),
    "config": _program(
        "lz",
        "",
        "get get-all get-regexp list local global system worktree show-origin show-scope name-only "
        "null bool int path includes no-includes",
    ),
    "reflog": _program("", "n", "all oneline date"),
    "grep": _program(
        "niIwvElFPcqhHop",
        "eABCm",
        "line-number ignore-case word-regexp extended-regexp fixed-strings perl-regexp count "
        "files-with-matches name-only files-without-match show-function function-context heading "
        "break cached untracked no-index color no-color and or not max-depth quiet only-matching "
        "column max-count after-context before-context context",
    ),
    "worktree": _program("v", "", "porcelain verbose"),
}
LISTING = {"stash": {"list", "show"}, "worktree": {"list"}, "reflog": {"show", "exists"}}
PATTERN_MARKS = frozenset({"-l", "--list", "--contains", "--merged", "--no-merged", "--points-at"})
GLOBAL = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
SHOWN_CONFIG = frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l"})
NO_INDEX = "--no-index"


def reads_only(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """The operands of a git command that only reads (in a quiet repository); else None."""
    index = 1
    while index < len(words) and words[index].text in GLOBAL:
        index += 1
    name = words[index].text if index < len(words) else None
    if name in {"--version", "--help"} and len(words) == index + 1:
        return ()
    found = COMMANDS.get(name or "")
    if found is None:
        return None
    rest = words[index + 1 :]
    operands = _operands(found, rest)
    if operands is None or NO_INDEX in {word.text for word in rest}:
        return None
    return tuple(operands) if _is_listing(name or "", rest, operands) else None


def _operands(found: Program, words: Sequence[Word]) -> list[Word] | None:
    operands: list[Word] = []
    index, ended = 0, False
    while index < len(words):
        word, text = words[index], words[index].text
        index += 1
        if text is None or not _is_plain(word):
            return None
        if text == "--":
            ended = True
        elif ended or not text.startswith("-"):
            operands.append(word)
        elif re.fullmatch(r"-\d+", text) is None:
            step = option(found, text)
            values = words[index : index + (step or 0)]
            if step is None or len(values) < step or not all(map(_is_value, values)):
                return None
            if re.match(r"-[a-zA-Z]*O", text):
                return None
            index += step
    return operands


def _is_plain(word: Word) -> bool:
    """Whether a word is certainly one word, and no option that a file is named like."""
    return word.known and not word.globbed and not word.splits


def _is_value(word: Word) -> bool:
    """Whether a word is certainly the value of the option before it."""
    return _is_plain(word) and not word.shape.startswith("-")


def _is_listing(name: str, words: Sequence[Word], operands: list[Word]) -> bool:
    """Whether a command that can also change something only lists."""
    if name in LISTING:
        first = words[0].text if words else None
        return first in LISTING[name] or (name == "reflog" and not operands)
    if name == "config":
        return _shows_config(words, [word.text or "" for word in operands])
    if name in {"branch", "tag"}:
        return not operands or any((w.text or "").split("=")[0] in PATTERN_MARKS for w in words)
    if name == "remote":
        return not operands or (operands[0].text == "get-url" and len(operands) == 2)
    return True


def _shows_config(words: Sequence[Word], operands: list[str]) -> bool:
    """Whether ``git config`` shows settings; its sub-commands of newer gits among the ways."""
    if operands[:1] in (["get"], ["list"]):
        return True
    if any("." not in text for text in operands):
        return False
    return len(operands) == 1 or not SHOWN_CONFIG.isdisjoint(word.text for word in words)


def is_quiet(disk: Disk, cwd: str) -> bool:
    """Whether nothing that the repository around ``cwd`` carries can run a program.

    The user's own git settings are the user's affair. Where there is no repository, git does
    nothing at all.
    """
    path = cwd
    for _ in range(HIGHEST):
        if disk.exists(f"{path}/.git"):
            return disk.is_dir(f"{path}/.git") and _is_quiet(disk, f"{path}/.git")
        if disk.exists(f"{path}/HEAD") and disk.exists(f"{path}/objects"):
            return False
        if path in {"/", ""}:
            return True
        path = path.rpartition("/")[0] or "/"
    return False


def _is_quiet(disk: Disk, git: str) -> bool:
    for name in (
        "commondir",
        "config.worktree",
        "hooks/post-index-change",
        "hooks/fsmonitor-watchman",
    ):
        if disk.exists(f"{git}/{name}"):
            return False
    names = disk.names(git, 1000)
    if names is None or any(name.startswith("sharedindex.") for name in names):
        return False
    if SUBMODULE_ENTRY in (disk.data(f"{git}/index") or b""):
        return False
    if not disk.exists(f"{git}/config"):
        return True
    data = disk.data(f"{git}/config")
    return data is not None and is_harmless(data.decode("utf-8", "replace"))


def is_harmless(config: str) -> bool:
    """Whether every key of a git configuration is one that cannot run anything."""
    section = ""
    for raw in config.splitlines():
        line = raw.strip().removeprefix("\ufeff")
        if match := SECTION.match(line):
            section = match[1].lower() + (f".{match[2]}" if match[2] is not None else "")
            line = match[3].strip()
        if not line or line[0] in "#;":
            continue
        key = KEY.fullmatch(line)
        if key is None or line.endswith("\\") or not section:
            return False
        if not HARMLESS.fullmatch(f"{section}.{key[1]}".lower()):
            return False
    return True
