"""The examples that read something else: sql_guard, search_notes, reviewer."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.examples.test_examples import load

from crow.testing import Pilot, call


def people(crow: Pilot) -> list[str]:
    with closing(sqlite3.connect(crow.cwd / "data.db")) as database:
        return [name for (name,) in database.execute("SELECT name FROM people")]


@pytest.mark.parametrize(
    ("statement", "asks"),
    [
        ("SELECT 'delete' AS word, name FROM people", False),
        ("WITH x AS (SELECT 1) SELECT count(*) FROM x", False),
        ("WITH x AS (SELECT 'Bob') DELETE FROM people WHERE name IN x", True),
        ("DROP TABLE people", True),
        ("ATTACH ':memory:' AS other", True),
        ("PRAGMA user_version = 3", True),
    ],
)
@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
def test_what_changes_data_is_asked_about(crow: Pilot, statement: str, asks: bool, answer: str):
    with closing(sqlite3.connect(crow.cwd / "data.db")) as database, database:
        database.execute("CREATE TABLE people (name)")
        database.execute("INSERT INTO people VALUES ('Ada'), ('Bob')")
    crow.use(load("sql_guard").SqlGuard)
    if asks:
        crow.user.answers(answer)
    crow.run("Go", call("Sql", statement=statement), "Done.")
    crow.asked("this changes data", times=int(asks))
    if not asks:
        crow.denied("Sql", times=0)
        crow.sent("Ada" if "name" in statement else "(1,)")
    elif answer == "reject_once":
        assert people(crow) == ["Ada", "Bob"]
    elif "DELETE" in statement:
        assert people(crow) == ["Ada"]


def test_notes_that_fit_stand_behind_the_prompt(crow: Pilot):
    notes = crow.cwd / "docs"
    notes.mkdir()
    (notes / "deploying.md").write_text("# Deploying\nRun `make ship`.\n# Lunch\nAt noon.\n")
    crow.use(load("search_notes").SearchNotes)
    crow.run('How about "deploying"?', "So.")
    crow.sent("Run `make ship`.")
    crow.sent("At noon.", times=0)
    (notes / "deploying.md").write_text("# Deploying\nRun `make rocket`.\n")
    later = (notes / "deploying.md").stat().st_mtime + 5
    os.utime(notes / "deploying.md", (later, later))
    crow.run("And deploying now?", "So.")
    crow.sent("Run `make rocket`.")
    crow.run("?!", "Hm.")
    crow.prefix_stable()


@pytest.mark.parametrize("verdict", ["APPROVED", "The name is wrong."])
def test_the_reviewer_sees_the_change_and_is_heard_once(crow: Pilot, verdict: str):
    commands = "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm x"
    Path(crow.cwd, "a").write_text("a\n")
    subprocess.run(commands, shell=True, cwd=crow.cwd, check=True)
    crow.configure(allow=["Bash"])
    crow.use(load("reviewer").Reviewer)
    script = [call("Bash", command="echo b > a"), "Done.", verdict]
    crow.run("Change a", *script, *([] if verdict == "APPROVED" else ["I leave it."]))
    asked = str(crow.model.asked[2]["messages"])
    assert "+b" in asked
    assert "Change a" in asked
    assert len(crow.model.asked[2]["messages"]) == 1
    crow.told(f"The reviewer says: {verdict}")
    crow.sent("A reviewer objects", times=0 if verdict == "APPROVED" else 1)
