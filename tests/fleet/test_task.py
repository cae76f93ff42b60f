"""What people write is a task, or an error that says what is wrong with it and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from crow.fleet.task import FleetError, read_tasks, task_of

LINES = """
{"prompt": "one", "workspace": "/srv/code", "labels": {"kind": "fix"}}

{"prompt": "two", "workspace": {"git": "https://example.org/a.git", "push": true}, "key": "k2"}
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tasks.jsonl", LINES),
        ("tasks.json", f"[{','.join(LINES.split(chr(10) * 2))}]"),
        (
            "tasks.toml",
            """
[[task]]
prompt = "one"
workspace = "/srv/code"
labels = {kind = "fix"}
[[task]]
prompt = "two"
key = "k2"
workspace = {git = "https://example.org/a.git", push = true}
""",
        ),
    ],
)
def test_the_same_tasks_are_read_from_every_kind_of_file(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    one, two = read_tasks(tmp_path / name)
    assert (one.prompt, one.workspace.folder, one.labels) == ("one", "/srv/code", {"kind": "fix"})
    assert (two.key, two.workspace.git, two.workspace.push) == (
        "k2",
        "https://example.org/a.git",
        True,
    )
    assert [task_of(task.as_data()) for task in (one, two)] == [one, two]


def test_a_task_without_a_key_has_one_of_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    again = [task.key for task in read_tasks(file)]
    assert [task.key for task in read_tasks(file)] == again
    assert len(set(again)) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no tasks"),
        ("{", r"tasks\.jsonl:1: this is no JSON"),
        (
            '\n{"promt": "a"}',
            r"tasks\.jsonl:2: there is no field 'promt' \(did you mean prompt\?\)",
        ),
        ('{"prompt": ""}', "prompt is missing"),
        ('{"prompt": 3}', "prompt cannot be 3"),
        ('{"prompt": "a", "max_turns": true}', "max_turns cannot be True"),
        ('{"prompt": "a", "workspace": {"gt": "x"}}', r"workspace: .*did you mean git\?"),
        ('"a"', "an object with a prompt is wanted"),
        ('{"prompt": "a", "key": "k"}\n{"prompt": "b", "key": "k"}', "two tasks have the key 'k'"),
    ],
)
def test_what_is_no_task_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(text)
    with pytest.raises(FleetError, match=said):
        read_tasks(file)
