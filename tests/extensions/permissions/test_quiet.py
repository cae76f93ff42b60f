"""Where a git command that reads may run unasked, real git runs nothing else and reads nothing else.

Every layout carries canaries wherever git could look; what Crow lets run unasked is run by the real
git under strace, and must execute no other program and open nothing elsewhere.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crow.extensions.permissions import LocalDisk, Permissions

COMMANDS = (
    "git status",
    "git diff",
    "git log -p -1",
    "git show HEAD",
    "git branch -a",
    "git check-ignore -v a",
    "git reflog",
    "git worktree list",
    "git describe --always --dirty",
)
NEEDS = pytest.mark.skipif(
    not (shutil.which("strace") and shutil.which("git")), reason="needs git and strace"
)


@cache
def repositories() -> Path:
    """Where a repository with one commit lies, and a bare clone of it, for copies."""
    root = Path(tempfile.mkdtemp(prefix="crow-test-"))
    atexit.register(shutil.rmtree, root)
    (root / "top").mkdir()
    (root / "top" / "a").write_text("one\n")
    git("init", "-q", str(root / "top"), cwd=root)
    git("add", "a", cwd=root / "top")
    git("commit", "-q", "-m", "x", cwd=root / "top")
    git("clone", "-q", "--bare", str(root / "top"), str(root / "bare"), cwd=root)
    return root


def git(*args: str, cwd: Path) -> None:
    named = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *named, *args], cwd=cwd, check=True, capture_output=True, timeout=5)


class Layout:
    """A project that git and Crow look at: ``top`` with ``sub``, beside it what is ``elsewhere``."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.top = self.root / "top"
        self.elsewhere = self.root / "elsewhere"
        self.canary = self.root / "canary"
        self.cwd = self.top
        shutil.copytree(repositories() / "top", self.top)
        shutil.copytree(repositories() / "bare", self.elsewhere / "bare")
        (self.top / "sub").mkdir()
        (self.top / "a").write_text("two\n")
        (self.elsewhere / "secret").write_text("SECRET\n")
        self.poison(self.elsewhere / "bare")

    @property
    def git(self) -> Path:
        return self.top / ".git"

    @property
    def evil(self) -> str:
        """A configuration that runs something whatever git does."""
        run = f'"touch {self.canary}; false"'
        return (
            f"[core]\n\tbare = false\n\tworktree = {self.top}\n\tfsmonitor = {run}\n"
            f"\tpager = {run}\n[diff]\n\texternal = {run}\n[pager]\n\tstatus = {run}\n"
            f'[filter "x"]\n\tclean = {run}\n[diff "x"]\n\ttextconv = {run}\n'
        )

    def poison(self, folder: Path) -> None:
        """Let a folder's configuration and hooks run the canary."""
        (folder / "config").write_text(self.evil)
        hook = folder / "hooks/post-index-change"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {self.canary}\n")
        hook.chmod(0o755)

    def bare(self, folder: Path, *, without: str = "") -> None:
        """Lay a bare repository into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for each in (self.elsewhere / "bare").iterdir():
            target = folder / each.name
            if each.name != without and not target.exists():
                copy = shutil.copytree if each.is_dir() else shutil.copy
                copy(each, target)


def link(path: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        remove(path)
    path.symlink_to(target)


def remove(path: Path) -> None:
    """Take away a folder or whatever else it is; a pipe is not opened for that."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def written(name: str, text: str) -> Callable[[Layout], object]:
    def change(layout: Layout) -> None:
        path = layout.git / name
        if path.parent.is_dir():
            path.unlink(missing_ok=True)
            path.write_text(text.format(evil=layout.evil, elsewhere=layout.elsewhere))

    return change


def gone(*names: str) -> Callable[[Layout], object]:
    def change(layout: Layout) -> None:
        for name in names:
            path = layout.git / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    return change


def linked(name: str, target: str) -> Callable[[Layout], object]:
    def change(layout: Layout) -> None:
        if (layout.git / name).parent.is_dir():
            link(layout.git / name, layout.elsewhere / target)

    return change


def _empty(layout: Layout) -> None:
    remove(layout.git)
    layout.git.mkdir()


def _file(layout: Layout) -> None:
    remove(layout.git)
    layout.git.write_text(f"gitdir: {layout.elsewhere}/bare\n")


def _hidden_file(layout: Layout) -> None:
    other = layout.git.rename(layout.top / "other")
    (other / "config").unlink()
    (other / "config").write_text(layout.evil)
    layout.git.write_text("gitdir: other\n")


def _pipe(layout: Layout) -> None:
    remove(layout.git)
    os.mkfifo(layout.git)


def _submodule(layout: Layout) -> None:
    layout.bare(layout.top / "m/.git")
    oid = subprocess.check_output(
        ["git", "rev-parse", "HEAD"], cwd=layout.top, text=True, timeout=5
    ).strip()
    git("update-index", "--add", "--cacheinfo", f"160000,{oid},m", cwd=layout.top)


def _split(layout: Layout) -> None:
    git("update-index", "--split-index", cwd=layout.top)


def _pipe_config(layout: Layout) -> None:
    (layout.git / "config").unlink()
    os.mkfifo(layout.git / "config")


CONFIGS = (
    "[core]\n\tfsmonitor = x",
    "[user]\n\tname = a\x0c[color]\n\tfsmonitor = x",
    "[core]\n\tabbrev = 7\r[color]\r\tpager = x",
    "[core]\n\tabbrev = 7\x0b[color]\n\tfsmonitor = x",
    "[core]\n\tabbrev = 7\x85[color]\n\tfsmonitor = x",
    "[core]\n\tabbrev = 7\u2028[color]\n\tfsmonitor = x",
    '[remote "o.promisor\x00"]\n\turl = true',
    "[format]\n\tpretty = %G?",
    "[log]\n\tshowSignature = true",
    "[gc]\n\trecentObjectsHook = x",
    '[hook "x"]\n\tcommand = x\n\tevent = post-index-change',
    "[core]\n\tsshCommand = x",
    "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = o",
    '[remote "o"]\n\tpromisor = true\n\turl = ext::x',
    "[submodule]\n\trecurse = true",
    "[diff]\n\tsubmodule = log",
    "[core]\n\texcludesFile = ../../elsewhere/secret",
    "[include]\n\tpath = ../../elsewhere/config",
    '[includeIf "gitdir:**"]\n\tpath = ../../elsewhere/config',
    "[trace2]\n\teventTarget = /tmp/x",
)

ORDINARY: dict[str, Callable[[Layout], object]] = {
    "as git makes it": lambda _: None,
    "no configuration": gone("config"),
    "detached": written("HEAD", "0123456789012345678901234567890123456789\n"),
    "no repository": gone(""),
    "what is beside the ordinary repository does not count": lambda x: x.poison(x.top),
    "the repository lies elsewhere but is not named": lambda x: x.poison(x.elsewhere),
}
STRANGE: dict[str, Callable[[Layout], object]] = {
    "an empty .git": _empty,
    "a file .git": _file,
    "a file .git that leads below": _hidden_file,
    "a pipe .git": _pipe,
    "a linked .git": lambda x: link(x.git, x.elsewhere / "bare"),
    "a link to .git beside it": lambda x: link(x.git, x.git.rename(x.top / "other")),
    "a dangling .git": lambda x: link(x.git, x.elsewhere / "absent"),
    "a pipe instead of a configuration": _pipe_config,
    "a submodule": _submodule,
    "a split index": _split,
    "an index that is none": lambda x: (gone("index")(x), (x.git / "index").mkdir()),
    "a hook": written("hooks/post-index-change", "#!/bin/sh\n"),
    "a worktree's settings": written("config.worktree", "{evil}"),
    "another common directory": written("commondir", "{elsewhere}/bare"),
    "objects elsewhere": written("objects/info/alternates", "{elsewhere}/bare/objects\n"),
    **{f"without {name}": gone(name) for name in ("HEAD", "objects", "refs")},
    **{
        f"HEAD says {text!r}": written("HEAD", text) for text in ("", "x", "ref: heads/main", "ref")
    },
    **{
        f"{name} is a link": linked(name, target)
        for name, target in (
            ("HEAD", "bare/HEAD"),
            ("config", "bare/config"),
            ("objects", "bare/objects"),
            ("refs", "bare/refs"),
            ("hooks/post-index-change", "bare/hooks/post-index-change"),
            ("index", "secret"),
            ("packed-refs", "secret"),
            ("info/exclude", "secret"),
            ("info", "bare/info"),
            ("objects/pack", "bare/objects/pack"),
            ("objects/aa", "bare/objects"),
            ("refs/heads/x", "secret"),
            ("logs/HEAD", "secret"),
            ("MERGE_HEAD", "secret"),
            ("rebase-merge", "bare"),
        )
    },
    **{f"settings {text!r}": written("config", text + "\n") for text in CONFIGS},
}
AROUND: dict[str, Callable[[Layout], object]] = {
    "nothing": lambda _: None,
    "bare beside it": lambda x: x.bare(x.top),
    "bare below": lambda x: x.bare(x.top / "sub"),
    "bare above": lambda x: x.bare(x.root),
    "bare without objects": lambda x: x.bare(x.top, without="objects"),
    "bare with another common directory": lambda x: (
        x.bare(x.top / "sub", without="objects"),
        (x.top / "sub/commondir").write_text(f"{x.elsewhere}/bare"),
    ),
    "evil settings beside it": lambda x: x.poison(x.top),
    "a repository below": lambda x: x.bare(x.top / "sub/.git"),
}
PLACES: dict[str, Callable[[Layout], Path]] = {
    "top": lambda x: x.top,
    "sub": lambda x: x.top / "sub",
    "through a link": lambda x: (link(x.root / "door", x.top / "sub"), x.root / "door")[1],
    "through a link out": lambda x: (link(x.top / "out", x.elsewhere / "bare"), x.top / "out")[1],
}


@pytest.fixture(autouse=True)
def nothing_of_git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


def judge(cwd: Path, command: str = "git status") -> str:
    permissions = Permissions.of(disk=LocalDisk("/nonexistent"))
    return permissions.judge("Bash", {"command": command}, cwd=str(cwd)).decision


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.variants(20)
def test_a_repository_of_any_other_shape_is_asked_about(tmp_path: Path, name: str) -> None:
    layout = Layout(tmp_path)
    assert judge(layout.top) == "allow"
    STRANGE[name](layout)
    assert [judge(layout.top, command) for command in COMMANDS] == ["ask"] * len(COMMANDS)
    assert judge(layout.top / "sub") == "ask"


def test_a_directory_that_git_may_take_for_a_repository_is_asked_about(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.bare(layout.top / "sub")
    assert (judge(layout.top), judge(layout.top / "sub")) == ("allow", "ask")
    remove(layout.git)
    assert judge(layout.top) == "allow"
    layout.bare(layout.root, without="config")
    assert judge(layout.top) == "ask"
    assert judge(layout.top / "absent") == "ask"


def test_a_link_is_followed_before_a_repository_is_looked_for(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    link(layout.top / "out", layout.elsewhere / "bare")
    assert judge(layout.top / "out") == "ask"
    assert judge(layout.top, "cd out && git status") == "ask"


@pytest.mark.parametrize(
    "variable",
    [
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"),
        *("GIT_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"),
        *("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXEC_PATH"),
        *("GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_TRACE", "GIT_NEWER"),
    ],
)
def test_a_variable_that_moves_git_or_names_a_program_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    layout = Layout(tmp_path)
    monkeypatch.setenv("GIT_EDITOR", "vi")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "me")
    assert judge(layout.top) == "allow"
    for command in (
        f"{variable}=x git status",
        f"export {variable}=x; git status",
        f"declare -x {variable}=x && git status",
        f"env {variable}=x git status",
        f"{variable}=x; git status",
    ):
        assert judge(layout.top, command) == "ask", command
    monkeypatch.setenv(variable, "x")
    assert judge(layout.top) == "ask"
    assert judge(layout.elsewhere) == "ask"


RAN = re.compile(r'execve\("([^"]*)"')
OPENED = re.compile(r'open(?:at)?\([^"]*"([^"]*)"')
CHANGED = re.compile(
    r'(?:unlink|rename|mkdir|link|symlink|chmod|truncate)(?:at2?)?\([^"]*"([^"]*)"'
)
OF_THE_SYSTEM = ("/usr", "/lib", "/etc", "/proc", "/dev", "/sys", "/opt", "/bin")


def trace(layout: Layout, command: str, cwd: Path) -> tuple[set[str], set[str]]:
    """Which programs a command ran beside git, and which files of others it touched."""
    with tempfile.NamedTemporaryFile("r") as log:
        calls = "execve,open,openat,unlink,unlinkat,rename,renameat2,mkdir,link,symlink,connect"
        subprocess.run(
            ["strace", "-f", "-qq", "-s", "4096", "-o", log.name, "-e", calls, *command.split()],
            cwd=cwd,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=30,
        )
        text = log.read()
    ran = {Path(path).name for path in RAN.findall(text)} - {"git"}
    home = str(Path.home())
    touched: set[str] = set()
    for path in OPENED.findall(text) + CHANGED.findall(text):
        whole = os.path.realpath(cwd.resolve() / path)
        if not whole.startswith((*OF_THE_SYSTEM, home)) and not Path(whole).is_relative_to(
            layout.top
        ):
            touched.add(whole)
    return ran, touched


@NEEDS
@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.variants(3)
def test_what_is_quiet_runs_and_reads_nothing_else(tmp_path: Path, name: str) -> None:
    layout = Layout(tmp_path)
    ORDINARY[name](layout)
    for command in COMMANDS:
        assert judge(layout.top, command) == "allow"
        assert trace(layout, command, layout.top) == (set(), set()), command
    assert not layout.canary.exists()


@pytest.mark.slow
@NEEDS
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    inside=st.lists(st.sampled_from([*ORDINARY, *STRANGE]), max_size=2, unique=True),
    around=st.lists(st.sampled_from(list(AROUND)), max_size=2, unique=True),
    place=st.sampled_from(list(PLACES)),
    command=st.sampled_from(COMMANDS),
)
def test_no_layout_that_is_let_through_runs_or_reads_anything_else(
    inside: list[str], around: list[str], place: str, command: str
) -> None:
    with tempfile.TemporaryDirectory() as root:
        layout = Layout(Path(root))
        for name in around:
            AROUND[name](layout)
        for name in inside:
            try:
                (ORDINARY | STRANGE)[name](layout)
            except (OSError, subprocess.SubprocessError):
                continue
        cwd = PLACES[place](layout)
        if judge(cwd, command) == "allow":
            assert trace(layout, command, cwd) == (set(), set())
            assert not layout.canary.exists()
