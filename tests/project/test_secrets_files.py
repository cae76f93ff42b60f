"""Files of secrets: closed to others, and one that is damaged costs nobody a key."""

from __future__ import annotations

import json
import logging
import stat
from pathlib import Path

import pytest

from crow.llm.credentials import load, path, providers, store
from crow.project.files import read_secrets, write_secrets


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_a_file_that_others_can_read_is_closed_to_them_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.json"
    file.write_text('{"openai": {"key": "k"}}')
    file.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert read_secrets(file) == {"openai": {"key": "k"}}
    assert mode(file) == 0o600
    assert caplog.messages == [f"{file} could be read by others: it is closed to them now"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "\xff", '{"openai": 3, "other": {"key": 4}, "third": null}']
)
def test_odd_entries_are_no_keys(text: str) -> None:
    path().parent.mkdir(parents=True)
    path().write_bytes(text.encode("latin-1"))
    assert load("openai") is None
    assert load("other") is None
    assert set(providers()) <= {"other"}


def test_a_damaged_file_is_kept_where_a_key_is_stored() -> None:
    path().parent.mkdir(parents=True)
    path().write_text('{"openai": {"key": "precious"')
    store("mistral", "new")
    assert load("mistral") == "new"
    assert "precious" in path().with_name("credentials.json.damaged").read_text()
    store("groq", "newer")
    assert providers() == ["groq", "mistral"]


def test_a_directory_in_its_place_is_no_traceback() -> None:
    path().mkdir(parents=True)
    assert load("openai") is None


def test_what_is_written_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "keys.json"
    write_secrets(file, {"a": {"b": 1}})
    assert (mode(file), json.loads(file.read_text())) == (0o600, {"a": {"b": 1}})
