"""Paths that no rule and no hook may open for writing, and paths whose removal always asks."""

from __future__ import annotations

from crow.extensions.permissions.disk import Disk, Place, inside

DIRECTORIES = frozenset(
    {".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".claude"}
    | {".crow", ".ssh", ".gnupg"}
)
FILES = frozenset(
    {".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"}
    | {".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc"}
    | {".login", ".logout", ".inputrc", ".xprofile", ".xinitrc", ".xsession", ".envrc", ".netrc"}
    | {".gitconfig", ".gitmodules", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pypirc"}
    | {".pnp.cjs", ".pnp.loader.mjs", "bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazeliskrc"}
    | {".mcp.json", ".claude.json", ".crow.json", ".ripgreprc", ".curlrc", ".wgetrc", ".vimrc"}
    | {".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml"}
    | {"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", "lefthook-local.yml"}
    | {".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook-local.yml", ".screenrc"}
    | {".tmux.conf", ".exrc", ".emacs", ".gdbinit", ".pythonrc", ".condarc", ".bash_history"}
)
CONFIGS = frozenset({"git", "fish", "crow", "claude", "systemd", "autostart"})
OPEN = frozenset({"worktrees"})
AGENTS = frozenset({".claude", ".crow"})


def is_protected(path: str) -> bool:
    """Whether a path, or one of the directories that it is in, is protected; it need not exist."""
    parts = [part for part in path.casefold().split("/") if part]
    for index, part in enumerate(parts):
        after = parts[index + 1] if index + 1 < len(parts) else ""
        if part in AGENTS and after in OPEN and index + 2 < len(parts):
            continue
        if part in DIRECTORIES or (part == ".config" and after in CONFIGS):
            return True
    return bool(parts) and parts[-1] in FILES


def holds_protected(disk: Disk, path: str) -> bool:
    """Whether a directory has a protected path directly in it."""
    names = disk.names(path, 5000) if disk.is_dir(path) else []
    return names is None or any(is_protected(name.rstrip("/")) for name in names)


def is_critical(disk: Disk, where: Place, cwds: tuple[str, ...]) -> bool:
    """Whether removing a path would remove the root, a child of it, home, or a parent of cwd."""
    homes = {disk.home, disk.real(disk.home) or disk.home}
    kept = {*homes, *cwds, *(disk.real(cwd) or cwd for cwd in cwds)}
    for path in where.names:
        if path.count("/") <= 1 or any(inside(one, path) for one in kept):
            return True
    return where.real is None
