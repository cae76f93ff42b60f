"""Path rules: gitignore patterns, each with the directory that it counts from."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Sequence

from crow.dataclasses import frozen
from crow.extensions.permissions.paths.disk import inside

SINGLE = re.compile(r"[^/*?\[]+/\*\*")
SET_MARKS = re.compile(r"[\[\\&~|]|(?<=-)-|-(?=-)")  # what `re` takes, or will take, for more
CHILD = "\x02"  # a name that stands for anything in a directory


def translate(pattern: str, *, anywhere: bool = False) -> str:
    """A gitignore pattern as a regular expression for a path below its root.

    ``anywhere`` lets a pattern with slashes match at any depth too.
    """
    body = pattern.rstrip("/") if pattern != "/" else ""
    anchored = "/" in body and not anywhere
    segments = body.lstrip("/").split("/")
    expression = "" if anchored else "(?:.*/)?"
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == "**":
            expression += ".+" if last else "(?:.*/)?"
        else:
            expression += _segment(segment) + ("" if last else "/")
    return expression + ("" if segments[-1] == "**" else "(?:/.*)?")


def _segment(segment: str) -> str:
    expression, index = "", 0
    while index < len(segment):
        one = segment[index]
        if one == "*":
            expression += "" if expression.endswith("[^/]*") else "[^/]*"
        elif one == "?":
            expression += "[^/]"
        elif one == "[" and (found := re.match(r"\[[!^]?\]?[^\]]*\]", segment[index:])):
            inner = SET_MARKS.sub(r"\\\g<0>", found[0][1:-1])
            expression += "(?!/)[" + ("^" + inner[1:] if inner[:1] in "!^" else inner) + "]"
            index += found.end() - 1
        elif one == "\\" and index + 1 < len(segment):
            index += 1
            expression += re.escape(segment[index])
        else:
            expression += re.escape(one)
        index += 1
    return expression


def normal(path: str) -> str:
    """A path in the form in which names are compared."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


@frozen
class PathPattern:
    """A path rule's specifier. ``base`` is where it counts from.

    ``base`` is ``/``, ``~`` (home), ``root`` (the rule's source) or ``cwd``. ``negated`` patterns
    carve out of earlier ones. ``strict`` patterns (allow) keep to the letter; the others (deny,
    ask) ignore case and find ``dir/**`` at any depth. ``fixed`` is what all its paths begin with.
    """

    base: str
    prefix: str
    expression: re.Pattern[str]
    negated: bool = False
    fixed: str = ""

    @classmethod
    def of(cls, text: str, *, strict: bool) -> PathPattern:
        """Parse a specifier. Raises ValueError for one that has no meaning."""
        negated = text.startswith("!")
        base, pattern = _base(text[1:] if negated else text)
        prefix, pattern = _climb(pattern)
        if not pattern.strip("/") and base != "/":
            raise ValueError("it names no path")
        anywhere = not strict and base == "cwd" and SINGLE.fullmatch(pattern) is not None
        flags = re.DOTALL if strict else re.DOTALL | re.IGNORECASE
        try:
            expression = re.compile(translate(normal(pattern), anywhere=anywhere), flags)
        except re.error as error:
            raise ValueError(f"its pattern is broken ({error})") from None
        anchored = "/" in pattern.rstrip("/") and not anywhere
        fixed = re.split(r"[*?\[\\]", pattern, maxsplit=1)[0].rpartition("/")[0] if anchored else ""
        return cls(base, prefix, expression, negated, fixed.strip("/"))

    def reaches(self, path: str, roots: Sequence[str]) -> bool:
        """Whether it may mean something below a directory, whatever lies there."""
        path = normal(path).casefold()
        for root in roots:
            start = posixpath.normpath(posixpath.join(root, self.prefix, self.fixed)).casefold()
            if inside(path, start) or inside(start, path):
                return True
        return False

    def matches(self, path: str, roots: Sequence[str]) -> bool:
        """Whether an absolute path is one of those that the pattern means, below any root."""
        path = normal(path)
        for root in roots:
            start = posixpath.normpath(posixpath.join(root, self.prefix)) if self.prefix else root
            start = start.rstrip("/") + "/"
            if path.startswith(start) and self.expression.fullmatch(path, len(start)):
                return True
        return False


def _base(text: str) -> tuple[str, str]:
    if text.startswith("//"):
        return "/", text[1:]
    if text == "~" or text.startswith("~/"):
        return "~", text[1:] or "/**"
    if text.startswith("/"):
        return "root", text
    return "cwd", text.removeprefix("./")


def _climb(pattern: str) -> tuple[str, str]:
    prefix = ""
    while pattern.startswith("../"):
        prefix, pattern = prefix + "../", "/" + pattern[3:].lstrip("/")
        pattern = pattern[1:] if pattern.startswith("/../") else pattern
    return prefix, pattern
