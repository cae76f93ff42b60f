"""A new extension that works at once: a package with its tests, or one file."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pathlib import Path

from crow.cli.parser import UsageError
from crow.entry_points import entry_points

FILES: Mapping[str, str] = {
    "pyproject.toml": "pyproject.toml",
    "src/crow_sample/__init__.py": "init.py",
    "src/crow_sample/py.typed": "",
    "tests/test_sample.py": "test.py",
    "README.md": "README.md",
    ".github/workflows/test.yml": "workflow.yml",
    ".gitignore": "gitignore",
}
"""What a package has, and what each file is written from."""
FOLDER = Path(".crow", "extensions")
NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


def name_of(word: str) -> str:
    """The name of an extension, as its entry point has it. Raises `UsageError`."""
    name = word.removeprefix("crow-").removeprefix("crow_")
    if keyword.iskeyword(name):
        raise UsageError(
            f"{word!r} is a word of Python's own, and no module can have it: my-{name}"
        )
    if NAME.fullmatch(name) is None:
        raise UsageError(f"{word!r} is no name: small letters, digits and hyphens, as in my-guard")
    name = name.replace("-", "_")
    taken = next((point for point in entry_points() if point.name == name), None)
    if taken is not None:
        raise UsageError(f"an extension {name!r} is there already, of {taken.brought_by}")
    return name


def write_package(name: str, place: Path) -> list[Path]:
    """Write a package below ``place``; its files. Raises `UsageError` where it is there already."""
    root = place / filled("crow-sample", name)
    if root.exists():
        raise UsageError(f"{root} is there already")
    return [write(root / filled(path, name), source, name) for path, source in FILES.items()]


def write_file(name: str, place: Path) -> list[Path]:
    """Write one file that a project uses, and its test. Raises `UsageError` where one is there."""
    paths = [place / FOLDER / f"{start}{name}.py" for start in ("", "test_")]
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} is there already")
    sources = "init.py", "test_file.py"
    return [write(path, source, name) for path, source in zip(paths, sources, strict=True)]


def write(path: Path, source: str, name: str) -> Path:
    """Write one file of a new extension."""
    path.parent.mkdir(parents=True, exist_ok=True)
    template = Path(__file__).with_name(f"{source}.txt").read_text("utf-8") if source else ""
    path.write_text(filled(template, name), "utf-8")
    return path


def filled(text: str, name: str) -> str:
    """A template with the name in it, as each place writes names."""
    camel = "".join(word.capitalize() for word in name.split("_"))
    text = text.replace("crow-sample", f"crow-{name.replace('_', '-')}")
    text = text.replace("SAMPLE", name.upper())
    return text.replace("Sample", camel).replace("sample", name)
