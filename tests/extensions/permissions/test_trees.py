"""Whole directories that are copied, moved, removed or filled, with something protected in them."""

from __future__ import annotations

import pytest

PROTECTED = [
    "deep/.git/HEAD",
    "a/b/c/.claude/settings.json",
    "lib/.vscode/tasks.json",
    "x/.bashrc",
    ".config/git/config",
    "y/.cursor/mcp.json",
    "z/.husky/pre-commit",
    "link/.envrc",
]


def fill(world, *paths: str) -> None:
    for path in paths:
        (world.cwd / path).parent.mkdir(parents=True, exist_ok=True)
        (world.cwd / path).write_text("x\n")


@pytest.mark.parametrize("inner", PROTECTED)
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf sub",
        "rm -r ./sub/",
        "rm -rf su*",
        "mv sub src/",
        "mv sub other",
        "cp -r sub src/",
        "cp -a sub/. .",
        "cp -r sub/* .",
        "cd src && rm -rf ../sub",
        "cp -r way/. .",
        "cp -r way/ src",
        "cp -r way/* src",
    ],
)
@pytest.mark.variants(40)
def test_no_directory_with_something_protected_goes_or_is_copied_unasked(
    make_world, inner, command
):
    world = make_world()
    fill(world, f"sub/{inner}", "plain/a/b/c.txt")
    (world.cwd / "way").symlink_to("sub")
    assert world.judge(command, mode="acceptEdits").decision == "ask"
    named = [f"Bash({name} *)" for name in ("rm", "mv", "cp")] + ["Bash(cd *)", "Edit"]
    assert world.judge(command, allow=named).decision == "ask"
    assert world.judge(command, allow=["Bash"]).decision == "ask"
    assert world.judge(command, mode="bypassPermissions").decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "rsync -a sub/ .",
        "rsync -a --exclude node_modules sub/ .",
        "rsync -a --delete plain/ sub",
        "git clean -ffdx",
        "git clean -fdx sub",
        "find sub -delete",
        "find . -name '*.json' -delete",
        "tar -xzf a.tgz -C sub",
        "tar xf a.tar --directory=sub",
        "unzip -o a.zip -d sub",
        "7z x a.7z -osub",
    ],
)
def test_nor_does_a_rule_let_other_programs_do_so(make_world, command):
    world = make_world()
    fill(world, "sub/a/.vscode/tasks.json", "sub/deep/.git/HEAD", "plain/a/b/c.txt")
    assert world.judge(command, allow=[f"Bash({command})"]).decision == "ask"
    assert world.judge(command, allow=["Bash"]).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf plain",
        "mv plain src/",
        "cp -r plain src/",
        "rsync -a plain/ src/",
        "rsync -a --exclude=.vscode --exclude .git sub/ src/",
        "git clean -n sub",
        "git commit -m clean",
        "find plain -delete",
        "find sub -name '*.pyc' -delete",
        "tar -xzf a.tgz -C plain",
        "tar -czf a.tgz sub",
        "tar tf a.tar",
        "unzip -l a.zip",
    ],
)
def test_a_directory_with_nothing_protected_is_no_question(make_world, command):
    world = make_world()
    fill(world, "sub/a/.vscode/tasks.json", "sub/deep/.git/HEAD", "plain/a/b/c.txt")
    assert world.judge(command, allow=[f"Bash({command})"]).decision == "allow"
    if command.startswith(("rm", "mv", "cp")):
        assert world.judge(command, mode="acceptEdits").decision == "allow"


def test_what_is_copied_over_a_link_or_a_denied_file_is_asked_about(make_world):
    world = make_world()
    fill(world, "new/cfg/a", "old/cfg/b", "new/cfg/secret")
    (world.cwd / "old/cfg/a").symlink_to(world.home / ".bashrc")
    for command in ("cp -r new/. old", "cp -rT new old", "rsync -a new/ old/"):
        assert world.judge(command, allow=[f"Bash({command})"]).decision == "ask"
    (world.cwd / "old/cfg/a").unlink()
    assert world.judge("cp -r new/. old", mode="acceptEdits").decision == "allow"
    made = world.judge("cp -r new/. old", mode="acceptEdits", deny=["Edit(old/cfg/secret)"])
    assert made.decision == "deny"
    made = world.judge("rm -rf new", mode="acceptEdits", deny=["Edit(new/cfg/secret)"])
    assert made.decision == "ask"


@pytest.mark.slow
def test_a_directory_that_is_too_large_to_look_through_is_asked_about(make_world):
    world = make_world()
    large = world.cwd / "large"
    large.mkdir()
    for number in range(5100):
        (large / str(number)).touch()
    for command in ("rm -rf large", "mv large src", "cp -r large src"):
        assert world.judge(command, mode="acceptEdits").decision == "ask"
        assert world.judge(command, allow=[f"Bash({command})"]).decision == "ask"
    (world.cwd / "node_modules").mkdir()
    large.rename(world.cwd / "node_modules/large")
    assert world.judge("rm -rf node_modules", mode="acceptEdits").decision == "allow"


def test_what_was_installed_may_be_removed_but_no_history_in_it(make_world):
    world = make_world()
    fill(world, "node_modules/x/.vscode/settings.json", "node_modules/.bin/tsc")
    assert world.judge("rm -rf node_modules", mode="acceptEdits").decision == "allow"
    assert world.judge("mv node_modules x", mode="acceptEdits").decision == "ask"
    fill(world, "node_modules/x/.git/HEAD")
    assert world.judge("rm -rf node_modules", mode="acceptEdits").decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "ln -s .git/hooks made && cp README.md made/pre-commit",
        "ln -s $PWD/.git/hooks made; echo x > made/pre-commit",
        "ln -sfn ../.git/hooks src/made && tee src/made/pre-commit",
        "ln -s .git made && cp README.md made/hooks/x",
        "ln -s ../.git src && cp README.md src/.git/config",
        "cp -rs $PWD/.git/hooks made && cp README.md made/x",
        "ln -s ~/.ssh made && cat made/id_rsa",
        "ln -s ../home made; cd made && cat .ssh/id_rsa",
    ],
)
def test_a_link_that_the_command_makes_itself_opens_nothing(make_world, command):
    world = make_world()
    fill(world, ".git/hooks/x")
    named = [f"Bash({name} *)" for name in ("ln", "cp", "tee", "cat", "cd", "echo")] + ["Edit"]
    made = world.judge(command, allow=named, deny=["Read(~/.ssh/**)"])
    assert made.decision in {"ask", "deny"}
    assert world.judge(command, allow=["Bash"], deny=["Read(~/.ssh/**)"]).decision != "allow"
    harmless = "ln -s src made && cp README.md made/new.md"
    assert world.judge(harmless, allow=named).decision == "allow"


def test_what_comes_from_another_machine_is_not_known(make_world):
    world = make_world()
    fill(world, "sub/.vscode/tasks.json", "plain/a")
    for named, wanted in (("host:x/ sub", "ask"), ("host:x/ plain", "allow")):
        assert world.judge(f"rsync -a {named}", allow=["Bash(rsync *)"]).decision == wanted
