"""Git commands that only read: unasked where the repository's own settings can run nothing."""

from __future__ import annotations

import subprocess

import pytest

from crow.extensions.permissions import LocalDisk, Permissions

HARMLESS = """
[core]
\trepositoryformatversion = 0
\tbare = false ; a comment
[remote "origin"]
\turl = https://example.com/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
# nothing more
"""


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "sub").mkdir()
    return tmp_path


def judge(cwd, command: str = "git status") -> str:
    permissions = Permissions.of(disk=LocalDisk("/nonexistent"))
    return permissions.judge("Bash", {"command": command}, cwd=str(cwd)).decision


def test_a_fresh_repository_is_quiet_and_so_is_no_repository_at_all(repository, tmp_path_factory):
    assert judge(repository) == "allow"
    assert judge(repository / "sub") == "allow"
    assert judge(tmp_path_factory.mktemp("none")) == "allow"
    (repository / ".git/config").write_text(HARMLESS)
    assert judge(repository, "git log -p -1 && git diff --stat HEAD~1") == "allow"
    (repository / ".git/config").unlink()
    assert judge(repository) == "allow"


@pytest.mark.parametrize(
    "config",
    [
        "[core]\n\tfsmonitor = ./evil",
        "[core]\n\tpager = ./evil",
        "[core] fsmonitor = ./evil",
        "[CORE]\n\tFSMonitor = ./evil",
        "[diff]\n\texternal = ./evil",
        '[diff "x"]\n\ttextconv = ./evil',
        '[filter "x"]\n\tclean = ./evil',
        "[alias]\n\tstatus = !./evil",
        "[include]\n\tpath = ../evil",
        '[includeIf "gitdir:/"]\n\tpath = ../evil',
        "[extensions]\n\tworktreeConfig = true",
        "[core]\n\thooksPath = evil",
        "[gpg]\n\tprogram = ./evil",
        '[remote "o"]\n\tpromisor = true',
        "[core]\n\tbare = false\\\n\n\tfsmonitor = x",
        "fsmonitor = x",
        "[core\n\tfsmonitor = x",
    ],
)
def test_settings_of_a_repository_that_could_run_something_ask(repository, config):
    (repository / ".git/config").write_text(config + "\n")
    assert judge(repository) == "ask"
    assert judge(repository / "sub", "git log") == "ask"


def test_hooks_links_and_bare_repositories_ask(repository, tmp_path_factory):
    hook = repository / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    assert judge(repository) == "ask"
    hook.unlink()
    assert judge(repository) == "allow"
    (repository / "sub/.git").write_text("gitdir: ../.git\n")
    assert judge(repository / "sub") == "ask"
    bare = tmp_path_factory.mktemp("bare")
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    assert judge(bare) == "ask"


def test_a_submodule_asks_because_it_has_settings_of_its_own(repository, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    subprocess.run([*run, "init", "-q", str(other)], check=True)
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "x"], cwd=other, check=True)
    subprocess.run(
        [*run, "submodule", "--quiet", "add", str(other), "m"], cwd=repository, check=True
    )
    (repository / ".git/config").write_text(HARMLESS)
    assert judge(repository) == "ask"
