"""Paths that no rule and no hook may open for writing, and paths whose removal always asks.

The line: what a person opens, enters or commits runs these files, or a program starts with them,
though nobody named them. What a build or a test run is told to run is source like any other.
"""

from __future__ import annotations

from crow.extensions.permissions.paths.disk import Disk, ResolvedPath, inside

DIRECTORIES = frozenset(
    {".git", ".hg", ".svn", ".jj", ".husky", ".githooks", ".lefthook", ".ssh", ".gnupg"}
    | {".vscode", ".idea", ".zed", ".fleet", ".vs", ".devcontainer", ".cargo", ".yarn", ".mvn"}
    | {".claude", ".crow", ".cursor", ".windsurf", ".codeium", ".continue", ".gemini", ".codex"}
    | {".kiro", ".roo", ".amazonq", ".opencode", ".pi", ".junie", ".trae", ".augment"}
    | {".qwen", ".factory", ".goose", ".cline", ".kilocode", ".openhands", ".crush", ".copilot"}
    | {".git-hooks", ".hooks", ".theia", ".helix", ".nova", ".lapce", ".shadowenv.d"}
    | {".emacs.d", ".vim", ".nvim", ".direnv", ".mise", ".ipython", ".jupyter"}
)
FILES = frozenset(
    {".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"}
    | {".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc"}
    | {".login", ".logout", ".inputrc", ".xprofile", ".xinitrc", ".xsession", ".envrc", ".netrc"}
    | {".gitconfig", ".gitmodules", ".npmrc", ".pypirc", "pip.conf", ".condarc"}
    | {".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", ".pnpmfile.js", ".hgrc"}
    | {".pnp.cjs", ".pnp.loader.mjs", "bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazeliskrc"}
    | {".mcp.json", "mcp.json", ".claude.json", ".crow.json", "opencode.json", ".aider.conf.yml"}
    | {".ripgreprc", ".curlrc", ".wgetrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lvimrc"}
    | {".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml"}
    | {
        ".huskyrc",
        ".overcommit.yml",
        ".devcontainer.json",
        "mise.toml",
        ".mise.toml",
        ".mise.local.toml",
    }
    | {".screenrc", ".tmux.conf", ".exrc", ".emacs", ".dir-locals.el", ".gdbinit", ".lldbinit"}
    | {".pythonrc", ".pdbrc", ".irbrc", ".pryrc", ".rprofile", ".sqliterc", ".psqlrc"}
    | {".bash_history", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh", ".rvmrc", ".direnvrc"}
    | {".renviron", ".ghci", ".ocamlinit", ".perldb", ".juliarc.jl", ".byebugrc", ".duckdbrc"}
    | {".mongorc.js", ".mongoshrc.js", ".my.cnf", ".sbclrc", ".guile", ".radare2rc", ".tigrc"}
    | {".ycm_extra_conf.py", ".vimspector.json", ".dir-locals-2.el", ".kakrc", ".wezterm.lua"}
    | {".git-credentials", ".jjconfig.toml", ".pam_environment", ".xsessionrc", ".mailcap"}
    | {".procmailrc", ".muttrc", ".terraformrc", ".gemrc", "crush.json", ".crush.json"}
    | {"mise.local.toml", ".rtx.toml", "opencode.jsonc"}
)
HOOKS = frozenset(
    f"{dot}{name}.{kind}"
    for name in ("lefthook", "lefthook-local", "simple-git-hooks", "huskyrc")
    for dot in ("", ".")
    for kind in ("yml", "yaml", "toml", "json", "jsonc", "js", "cjs", "mjs")
)
CONFIGS = frozenset(
    {"git", "fish", "crow", "claude", "systemd", "autostart", "environment.d", "direnv", "mise"}
    | {"nvim", "zed", "pip", "zsh", "nushell", "opencode", "helix", "goose", "crush", "xonsh"}
    | {"tmux", "zellij", "kitty", "wezterm", "alacritty", "ghostty", "sway", "i3", "hypr"}
    | {"gh", "jj", "lazygit", "emacs", "doom", "kak", "code", "cursor", "vscodium", "elvish"}
)
PAIRS = frozenset(
    {(".docker", "config.json"), (".kube", "config"), (".aws", "config"), (".aws", "credentials")}
    | {(".gradle", "init.d"), (".gradle", "init.gradle"), (".m2", "settings.xml")}
    | {(".github", "hooks"), ("library", "launchagents")}
)
"""A directory, and the one thing in it that names programs which are run."""
OPEN = frozenset({"worktrees", "agent-memory", "agent-memory-local"})
"""Folders of agents that hold work and notes: nothing runs what is there."""
AGENTS = frozenset({".claude", ".crow"})
INSTALLED = frozenset({"node_modules", ".venv", "venv", "site-packages", ".tox", ".nox"})
STARTED = frozenset(
    {".gitattributes", "sitecustomize.py", "usercustomize.py", "pyvenv.cfg", "pnpm-workspace.yaml"}
)
ENDINGS = (".pth", ".code-workspace", ".egg-link", ".sublime-project", ".sublime-workspace")


def is_started(path: str) -> bool:
    """Whether programs load a file, or find it by its name, though nobody asks them to.

    It is not source of the project: what package managers installed, what Python loads when it
    starts, what git and editors do with a folder.
    """
    parts = path.casefold().split("/")
    if not INSTALLED.isdisjoint(parts):
        return True
    return parts[-1] in STARTED or parts[-1].endswith(ENDINGS)


def is_protected(path: str) -> bool:
    """Whether a path, or one of the directories that it is in, is protected; it need not exist."""
    parts = [part for part in path.casefold().split("/") if part]
    for index, part in enumerate(parts):
        after = parts[index + 1] if index + 1 < len(parts) else ""
        if part in AGENTS and after in OPEN and index + 2 < len(parts):
            continue
        if (
            part in DIRECTORIES
            or (part == ".config" and after in CONFIGS)
            or (part, after) in PAIRS
        ):
            return True
    return bool(parts) and (parts[-1] in FILES or parts[-1] in HOOKS)


def is_critical(disk: Disk, where: ResolvedPath, cwds: tuple[str, ...]) -> bool:
    """Whether removing a path would remove the root, a child of it, home, or a parent of cwd."""
    homes = {disk.home, disk.real(disk.home) or disk.home}
    kept = {*homes, *cwds, *(disk.real(cwd) or cwd for cwd in cwds)}
    for path in where.names:
        if path.count("/") <= 1 or any(inside(one, path) for one in kept):
            return True
    return where.real is None
