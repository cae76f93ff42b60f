"""The plain English requests that the rehearsal understands, and the tool calls they become."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from crow.core.support.frozen import frozen


@frozen
class Step:
    """A tool to call, and its arguments."""

    tool: str
    args: dict[str, Any]


Make: TypeAlias = Callable[[dict[str, str]], list[Step]]


@frozen
class Phrase:
    """A sentence: an example for people, the pattern, and what it becomes."""

    example: str
    pattern: re.Pattern[str]
    make: Make


class Misunderstanding(Exception):  # noqa: N818
    """A part of a request that fits no phrase."""


def steps_of(request: str) -> list[Step]:
    """The tool calls of a request, in order. Raises `Misunderstanding` with the first odd part."""
    return [step for part in parts_of(request) for step in _steps_of_part(part)]


def parts_of(request: str) -> list[str]:
    """The sentences that are joined by "then"; quoted text is left alone."""
    parts = JOINT.split(request.strip())
    return [END.sub("", part.strip()).strip() for part in parts if part.strip()]


def _steps_of_part(part: str) -> list[Step]:
    for sentence in (part, MENTION.sub("", part)):
        for phrase in PHRASES:
            if match := phrase.pattern.fullmatch(sentence):
                words = {name: _bare(text) for name, text in match.groupdict("").items()}
                if "path" in words:
                    words["path"] = words["path"].removeprefix("@")
                return phrase.make(words)
    raise Misunderstanding(part)


def _bare(text: str) -> str:
    """A text without the quotes around it."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "`\"'"
    return text[1:-1] if quoted else text


def _word(name: str) -> str:
    return rf"(?P<{name}>`[^`]+`|\"[^\"]+\"|'[^']+'|\S+)"


def _text(name: str) -> str:
    return rf"(?P<{name}>`[^`]*`|\"[^\"]*\"|'[^']*'|.+?)"


JOINT = re.compile(
    r"(?:\s*[,;.])?\s+(?:and\s+)?then,?\s+(?=(?:[^`\"]*[`\"][^`\"]*[`\"])*[^`\"]*$)", re.IGNORECASE
)
MENTION = re.compile(r"(?:\s+@[~./]\S*)+$")
"""Files that an editor attached behind a sentence."""
END = re.compile(r"(?<=[\w`\"'*)/}])[.!?]+$")
POLITE = r"(?:(?:please|now|and|can you|could you)[, ]+)*"
FILE = r"(?:the )?(?:file )?"


def _phrase(example: str, pattern: str, make: Make) -> Phrase:
    pattern = POLITE + pattern.replace(" ", r"\s+").replace(r"\s+)?", r"\s+)?")
    return Phrase(example, re.compile(pattern, re.IGNORECASE | re.DOTALL), make)


def _read(words: dict[str, str]) -> list[Step]:
    return [Step("Read", {"file_path": words["path"]})]


def _create(words: dict[str, str]) -> list[Step]:
    return [Step("Write", {"file_path": words["path"], "content": words["content"]})]


def _delete_temporary(words: dict[str, str]) -> list[Step]:
    folder = words["folder"].rstrip("/") or "/"
    return [Step("Bash", {"command": f"rm -f {shlex.quote(folder).rstrip('/')}/*.tmp"})]


def _delete(words: dict[str, str]) -> list[Step]:
    return [Step("Bash", {"command": f"rm {shlex.quote(words['path'])}"})]


def _run(words: dict[str, str]) -> list[Step]:
    return [Step("Bash", {"command": words["command"]})]


def _find_files(words: dict[str, str]) -> list[Step]:
    return [Step("Glob", {"pattern": words["pattern"], **_at(words)})]


def _find(words: dict[str, str]) -> list[Step]:
    return [Step("Grep", {"pattern": words["pattern"], **_at(words)})]


def _replace(words: dict[str, str]) -> list[Step]:
    change = {"old_string": words["old"], "new_string": words["new"]}
    return [*_read(words), Step("Edit", {"file_path": words["path"], **change})]


def _list(words: dict[str, str]) -> list[Step]:
    return [Step("LS", {"path": words.get("path") or "."})]


def _call(words: dict[str, str]) -> list[Step]:
    try:
        args: object = json.loads(words["args"] or "{}")
    except ValueError as error:
        raise Misunderstanding(f"{words['args']}: {error}") from None
    return [Step(words["tool"], cast("dict[str, Any]", args))]


def _at(words: dict[str, str]) -> dict[str, str]:
    return {"path": words["path"]} if words.get("path") else {}


PHRASES: tuple[Phrase, ...] = (
    _phrase(
        'Call weather {"city": "Rome"}',
        r"call (?:the )?(?:tool )?(?P<tool>[\w-]+)(?: (?:with )?(?P<args>\{.*\}))?",
        _call,
    ),
    _phrase(
        "Read the file README.md",
        rf"(?:read|show|open|cat)(?: me)? {FILE}{_word('path')}",
        _read,
    ),
    _phrase(
        "Create a file called test.txt with some text",
        rf"(?:create|make|write) (?:a |an |the )?(?:new )?(?:empty )?file (?:(?:called|named) )?"
        rf"{_word('path')}(?: (?:with|containing)(?: the)?(?: text| content)? {_text('content')})?",
        _create,
    ),
    _phrase(
        "Delete all temporary files in /tmp",
        rf"(?:delete|remove) (?:all )?(?:the )?temporary files (?:in|under|from) {_word('folder')}",
        _delete_temporary,
    ),
    _phrase(
        "Delete the file test.txt",
        rf"(?:delete|remove) {FILE}{_word('path')}",
        _delete,
    ),
    _phrase(
        "Run `pytest -q`",
        rf"(?:run|execute) (?:the )?(?:command )?{_text('command')}",
        _run,
    ),
    _phrase(
        "Find files matching *.py in src",
        rf"(?:find|search for) (?:all )?(?:the )?files (?:matching|named|called|like) "
        rf"{_word('pattern')}(?: (?:in|under) {_word('path')})?",
        _find_files,
    ),
    _phrase(
        "Find TODO in src",
        rf"(?:find|search for|search|grep for|grep) {_text('pattern')}"
        rf"(?: (?:in|under) {FILE}{_word('path')})?",
        _find,
    ),
    _phrase(
        "Replace red by blue in colours.txt",
        rf"replace {_text('old')} (?:by|with) {_text('new')} in {FILE}{_word('path')}",
        _replace,
    ),
    _phrase(
        "List the files in src",
        rf"list(?: all)?(?: the)?(?: files| contents| directory| folder)?"
        rf"(?:(?: in| of| under)?(?: the)?(?: directory| folder)? {_word('path')})?",
        _list,
    ),
)
