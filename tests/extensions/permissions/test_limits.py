"""What Claude Code's settings say beside rules: no questions, and nothing outside."""

from __future__ import annotations

import pytest

from crow.extensions.permissions import Limits


def decide(world, tool: str, path: str, limits: Limits, **options):
    args = {"command": path} if tool == "Bash" else {"file_path": world.fill(path)}
    permissions = world.permissions(limits=limits, **options)
    return permissions.judge(tool, args, cwd=str(world.cwd)).decision


def test_where_nobody_is_to_be_asked_every_question_is_a_denial(world):
    limits = Limits(never_asks=True)
    assert decide(world, "Bash", "make", limits) == "deny"
    assert decide(world, "Bash", "make", limits, mode="acceptEdits", ask=["Bash"]) == "deny"
    assert decide(world, "Bash", "make", limits, allow=["Bash(make)"]) == "allow"
    assert decide(world, "Bash", "ls", limits) == "allow"


def test_a_denial_in_place_of_a_question_is_one_that_a_hook_may_answer(world):
    permissions = world.permissions(limits=Limits(never_asks=True))
    made = permissions.judge("Bash", {"command": "make"}, cwd=str(world.cwd))
    assert (made.decision, made.default) == ("deny", True)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
def test_reading_outside_is_denied_whatever_a_rule_allows(world, mode):
    def reads(path: str, tool: str = "Read") -> str:
        limits = Limits(blocks_reads=True)
        return decide(world, tool, path, limits, allow=["Read", "Bash"], mode=mode)

    assert (reads("@TMP@/other/x"), reads("@CWD@/README.md")) == ("deny", "allow")
    assert reads("cat ../other/x", "Bash") == "deny"
    assert reads("cat README.md", "Bash") == "allow"


def test_writing_outside_is_denied_whatever_a_rule_allows(world):
    def writes(path: str, tool: str = "Write", *, directories: tuple[str, ...] = ()) -> str:
        limits, allow = Limits(blocks_writes=True), ["Edit", "Bash"]
        return decide(world, tool, path, limits, allow=allow, directories=directories)

    assert (writes("@TMP@/other/x"), writes("@CWD@/new")) == ("deny", "allow")
    assert writes("echo x > ../other/y", "Bash") == "deny"
    assert writes("@TMP@/other/x", directories=(f"{world.top}/other",)) == "allow"


def test_an_excluded_directory_is_no_part_of_those_that_are_worked_in(world):
    open_, shut = Limits(excluded=("config",)), Limits(blocks_reads=True, excluded=("config",))
    assert decide(world, "Read", "@CWD@/config/.env", open_) == "ask"
    assert decide(world, "Read", "@CWD@/config/.env", shut) == "deny"
    assert decide(world, "Write", "@CWD@/config/x", open_, mode="acceptEdits") == "ask"
    assert decide(world, "Bash", "cat config/.env", open_) == "ask"
    assert decide(world, "Bash", "grep -r x .", shut) == "ask"
    assert decide(world, "Read", "@CWD@/configuration", shut) == "allow"


def test_a_mode_that_there_is_not_is_named_in_one_line(world):
    for name in ("auto", "yolo"):
        [line] = world.permissions(mode=name).warnings
        assert name in line
        assert world.permissions(mode=name).mode == "default"
