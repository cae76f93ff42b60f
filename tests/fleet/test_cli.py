"""``crow fleet`` as people use it: a file of tasks, workers as processes, and what came of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FILE = """
{"prompt": "Create a file called b.txt with some text", "workspace": {"git": "%s", "push": true}, "allow": ["Write"]}
{"prompt": "Run `echo hi`", "labels": {"kind": "echo"}}
"""


def crow(address: str, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CROW_STORE": address, "COLUMNS": "100"}
    command = [sys.executable, "-m", "crow", "fleet", *args]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["wrk"], "there is no action 'wrk'; did you mean 'work'?"),
        (["submit"], "crow fleet submit takes one word"),
        (["work", "--concurrency", "0"], "--concurrency must be at least 1"),
        (["submit", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        (["list"], "the database of the fleet cannot be used"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(args: list[str], said: str) -> None:
    done = crow("postgresql://nobody@127.0.0.1:1/none", *args)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_fleet_needs_a_database(tmp_path: Path) -> None:
    done = crow(str(tmp_path / "crow.db"), "list")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a fleet needs a PostgreSQL database" in done.stderr


@pytest.mark.slow
def test_a_file_of_tasks_becomes_results(address: str, repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "night.jsonl"
    file.write_text(FILE % repository)
    assert crow(address, "submit", str(file)).stdout == "2 jobs were added to the batch night\n"
    again = crow(address, "submit", str(file), "--json")
    assert json.loads(again.stdout) == {"batch": "night", "new": 0, "known": 2}
    folder = ("--folder", str(tmp_path / "trees"), "--until-empty")
    work = crow(address, "work", "--model", "rehearsal", "--json", *folder)
    assert [json.loads(line)["state"] for line in work.stdout.splitlines()] == ["done", "done"]

    assert crow(address, "watch").stdout.startswith("2 jobs, 2 done, ")
    assert crow(address, "inbox").stdout == "nothing waits for a person\n"
    rows = [json.loads(line) for line in crow(address, "results", "--json").stdout.splitlines()]
    assert [row["state"] for row in rows] == ["done", "done"]
    assert rows[0]["branch"].startswith("crow/")
    assert "b.txt" in crow(address, "patch", rows[0]["id"][:8]).stdout
    echo = crow(address, "list", "--label", "kind=echo")
    assert len(echo.stdout.splitlines()) == 1
    shown = crow(address, "show", rows[1]["id"][:8]).stdout
    assert re.search(r"epoch 1 on \S+: turns 1 to \d+, done at ", shown)
    assert "Run `echo hi`" in shown
    page = tmp_path / "results.html"
    assert crow(address, "results", "--html", str(page)).returncode == 0
    assert "Run `echo hi`" in page.read_text()
    sessions = subprocess.run(
        [sys.executable, "-m", "crow", "sessions", "--all"],
        env={**os.environ, "CROW_STORE": address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert rows[0]["id"][:8] in sessions.stdout
    assert "wants an ID" in crow(address, "cancel").stderr
    assert "waits for nothing: it is done" in crow(address, "answer", rows[0]["id"], "yes").stderr
    assert "no job has the id" in crow(address, "show", "zzz").stderr
