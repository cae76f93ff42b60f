"""``crow eval``: a stored session becomes a file, and that is played again and compared."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Here

from crow.testing import BuildAgent, call
from crow.testing.user import ScriptedUser

GUARD = """
from crow import Deny

class Guard:
    def before_tool(self, call):
        return Deny("not that") if call.name == "Bash" else None
"""
PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")
FRIEND = """
from crow import Allow

class Friend:
    def before_tool(self, call):
        return Allow() if call.name == "Bash" else None
"""


@pytest.fixture
async def recording(build_agent: BuildAgent, here: Here, project: Path) -> Path:
    """A recorded session: one call that fails, one that its user lets run, one that they do not."""
    script = (
        ["I look.", call("Read", file_path="README.md")],
        [
            call("Edit", file_path="README.md", old_string="Thing", new_string="Gadget"),
            call("Bash", command="echo hello > made"),
        ],
        call("Bash", command="rm made"),
        "It is a gadget now.",
    )
    before = project.parent / "before"
    before.mkdir()
    (before / "README.md").write_bytes((project / "README.md").read_bytes())
    for folder in (".git", ".pytest_cache", ".hypothesis", ".venv", "node_modules"):
        (before / folder).mkdir()
        (before / folder / "of_a_tool").write_bytes(b"\xff")
    async with build_agent(*script, cwd=project) as agent:
        with ScriptedUser("allow_always", "allow_once", "reject_once") as user:
            reply = await agent.run("Rename it", cwd=project, client=user)
    assert (project / "README.md").read_text().startswith("# Gadget")
    ended = await here(
        "eval", "record", reply.session.id[:8], "rename.crow.jsonl", "--files", str(before)
    )
    assert (ended.status, ended.err) == (0, "")
    (project / "session").write_text(reply.session.id)
    return project / "rename.crow.jsonl"


def steps(path: Path, kind: str = "") -> list[dict[str, Any]]:
    """The steps of a recording."""
    read = [json.loads(line) for line in path.read_text().splitlines()]
    return [step for step in read if kind in ("", step["kind"])]


def change(path: Path, old: str, new: str) -> None:
    """Change the text of a file."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


async def test_a_session_is_written_as_lines_without_its_directory(
    recording: Path, project: Path
) -> None:
    assert str(project) not in recording.read_text()
    head, *_, end = steps(recording)
    assert head["files"] == {"README.md": "# Thing\n\nIt does things.\n"}
    assert end == {"kind": "end", "stop": "end_turn", "files": None}
    assert [(each["name"], each["outcome"]) for each in steps(recording, "call")] == [
        *(("Read", "ok"), ("Edit", "ok"), ("Bash", "ok"), ("Bash", "denied")),
    ]
    assert [each["answer"] for each in steps(recording, "ask")] == [
        *("allow_always", "allow_once", "reject_once"),
    ]
    for line in recording.read_text().splitlines():
        assert line == json.dumps(json.loads(line), sort_keys=True, ensure_ascii=False)


async def test_it_is_played_again_in_a_fresh_folder_and_nothing_differs(
    recording: Path, here: Here, project: Path
) -> None:
    shutil.rmtree(project / ".claude")  # where the session has kept what its user always allows
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    ended = await here("eval", "run", "rename.crow.jsonl")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == "ok       rename.crow.jsonl (its files are not known: --update)\n"
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
    listed = await here("sessions", "--all", "--json")
    assert listed.out.count("\n") == 1, "what was played is not stored"


@pytest.mark.slow
async def test_an_update_writes_the_files_too_and_then_they_are_compared(
    recording: Path, here: Here
) -> None:
    ended = await here("eval", "run", "rename.crow.jsonl", "--update")
    assert (ended.status, ended.out) == (0, "updated  rename.crow.jsonl\n")
    files = steps(recording)[-1]["files"]
    assert set(files) == {"README.md", "made"}
    ended = await here("eval", "run", "rename.crow.jsonl")
    assert (ended.status, ended.out) == (0, "ok       rename.crow.jsonl\n")
    again = recording.read_text()
    await here("eval", "run", "rename.crow.jsonl", "--update")
    assert recording.read_text() == again
    change(recording, files["made"], "0" * 16)
    ended = await here("eval", "run", "--end", "rename.crow.jsonl")
    assert ended.status == 1
    assert f'"made": "{"0" * 16}"' in ended.out.splitlines()[1]
    assert f'"made": "{files["made"]}"' in ended.out.splitlines()[2]


async def test_another_verdict_differs_and_the_first_step_is_shown(
    recording: Path, here: Here, project: Path
) -> None:
    (project / "guard.py").write_text(GUARD)
    ended = await here("eval", "run", "rename.crow.jsonl", "--extension", "guard.py")
    assert ended.status == 1
    first, recorded, now = ended.out.splitlines()
    assert ended.out in PAGE
    number = int(re.fullmatch(r"differs  rename\.crow\.jsonl:(\d+)", first)[1])  # type: ignore[index]
    line = json.loads(recording.read_text().splitlines()[number - 1])
    assert line["kind"] == "hook"
    assert recorded.startswith('  recorded: hook {"call": "call_3"')
    assert '"verdict": "ask"' in recorded
    assert now.startswith('  now:      hook {"call": "call_3"')
    assert '"verdict": "deny"' in now


@pytest.mark.slow
async def test_only_the_end_is_compared_where_that_is_wanted(
    recording: Path, here: Here, project: Path
) -> None:
    (project / "friend.py").write_text(FRIEND)
    change(recording, '"reject_once"', '"allow_once"')
    change(recording, '"denied"', '"ok"')
    run = ("eval", "run", "rename.crow.jsonl")
    assert (await here(*run, "--update")).status == 0
    assert list(steps(recording)[-1]["files"]) == ["README.md"]
    assert (await here(*run, "--extension", "friend.py")).status == 1
    assert (await here(*run, "--extension", "friend.py", "--end")).status == 0


async def test_texts_and_prompts_may_change(recording: Path, here: Here, project: Path) -> None:
    change(recording, "It is a gadget now.", "Done.")
    change(recording, "Rename it", "Please rename it")
    (project / "AGENTS.md").write_text("Be polite.")
    assert (await here("eval", "run", "rename.crow.jsonl")).status == 0


async def test_a_missing_file_shows_as_the_call_that_fails_now(recording: Path, here: Here) -> None:
    change(recording, '"README.md": "# Thing', '"OTHER.md": "# Thing')
    ended = await here("eval", "run", "rename.crow.jsonl")
    assert ended.status == 1
    assert '"name": "Read", "outcome": "ok"' in ended.out.splitlines()[1]
    assert '"outcome": "error"' in ended.out.splitlines()[2]


@pytest.mark.slow
async def test_a_run_that_ends_early_has_nothing_more(
    recording: Path, here: Here, project: Path
) -> None:
    source = GUARD.replace('Deny("not that")', 'Stop("enough")').replace("Deny", "Stop")
    (project / "guard.py").write_text(source)
    shutil.copy(recording, project / "other.crow.jsonl")
    run = ("eval", "run", "rename.crow.jsonl", "other.crow.jsonl", "--extension", "guard.py")
    ended = await here(*run, "--end")
    assert ended.status == 1
    assert '"stop": "end_turn"' in ended.out.splitlines()[1]
    assert '"stop": "hook_stopped"' in ended.out.splitlines()[2]
    assert ended.out.count("differs") == 2, "every file is played"
    assert (await here(*run, "--update")).status == 0
    assert (await here(*run)).status == 0


@pytest.mark.slow
async def test_a_reply_that_is_not_asked_for_any_more_is_shown(recording: Path, here: Here) -> None:
    lines = recording.read_text().splitlines(keepends=True)
    recording.write_text("".join([*lines[:-1], lines[-2], lines[-1]]))
    ended = await here("eval", "run", "rename.crow.jsonl")
    assert (ended.status, ended.out.splitlines()[2]) == (1, "  now:      nothing more")
    recording.write_text("".join([*lines[:-2], lines[-1]]))
    ended = await here("eval", "run", "rename.crow.jsonl")
    assert ended.status == 1
    assert '"stop": "error"' in ended.out.splitlines()[2]
    assert ended.complaint == "the recording has no more replies"


@pytest.mark.parametrize(
    "argv, status, complaint",
    [
        (["play", "x"], 2, "there is no action 'play' (crow eval --help)"),
        (["rnu", "x"], 2, "there is no action 'rnu'; did you mean 'run'? (crow eval --help)"),
        (["run"], 2, "crow eval run FILE... is how to say it"),
        (["record", "abc"], 2, "crow eval record SESSION FILE is how to say it"),
        (["record", "abc", "x"], 1, "there is no session 'abc': crow sessions --all lists them"),
        (["record", "abc", "x", "--files", "absent"], 2, "there is no directory 'absent': --files"),
        (["run", "absent"], 1, "absent: No such file or directory"),
        (["run", "README.md"], 1, "README.md is no recording: JSONDecodeError"),
        (["run", "half"], 1, "half is no recording: ValueError: it begins with no head of"),
        (["run", "outside"], 1, "outside is no recording: ValueError: the file ../x lies outs"),
    ],
)
async def test_what_cannot_be_is_named(
    here: Here, project: Path, argv: list[str], status: int, complaint: str
) -> None:
    head = {"kind": "head", "v": 1, "files": {"../x": "y"}}
    (project / "half").write_text(json.dumps(head))
    (project / "outside").write_text(f'{json.dumps(head)}\n{{"kind": "end"}}\n')
    ended = await here("eval", *argv)
    assert ended.status == status
    assert ended.complaint.startswith(complaint)


async def test_files_that_are_no_texts_are_refused(
    recording: Path, here: Here, project: Path
) -> None:
    (project.parent / "before" / "picture.png").write_bytes(b"\x89PNG\xff")
    session = (project / "session").read_text()
    ended = await here("eval", "record", session, "x", "--files", str(project.parent / "before"))
    assert ended.status == 1
    assert ended.complaint.endswith("picture.png is no text: a recording begins with texts only")
    assert not (project / "x").exists()


@pytest.mark.slow
async def test_the_commands_of_the_page_are_all_there_is_to_do(
    recording: Path, here: Here, project: Path
) -> None:
    (project / "tests").mkdir()
    shutil.copytree(project.parent / "before", project / "before")
    shown = (
        PAGE.split("```sh\n")[1]
        .split("```")[0]
        .replace("SESSION", (project / "session").read_text())
    )
    for line in shown.splitlines():
        command, *argv = line.partition("#")[0].split()
        assert (command, (await here(*argv)).status) == ("crow", 0), line
    assert steps(project / "tests" / "rename.crow.jsonl")[-1]["files"]


async def test_the_recording_of_the_page_is_one(here: Here, project: Path) -> None:
    (project / "page").write_text(PAGE.split("```jsonl\n")[1].split("```")[0])
    ended = await here("eval", "run", "page", "--no-sandbox")
    assert (ended.status, ended.out) == (0, "ok       page\n")


def pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest on a folder."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
async def test_a_recording_is_a_test_of_pytests(recording: Path, project: Path) -> None:
    done = pytest_in(project)
    assert "rename.crow.jsonl::recording PASSED" in done.stdout
    assert done.returncode == 0
    (project / "guard.py").write_text(GUARD)
    (project / "pytest.ini").write_text("[pytest]\ncrow_eval = --extension guard.py\n")
    done = pytest_in(project)
    assert done.returncode == 1
    shown = done.stdout.partition("recording rename.crow.jsonl")[2]
    assert re.search(r"\ndiffers  .*rename\.crow\.jsonl:\d+\n  recorded: hook ", shown)
    assert "Traceback" not in shown
    assert "recordings.py" not in shown
