"""Commands that change files which are there already."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("command", ["mv README.md two.md", "cp README.md src/app.ts"])
@pytest.mark.parametrize("mode", ["acceptEdits", "default"])
def test_a_file_may_be_moved_over_another_where_edits_are_accepted(
    make_world, command: str, mode: str
) -> None:
    world = make_world()
    (world.cwd / "two.md").write_text("b\n")
    wanted = "allow" if mode == "acceptEdits" else "ask"
    made = world.judge(command, mode=mode)
    assert made.decision == wanted
    assert made.decision == "ask" or made.reason.endswith("in the mode acceptEdits")


@pytest.mark.parametrize("path", ["two.md/../../other/x", "two.md/.git/config", "two.md/../.env"])
def test_a_file_that_is_taken_for_a_directory_opens_nothing(make_world, path: str) -> None:
    world = make_world()
    (world.cwd / "two.md").write_text("b\n")
    made = world.judge(f"cp README.md {path}", mode="acceptEdits", deny=["Edit(.env)"])
    assert made.decision in {"ask", "deny"}


@pytest.mark.parametrize("command", ["rm -rf /", "rm -rf ~", "rmdir ..", "rm -r ~/*"])
def test_a_removal_that_is_always_asked_about_says_what_it_removes(world, command: str) -> None:
    made = world.judge(command, mode="bypassPermissions")
    assert made.decision == "ask"
    assert " would remove /" in made.reason


NOT_SOURCE = [
    *(".venv/bin/ls", "venv/lib/python3.11/site-packages/x.py", "node_modules/.bin/tsc"),
    *("node_modules/x/index.js", "x.pth", "lib/sitecustomize.py", "usercustomize.py"),
    *(".gitattributes", "pnpm-workspace.yaml", "app.code-workspace", ".tox/py/bin/python"),
    "app.sublime-project",
]
PROTECTED = [
    *(".cursor/mcp.json", ".devcontainer.json", ".devcontainer/x.sh", ".zed/tasks.json"),
    *(".vscode/tasks.json", ".idea/x.xml", ".mcp.json", ".husky/pre-commit", ".githooks/x"),
    *(".npmrc", ".yarnrc.yml", ".bazelrc", ".gitmodules", ".envrc", ".pre-commit-config.yaml"),
    *("lefthook.yml", "mise.toml", ".lldbinit", ".hg/hgrc", "pkg/.windsurf/x", ".config/nvim/x"),
    *(".dir-locals.el", "pip.conf", ".nvim.lua", ".pdbrc", ".CURSOR/mcp.json"),
    *(".git-hooks/pre-commit", ".hooks/x", ".theia/tasks.json", ".qwen/settings.json", ".goose/x"),
    *(".factory/mcp.json", ".direnvrc", ".Renviron", ".Rprofile", ".helix/languages.toml"),
    *(".docker/config.json", ".kube/config", ".aws/config", "x/.rvmrc", ".ghci", ".github/hooks/x"),
    *(".ycm_extra_conf.py", ".crush.json", ".config/helix/config.toml", ".git-credentials"),
]
SOURCE = [
    *("pyproject.toml", "conftest.py", "package.json", "Makefile", "setup.py", "src/app.py"),
    *(
        ".github/workflows/ci.yml",
        ".gitignore",
        "Dockerfile",
        "build.rs",
        "Cargo.toml",
        ".env.example",
    ),
    *(
        "CLAUDE.md",
        "docs/lefthook.md",
        "justfile",
        "hooks/use.ts",
        "docker/config.json",
        "kube/config",
        ".eslintrc.json",
        "venvs.md",
        "tests/pth.py",
    ),
]


@pytest.mark.parametrize("path", [*NOT_SOURCE, *PROTECTED, *SOURCE])
def test_what_runs_without_being_named_is_asked_about_and_source_is_not(world, path: str) -> None:
    def decide(tool: str, **options) -> str:
        args = {"command": f"touch {path}"} if tool == "Bash" else {"file_path": path}
        permissions = world.permissions(**{"mode": "acceptEdits", **options})
        return permissions.judge(tool, args, cwd=str(world.cwd)).decision

    wanted = "allow" if path in SOURCE else "ask"
    for tool in ("Write", "Edit", "Bash"):
        assert decide(tool) == wanted
    assert decide("Write", allow=["Edit"]) == ("ask" if path in PROTECTED else "allow")
    assert decide("Write", mode="bypassPermissions") == "allow"
    assert decide("Write", mode="default") == "ask"
    assert decide("Write", mode="plan", allow=["Edit"]) == "ask"


@pytest.mark.parametrize("path", NOT_SOURCE)
def test_what_is_not_source_may_be_removed_where_edits_are_accepted(world, path: str) -> None:
    assert world.judge(f"rm -f {path}", mode="acceptEdits").decision == "allow"
    assert world.judge(f"mv README.md {path}", mode="acceptEdits").decision == "ask"


def test_a_workspace_may_lie_in_such_a_directory_itself(make_world) -> None:
    world = make_world()
    inner = world.cwd / "venv" / "mine"
    inner.mkdir(parents=True)
    permissions = world.permissions(mode="acceptEdits")
    made = permissions.judge("Write", {"file_path": "a.py"}, cwd=str(inner))
    assert made.decision == "allow"


def test_nohup_writes_to_a_file_that_nobody_named(make_world) -> None:
    world = make_world()
    allow = ["Bash(npm *)"]
    assert world.judge("nohup npm start", allow=allow).decision == "allow"
    assert world.judge("nohup ls").decision == "allow"
    assert world.judge("nohup ls", mode="plan").decision == "ask"
    assert world.judge("nohup npm start", allow=allow, deny=["Edit(nohup.out)"]).decision == "deny"
    (world.cwd / "nohup.out").symlink_to(world.home / ".bashrc")
    assert world.judge("nohup npm start", allow=allow).decision == "ask"
    assert world.judge("nohup ls").decision == "ask"
