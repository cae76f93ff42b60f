"""Front matter: the YAML between two lines of ``---`` at the head of a Markdown file."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from crow.core.errors import CrowError

_PLAIN = re.compile(r"^([A-Za-z_][\w-]*):[ \t]+(?![\"'|>])(.+?)[ \t]*$", re.MULTILINE)


class FrontMatterError(CrowError):
    """A file's front matter cannot be read; the text says what is wrong and in which line."""


def parse(text: str) -> tuple[dict[str, Any], str]:
    """The front matter and the text below it; an empty one where there is none.

    Values that only look like YAML, such as ``argument-hint: [file] [line]``, are taken as text.
    Raises `FrontMatterError`.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return {}, text.removeprefix("\ufeff")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise FrontMatterError("the front matter that begins in line 1 is not closed by ---")
    return _table("".join(lines[1:end])), "".join(lines[end + 1 :])


def _table(written: str) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        table: Any = yaml.load(written, loader)  # noqa: S506 - it is a safe one
    except yaml.YAMLError as error:
        try:
            table = yaml.load(_PLAIN.sub(_quoted, written), loader)  # noqa: S506
        except yaml.YAMLError:
            raise FrontMatterError(_explained(error)) from None
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise FrontMatterError("the front matter is no table of names and values")
    return {str(name): value for name, value in cast(dict[object, Any], table).items()}


def _quoted(match: re.Match[str]) -> str:
    return f"{match[1]}: {json.dumps(match[2], ensure_ascii=False)}"


def _explained(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 2}: " if mark is not None else ""
    return f"{where}no YAML ({getattr(error, 'problem', None) or 'it cannot be read'})"
