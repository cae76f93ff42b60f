"""Every way to write it, in a real repository."""

from __future__ import annotations

import subprocess

import pytest
from tests.examples.test_examples import load

from crow.testing import Pilot, call


@pytest.mark.parametrize(
    ("command", "is_denied"),
    [
        ("git commit -m x --allow-empty", True),
        ("true && git -C . -c user.name=x commit -m x", True),
        ("/usr/bin/git push origin HEAD:main", True),
        ("git checkout -b mine; git push origin mine:master", True),
        ("git checkout main\ngit merge other", True),
        ("git switch -c mine", False),
        ("git log main", False),
        ('echo "git commit"', False),
        ("git -C inside commit --allow-empty -m x", False),
    ],
)
def test_a_protected_branch_stays_as_it_is(crow: Pilot, command: str, is_denied: bool):
    for folder, branch in ((".", "main"), ("inside", "mine")):
        (crow.cwd / folder).mkdir(exist_ok=True)
        subprocess.run(["git", "init", "-q", "-b", branch], cwd=crow.cwd / folder, check=True)
    crow.configure(allow=["Bash"])
    crow.use(load("protected_branches"))
    crow.run("Go", call("Bash", command=command), "Done.")
    crow.denied("Bash", "is protected" if is_denied else "", times=int(is_denied))
