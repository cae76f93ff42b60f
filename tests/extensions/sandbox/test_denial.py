"""Telling what a ring refused from what went wrong by itself, by what commands really print."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crow import ToolResult
from crow.extensions.sandbox.denial import denial
from crow.extensions.sandbox.finder import Finder
from crow.extensions.sandbox.launcher import RingLauncher
from crow.extensions.sandbox.policy import Limits, Policy, Proxy
from crow.project import SandboxSettings

OUT = "or set dangerouslyDisableSandbox and give the reason in description"


class Holder:
    settings = SandboxSettings()
    finder = Finder()
    limits = Limits()

    def __init__(self) -> None:
        self.late: list[str] = []

    def policy(self, ring: object) -> Policy:
        raise NotImplementedError


@pytest.fixture
def world(tmp_path: Path) -> Path:
    for name in ("project/.git/hooks", "other", "home/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/.ssh/id_rsa").write_text("key")
    (tmp_path / "project/out").symlink_to("../other")
    return tmp_path


def told(world: Path, printed: str, code: int = 1, **policy: object) -> str | None:
    launcher = RingLauncher(Holder(), "workspace")
    fields = {
        "roots": (f"{world}/project",),
        "tmp": f"{world}/tmp",
        "read_only": (f"{world}/project/.git/hooks",),
        "masked": (f"{world}/home/.ssh",),
        **policy,
    }
    launcher.policy = Policy("workspace", **fields)  # pyright: ignore[reportArgumentType]
    launcher.cwd = f"{world}/project"
    head = f"Exit code {code}\n" if code else ""
    text = head + printed.replace("@", str(world))
    return denial(ToolResult(text, error=bool(code)), launcher, escapes=True)


@pytest.mark.parametrize(
    "printed, path",
    [
        ("/usr/bin/bash: line 1: @/other/a: Read-only file system", "other/a"),
        ("touch: cannot touch '@/other/a b': Read-only file system", "other/a b"),
        ("OSError: [Errno 30] Read-only file system: '@/other/a'", "other/a"),
        ("Error: EROFS: read-only file system, open '@/other/a'", "other/a"),
        ("touch: cannot touch '../other/a': Read-only file system", "other/a"),
        ("/usr/bin/bash: line 1: out/a: Read-only file system", "other/a"),
        ("cp: cannot create regular file '@/other/': Permission denied", "other"),
        ("cat: @/home/.ssh/id_rsa: Permission denied", "home/.ssh/id_rsa"),
        (
            "cannot open .git/hooks/pre-commit: Operation not permitted",
            "project/.git/hooks/pre-commit",
        ),
    ],
)
def test_a_path_that_the_user_could_have_is_named(world: Path, printed: str, path: str):
    assert told(world, printed) == (
        f"the sandbox's workspace ring refused access to {world}/{path}; a retry fails too: "
        f"write in the project or in $TMPDIR, {OUT}"
    )


@pytest.mark.parametrize(
    "printed, host",
    [
        ("curl: (6) Could not resolve host: pypi.org", " to pypi.org"),
        (
            "fatal: unable to access 'https://github.com/x/y/': Could not resolve host",
            " to github.com",
        ),
        (
            "npm error request failed: getaddrinfo EAI_AGAIN registry.npmjs.org",
            " to registry.npmjs.org",
        ),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", ""),
        ("ping: connect: Network is unreachable", ""),
    ],
)
def test_without_a_network_the_host_is_named(world: Path, printed: str, host: str):
    assert told(world, printed) == (
        f"the sandbox's workspace ring refused the network{host}; a retry fails too: "
        f"do without it, {OUT}"
    )


@pytest.mark.parametrize(
    "printed, code",
    [
        ("make: *** No rule to make target 'test'.  Stop.", 2),
        ("bash: line 1: nosuch: command not found", 127),
        ("ls: cannot access 'nowhere': No such file or directory", 2),
        ("FAILED tests/test_x.py::test_permission_is_denied", 1),
        ("grep: x: Permission denied", 2),
        ("Permission denied, says a program that ended well", 0),
        ("curl: (7) Failed to connect to localhost port 9999: Connection refused", 7),
    ],
)
def test_what_went_wrong_by_itself_is_none(world: Path, printed: str, code: int):
    assert told(world, printed, code) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is root's")
def test_what_the_user_could_not_have_either_is_only_a_perhaps(world: Path):
    assert "may have refused" in str(told(world, "tee: /etc/hosts: Read-only file system"))


@pytest.mark.parametrize(
    "printed, code", [("error: Operation not permitted", 1), ("Bad system call", 159)]
)
def test_a_message_without_a_path_is_only_a_perhaps(world: Path, printed: str, code: int):
    assert str(told(world, printed, code)).startswith(
        "the sandbox's workspace ring may have refused something; a retry fails too"
    )


def test_with_some_domains_allowed_only_what_the_proxy_refused_is_certain(world: Path):
    proxy = Proxy(("pypi.org",))
    assert told(world, "curl: (6) Could not resolve host: x.org", network=proxy) is None


def test_a_sandbox_that_could_not_start_is_no_refusal_and_is_looked_for_again(world: Path):
    Holder.finder.find()
    assert Holder.finder.known
    line = told(world, "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted")
    assert line == "the sandbox itself could not start this command; try it once more"
    assert not Holder.finder.known
