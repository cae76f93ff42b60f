"""``crow sessions foreign`` and ``import``, and pages of files: conversations of elsewhere."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here
from tests.transcripts.samples import CLAUDE, CODEX, CWD, OPENCODE, PI, lines

from crow.testing.endpoint import Endpoint, answer


@pytest.fixture
def foreign(crow: Crow, home: Path) -> Path:
    """What Claude Code and Codex have written, of this folder and of another one."""
    del crow
    here = home / ".claude/projects/-shop/5e55.jsonl"
    there = home / ".codex/sessions/2026/11/27/rollout-2026-11-27T03-00-00-c0de.jsonl"
    for path, sample in ((here, CLAUDE), (there, CODEX)):
        path.parent.mkdir(parents=True)
        path.write_text(lines(sample))
    (home / ".claude/projects/-shop/broken.jsonl").write_text("nothing")
    return home


async def test_conversations_of_others_are_listed_and_searched(here: Here, foreign: Path) -> None:
    del foreign
    none = await here("sessions", "foreign")
    assert "Claude Code, Codex, opencode and pi have no conversation in " in none.out
    listed = (await here("sessions", "foreign", "--all")).out.splitlines()
    assert sorted(line.split()[0] for line in listed) == ["5e55", "c0de"]
    assert all(line.endswith(f"[{CWD}]") for line in listed)
    found = (await here("sessions", "foreign", "--all", "--json", "THE", "price")).events
    assert [(each["id"], each["program"]) for each in found] == [("5e55", "claude")]


async def test_a_conversation_of_another_program_goes_on_in_its_new_place(
    crow: Crow, here: Here, foreign: Path, endpoint: Endpoint
) -> None:
    del foreign
    refused = await here("sessions", "import", "c0de")
    assert refused.complaint == f"its folder is not here: {CWD}; --map {CWD}=NEW, or --cwd DIR"
    taken = await here("sessions", "import", "c0de", "--map", f"{CWD}={crow.cwd}", "--json")
    (made,) = taken.events
    assert made["cwd"] == str(crow.cwd)
    shown = (await here("sessions", "show", made["id"])).out
    assert "> Run the tests" in shown
    assert "One test fails." in shown
    again = await here("sessions", "import", "c0de", "--cwd", str(crow.cwd))
    assert again.complaint == f"it is here already: session {made['id']}"
    endpoint.play(answer("It passes."))
    ended = await crow("run", "--resume", made["id"][:8], "And now?")
    assert ended.out == "It passes.\n"
    sent = str(endpoint.requests[-1].body)
    assert "Run the tests" in sent
    assert "1 failed" in sent


def store_of_opencode(home: Path, cwd: Path) -> Path:
    """The tables that opencode 1.18 keeps conversations in, with one of them and a sub-agent's."""
    path = home / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    info = OPENCODE["info"]
    row = (info["id"], None, str(cwd), info["title"], json.dumps(info["revert"]), 9000)
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(
            "create table session (id text, parent_id text, directory text, title text,"
            " revert text, time_updated integer)"
        )
        made.execute("create table message (id, session_id, time_created, data)")
        made.execute("create table part (id, message_id, session_id, data)")
        made.execute("insert into session values (?, ?, ?, ?, ?, ?)", row)
        made.execute("insert into session values ('ses_sub', 'ses_de24', '/', 'Sub', null, 1)")
        for at, each in enumerate(OPENCODE["messages"]):
            told = each["info"]
            message = (told["id"], info["id"], at, json.dumps(told))
            made.execute("insert into message values (?, ?, ?, ?)", message)
            for number, part in enumerate(each["parts"]):
                row = (f"{at}-{number}", told["id"], info["id"], json.dumps(part))
                made.execute("insert into part values (?, ?, ?, ?)", row)
    return path


async def test_what_was_said_in_opencode_and_pi_goes_on_by_its_id(
    crow: Crow, here: Here, home: Path, endpoint: Endpoint
) -> None:
    database = store_of_opencode(home, crow.cwd)
    before = database.read_bytes()
    path = home / ".pi/agent/sessions/--shop--/2026-11-27T03-00-00-000Z_01a2-1e.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(lines([{**PI[0], "cwd": str(crow.cwd)}, *PI[1:]]))
    listed = (await here("sessions", "foreign", "--json")).events
    assert [(each["program"], each["id"]) for each in listed] == [
        ("pi", "01a2-1e"),
        ("opencode", "ses_de24"),
    ]
    crow.use(endpoint)
    for start in ("01a2", "ses_de24"):
        endpoint.play(answer("Gone on."), answer("And on."))
        ended = await crow("run", "--resume", start, "And now?")
        assert (ended.status, ended.out) == (0, "Gone on.\n"), ended.err
        assert "All was done." in str(endpoint.requests[-1].body)
        again = await crow("run", "--resume", start, "And then?")
        assert again.out == "And on.\n"
        assert "And now?" in str(endpoint.requests[-1].body)
    assert len((await here("sessions", "--json")).events) == 2
    assert database.read_bytes() == before
    assert [each.name for each in database.parent.iterdir()] == ["opencode.db"]
    (crow.cwd / "sub").mkdir()
    none = await crow("run", "--continue", "--cwd", str(crow.cwd / "sub"), "Go")
    assert none.complaint.startswith("there is no session in ")
    none = await crow("run", "--resume", "ses_no", "Go")
    assert none.complaint == "there is no session 'ses_no': crow sessions --all lists them"


async def test_the_first_session_in_a_folder_goes_on_with_what_was_said_there_to_another(
    crow: Crow, home: Path, endpoint: Endpoint
) -> None:
    store_of_opencode(home, crow.cwd)
    crow.use(endpoint)
    for text in ("Gone on.", "And on."):
        endpoint.play(answer(text))
        ended = await crow("run", "--continue", "And now?")
        assert (ended.status, ended.out) == (0, f"{text}\n")
        assert ("this goes on with what was said in opencode: Prices" in ended.err) is (
            text == "Gone on."
        )
    assert str(endpoint.requests[-1].body).count("And now?") == 2


async def test_an_export_comes_back_as_a_copy_without_its_rights(
    crow: Crow, here: Here, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.play(answer("Hello."))
    await crow("run", "--mode", "acceptEdits", "Say hello")
    (known,) = (await here("sessions", "--json")).events
    file = tmp_path / "export.jsonl"
    file.write_text((await here("sessions", "export", known["id"])).out)
    (made,) = (await here("sessions", "import", str(file), "--json")).events
    assert made["id"] != known["id"]
    head, *rows = (await here("sessions", "export", made["id"])).events
    assert (head["mode"], head["title"]) == ("default", "Say hello")
    assert [row["data"]["content"] for row in rows if row["kind"] == "message"] == [
        "Say hello",
        "Hello.",
    ]


async def test_what_cannot_be_taken_in_is_said(here: Here, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"a": 1}')
    assert (
        "it is no conversation that is known here"
        in (await here("sessions", "import", str(file))).complaint
    )
    assert "cannot be read" in (await here("sessions", "import", str(tmp_path))).complaint
    head = {"kind": "session", "id": "../../x", "cwd": str(tmp_path)}
    file.write_text(json.dumps(head))
    assert (
        "no id of a session: '../../x'" in (await here("sessions", "import", str(file))).complaint
    )
    file.write_text("{}")
    missing = await here("sessions", "import", "nope")
    assert missing.complaint.startswith("there is no file 'nope', and no conversation of that id")
    assert (
        "--map takes two whole paths"
        in (await here("sessions", "import", str(file), "--map", "a=b")).complaint
    )


async def test_a_file_of_another_program_becomes_a_page(here: Here, tmp_path: Path) -> None:
    file = tmp_path / "5e55.jsonl"
    file.write_text(lines(CLAUDE))
    ended = await here("export", "--html", str(file), "-o", "-")
    assert ended.status == 0
    assert "Fix the price" in ended.out
    assert "no such file" in ended.out
