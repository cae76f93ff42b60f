"""Programs on PATH that somebody may have put there: their names let nothing through unasked."""

from __future__ import annotations

import pytest

from crow.extensions.permissions import Decision, LocalDisk, Permissions

SYSTEM = "/usr/local/bin:/usr/bin:/bin"


def put(world, path: str, *, mode: int = 0o755) -> None:
    (world.cwd / path).parent.mkdir(parents=True, exist_ok=True)
    (world.cwd / path).write_text("#!/bin/sh\n")
    (world.cwd / path).chmod(mode)


def judge(world, command: str, path: str, **options) -> Decision:
    disk = LocalDisk(str(world.home), world.fill(path))
    permissions = Permissions.of(disk=disk, **options)
    return permissions.judge("Bash", {"command": command}, cwd=str(world.cwd))


@pytest.mark.parametrize(
    "path", ["@CWD@/.venv/bin", ".venv/bin", "./.venv/bin", "@CWD@/src/../.venv/bin", "@CWD@/alias"]
)
@pytest.mark.parametrize(
    "command",
    ["ls", "ls && pwd", "echo a | ls", "timeout 5 ls", "nice ls -l", "cat README.md; ls", "(ls)"],
)
def test_a_program_in_the_workspace_is_asked_about(make_world, path, command):
    world = make_world()
    (world.cwd / "alias").symlink_to(".venv/bin")
    assert judge(world, command, f"{path}:{SYSTEM}").decision == "allow"
    put(world, ".venv/bin/ls")
    assert judge(world, command, f"{path}:{SYSTEM}").decision == "ask"
    assert judge(world, command, f"{path}:{SYSTEM}", mode="acceptEdits").decision == "ask"
    assert judge(world, command, f"{SYSTEM}:{path}").decision == "allow"
    rules = ["Bash(ls *)", "Bash(nice *)", "Bash(timeout *)", "Bash(cat *)"]
    assert judge(world, command, f"{path}:{SYSTEM}", allow=rules).decision == "allow"


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("timeout", "timeout 5 ls"),
        ("grep", "egrep x README.md"),
        ("git", "git status"),
        ("less", "git log"),
        ("cat", "find . -name a | xargs cat"),
        ("xargs", "find . -name a | xargs cat"),
        ("echo", "timeout 5 echo x"),
        ("mkdir", "mkdir made"),
        ("cp", "cp README.md made"),
    ],
)
def test_so_is_what_a_command_starts_by_name(make_world, program, command):
    world = make_world()
    (world.cwd / "odd/lnk").unlink()
    (world.cwd / "odd/dang").unlink()
    (world.cwd / "out/app.ts").unlink()
    path = f"@CWD@/bin:{SYSTEM}"
    assert judge(world, command, path, mode="acceptEdits").decision == "allow"
    put(world, f"bin/{program}")
    assert judge(world, command, path, mode="acceptEdits").decision == "ask"


def test_a_built_in_is_no_program(make_world):
    world = make_world()
    for name in ("echo", "test", "[", "printf", "pwd", "true", "cd"):
        put(world, f"bin/{name}")
    for command in ("echo a", "test -f x && printf y", "[ -f x ] || pwd", "true && cd src"):
        assert judge(world, command, f"@CWD@/bin:{SYSTEM}").decision == "allow"


def test_a_link_into_the_workspace_and_a_shared_directory_count_too(make_world):
    world = make_world()
    put(world, "mine")
    put(world, "../bin/x")
    (world.top / "bin/ls").symlink_to(world.cwd / "mine")
    assert judge(world, "ls", f"@TMP@/bin:{SYSTEM}").decision == "ask"
    put(world, "../shared/cat")
    assert judge(world, "cat README.md", f"@TMP@/shared:{SYSTEM}").decision == "ask"
    assert judge(world, "head README.md", f"@TMP@/shared:{SYSTEM}").decision == "allow"


def test_what_cannot_be_run_is_passed_over_as_the_shell_does(make_world):
    world = make_world()
    put(world, "bin/ls", mode=0o644)
    (world.cwd / "bin/cat").mkdir()
    assert judge(world, "ls && cat README.md", f"@CWD@/bin:{SYSTEM}").decision == "allow"


def test_an_empty_entry_is_the_directory_that_the_command_runs_in(make_world):
    world = make_world()
    put(world, "src/ls")
    assert judge(world, "ls", f":{SYSTEM}").decision == "allow"
    assert judge(world, "cd src && ls", f":{SYSTEM}").decision == "ask"


def test_a_directory_of_programs_is_not_written_unasked_nor_written_and_used_at_once(make_world):
    world = make_world()
    put(world, "bin/tool")
    (world.cwd / "alias").symlink_to("bin")
    path = f"@CWD@/alias:{SYSTEM}"
    for command in ("cp README.md bin/ls", "touch bin/x", "echo a > bin/ls", "mv src bin"):
        assert judge(world, command, path, mode="acceptEdits").decision == "ask"
    used = "cp README.md bin/ls && ls"
    assert judge(world, used, path, allow=["Bash(cp *)"]).decision == "ask"
    assert judge(world, used, SYSTEM, allow=["Bash(cp *)"]).decision == "allow"


def test_what_a_sourced_file_puts_first_is_looked_at_first(make_world):
    world = make_world()
    put(world, ".venv/bin/activate")
    rules = ["Bash(source .venv/bin/activate)"]
    assert judge(world, "source .venv/bin/activate && ls", SYSTEM, allow=rules).decision == "allow"
    put(world, ".venv/bin/ls")
    assert judge(world, "source .venv/bin/activate && ls", SYSTEM, allow=rules).decision == "ask"
    assert judge(world, "ls", SYSTEM, allow=rules).decision == "allow"
