"""Git has the contents of files too: none that may not be read is shown unasked, not even of old."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from crow.extensions.permissions import LocalDisk, Permissions

SECRET = "SECRET-OF-THE-FILE"
NAMED = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
SHOWING = """
git diff
git diff HEAD~1
git diff HEAD~1 HEAD
git diff -- '*.env'
git diff -- '*env'
git diff -- ':(glob)**/*.env'
git diff -- :/
git diff -- ':!src'
git diff -- .
git diff HEAD -- '.e*'
git diff --cached
git diff --stat -p
git show
git show HEAD:.env
git show HEAD:./.env
git show HEAD:config/.env
git show :.env
git show :0:.env
git show --name-only --patch
git log -p
git log -1 -u
git log --patch
git log --pat
git log -U1
git log --cc
git log -W -1
git log -L1,1:.env
git log -p -- '*.env'
git log --stat -p -- :/
git -c color.ui=always log -p
git -C src log -p
git -C src diff
git stash show -p
git reflog -p
git cat-file -p HEAD:.env
git cat-file blob HEAD:.env
git grep SECRET
git grep SECRET HEAD
git grep -h SECRET -- '*.env'
git blame .env
git blame HEAD -- config/.env
git annotate .env
git archive HEAD
git format-patch --stdout -1
git fast-export HEAD
git diff-tree -p HEAD~1 HEAD
git diff-index -p HEAD
git diff-files -p
git status -vv
git whatchanged -p
git checkout-index --temp .env
""".strip().splitlines()
PLAIN = """
git diff --stat
git diff -- src/app.py
git diff HEAD -- src/app.py
git diff src
git diff HEAD~1 HEAD -- src/app.py
git show --stat
git show -s --format=%B
git show HEAD:src/app.py
git show HEAD -- src/app.py
git log
git log --oneline -3
git log --stat
git log -p -- src/app.py
git log -G foo
git log @{u}..
git blame src/app.py
git cat-file -p HEAD
git cat-file -p HEAD^{tree}
git cat-file -t HEAD
git status
git stash list
git branch -a
git ls-files
git commit -m 'say more of .env'
git add -A
""".strip().splitlines()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    top = tmp_path_factory.mktemp("repository").resolve()
    (top / "src").mkdir()
    (top / "config").mkdir()
    git(top, "init", "-qb", "main")
    for text in ("old", SECRET, f"{SECRET} 2"):
        (top / "src/app.py").write_text(f"print('{text[:3]}')\n")
        (top / ".env").write_text(f"{text}\n")
        (top / "config/.env").write_text(f"{text}\n")
        if not text.endswith("2"):
            git(top, "add", "-f", ".")
            git(top, "commit", "-qm", "x")
    git(top, "stash", "-q")
    git(top, "stash", "apply", "-q")
    return top


def git(top, *words: str) -> None:
    subprocess.run([*NAMED, *words], cwd=top, check=True, capture_output=True)


def judged(top, command: str, *deny: str) -> str:
    permissions = Permissions.of(allow=["Bash"], deny=deny, disk=LocalDisk("/nonexistent"))
    return permissions.judge("Bash", {"command": command}, cwd=str(top)).decision


@pytest.mark.parametrize("command", SHOWING)
def test_what_git_could_show_of_a_denied_file_is_not_shown_unasked(repository, command):
    assert judged(repository, command, "Read(.env)") != "allow"
    assert judged(repository, command) == "allow"
    assert judged(repository, command, "Read(~/.ssh/**)", "Edit(.env)") == "allow"


@pytest.mark.parametrize("command", PLAIN)
def test_what_git_shows_of_other_files_needs_no_question_and_no_secret_is_in_it(
    repository, command
):
    assert judged(repository, command, "Read(.env)") == "allow"
    if not command.startswith(("git commit", "git add")):
        argv = shlex.split(command)
        done = subprocess.run(argv, cwd=repository, capture_output=True, text=True, check=False)
        assert SECRET not in done.stdout


def test_where_git_tracks_nothing_that_is_denied_a_diff_of_today_is_fine(repository):
    assert judged(repository, "git diff", "Read(*.pem)") == "allow"
    assert judged(repository, "git log -p", "Read(*.pem)") == "ask"


@pytest.mark.parametrize(
    "change",
    [
        ["update-index", "--index-version", "4"],
        ["update-index", "--split-index"],
    ],
)
def test_an_index_of_another_form_tells_nothing(repository, tmp_path, change):
    top = shutil.copytree(repository, tmp_path / "copy")
    assert judged(top, "git diff", "Read(*.pem)") == "allow"
    git(top, *change)
    assert judged(top, "git diff", "Read(*.pem)") == "ask"


def test_nor_does_one_of_another_repository(repository, tmp_path):
    worktree = tmp_path / "worktree"
    git(repository, "worktree", "add", "-q", str(worktree))
    assert judged(worktree, "git diff", "Read(.env)") == "ask"
    command = f"git --git-dir={repository}/.git show HEAD:.env"
    assert judged(tmp_path, command, "Read(.env)") != "allow"
    assert judged(tmp_path, command.replace("HEAD:.env", "HEAD"), "Read(.env)") == "ask"
