"""Skills as the open standard has them: its own validator beside what Crow makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import skills_ref

from crow.extensions.skills.skill import read

OWN = Path(__file__).parents[2] / "src/crow/extensions/authoring/guide/crow-extensions"
LONG = "x" * 1024
VALID = {
    "plain": ("plain", "description: Says hello."),
    "quoted": ("quoted", "description: 'When: it is asked, # said \"hello\" is said'"),
    "folded": ("folded", "description: >-\n  One line\n  and another."),
    "all-of-it": (
        "all-of-it",
        "description: D.\nlicense: MIT\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: Ada",
    ),
    "x" * 64: ("x" * 64, "description: D."),
    "longest": ("longest", f"description: {LONG}"),
    "навык": ("навык", "description: Says hello."),
    "技能-2": ("技能-2", "description: Says hello."),
    "über": ("u\u0308ber", "description: Its name is written in two ways."),
}
INVALID = {
    "Upper": ("Upper", "description: D."),
    "two--hyphens": ("two--hyphens", "description: D."),
    "elsewhere": ("another", "description: D."),
    "under_score": ("under_score", "description: D."),
    "long": ("long", f"description: {LONG}x"),
    "long-name": ("x" * 65, "description: D."),
}


def put(top: Path, folder: str, name: str, lines: str) -> Path:
    path = top / folder / "SKILL.md"
    path.parent.mkdir()
    path.write_text(f"---\nname: {name}\n{lines}\n---\nDo it.\n", "utf-8")
    return path


@pytest.mark.parametrize("folder", VALID)
def test_what_the_validator_takes_is_taken_as_it_reads_it_without_a_word(
    tmp_path: Path, folder: str
) -> None:
    path = put(tmp_path, folder, *VALID[folder])
    assert skills_ref.validate(path.parent) == []
    skill, faults = read(path, "user")
    assert faults == []
    properties = skills_ref.read_properties(path.parent)
    assert skill.name == folder
    assert skill.description == properties.description
    assert skill.compatibility == (properties.compatibility or "")


@pytest.mark.parametrize("folder", INVALID)
def test_what_the_validator_refuses_is_taken_with_a_word(tmp_path: Path, folder: str) -> None:
    path = put(tmp_path, folder, *INVALID[folder])
    assert skills_ref.validate(path.parent) != []
    skill, faults = read(path, "user")
    assert skill.name
    assert faults


def test_the_skill_that_comes_along_is_valid() -> None:
    assert skills_ref.validate(OWN) == []
