"""Names of files that one command found and another reads (``find . | xargs wc``)."""

from __future__ import annotations

import pytest

from crow.extensions.permissions import LocalDisk, Permissions

FROM_PATHS = (
    "find . | xargs -I{} cat {}",
    "find . | xargs -I{} cat ./{}",
    "find . -name '*.ts' | sort | head -n 5 | xargs wc -l",
    "find . -print0 | xargs -0 grep -n foo",
)
FROM_NAMES = (
    "git ls-files | xargs wc -l",
    "git ls-files | grep -v test | xargs md5sum",
    "rg -l foo | xargs grep -n bar",
    "rg --files -g '*.ts' | xargs wc -l",
    "grep -rl foo . | xargs du",
)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "a.ts").write_text("foo\n")
    return tmp_path


def judge(place, command: str, mode: str = "default") -> str:
    permissions = Permissions.of(disk=LocalDisk("/nonexistent"), mode=mode)
    return permissions.judge("Bash", {"command": command}, cwd=str(place)).decision


@pytest.mark.parametrize("command", FROM_PATHS + FROM_NAMES)
def test_names_that_were_found_may_be_read(place, command):
    assert judge(place, command) == "allow"


@pytest.mark.parametrize("command", FROM_NAMES)
def test_a_name_that_could_be_an_option_is_asked_about(place, command):
    (place / "-f.env").write_text("")
    assert judge(place, command) == "ask"
    assert judge(place, command.replace("| xargs", "| cat | xargs")) == "ask"


@pytest.mark.parametrize("command", FROM_PATHS)
def test_a_name_with_a_directory_before_it_is_no_option(place, command):
    (place / "-f.env").write_text("")
    assert judge(place, command) == "allow"


@pytest.mark.parametrize("command", ["wc -l *", "grep foo *", "git ls-files | xargs wc -l"])
def test_a_glob_is_asked_about_beside_a_command_that_makes_files(place, command):
    assert judge(place, command, "acceptEdits") == "allow"
    for made in (
        "touch -- -f.env; {}",
        "while true; do {}; touch x; done",
        "echo x > ./-f.env; {}",
    ):
        assert judge(place, made.format(command), "acceptEdits") == "ask"
    assert judge(place, f"{command} > y", "acceptEdits") == "allow"
    with_dashes = command.replace("*", "-- *").replace("-l", "-l --")
    assert judge(place, f"touch x; {with_dashes}", "acceptEdits") == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "find . -name passwd | xargs -I{} cat /etc/{}",
        "find . -name passwd | xargs -I{} cat ../{}",
        "find . -name passwd | xargs -I{} cat {}/../../x",
        "find . | xargs -I{} cat {}{}",
        "find . | xargs -Ie grep -e x",
        "find . | xargs -I{} grep -f{} x",
        "find . | xargs sort",
        "find . | tail -c +2 | xargs cat",
        "find . | head -c 4 | xargs cat",
        "find . | grep -o 'etc/.*' | xargs cat",
        "find . | cut -c3- | xargs cat",
        "grep -e -l passwd a.ts | xargs cat",
        "grep -h foo a.ts | xargs cat",
        "rg -l --json x | xargs cat",
        "rg -l -o -r /etc/passwd x --vimgrep | xargs cat",
        "find . |& xargs cat",
    ],
)
def test_names_that_were_not_found_as_they_are_used_are_asked_about(place, command):
    assert judge(place, command) == "ask"
