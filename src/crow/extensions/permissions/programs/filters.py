"""``jq`` and ``awk``, as far as they only pick and print what they are given.

A jq filter can print the environment and read modules, an awk program can write files and run
commands: what might is not taken for reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crow.extensions.permissions.programs.table import Use
from crow.extensions.permissions.shell.script import Word

JQ_FLAGS = re.compile(
    r"-[rcCMSsneajR]+|--(?:raw-output|raw-input|compact-output|color-output|monochrome-output"
    r"|sort-keys|slurp|null-input|exit-status|ascii-output|join-output|tab)"
)
JQ_ELSEWHERE = re.compile(
    r"\b(?:env|ENV|import|include|modulemeta|get_search_list|input_filename)\b"
)
OWN = r"(?:[a-df-hj-z]|sum|total|count|min|max)"
"""Variables of a program's own; none of them is a word of the language."""
NUMBER = r"(?:\$(?:\d+|NF)|\$\(NF-\d+\)|NR|NF)"
FIELD = rf'(?:{NUMBER}|"[^"\\]*")'
TEST = r"(?:(?:NR|NF|\$\d+)\s*(?:==|!=|>=?|<=?)\s*\d+|/[\w .:=-]*/)"
CONDITION = rf"{TEST}(?:\s*(?:&&|\|\||,)\s*{TEST})*"
PRINT = rf"\{{\s*print(?:\s*{FIELD}(?:[ ,]*{FIELD})*)?\s*;?\s*\}}"
ADD = rf"\{{\s*{OWN}(?:\s*\+=\s*{NUMBER}|\+\+)\s*;?\s*\}}"
TOLD = rf"(?:{FIELD}|{OWN}(?:\s*/\s*(?:NR|\d+))?)"
END = rf"END\s*\{{\s*print\s+{TOLD}(?:[ ,]+{TOLD})*\s*;?\s*\}}"
AWK_PRINTS = re.compile(
    rf"\s*(?:{CONDITION}|(?:{CONDITION})?\s*{PRINT}|(?:(?:{CONDITION})?\s*{ADD})?\s*{END})\s*"
)
AWK_FLAGS = re.compile(r"-F.+", re.DOTALL)


def read_jq(words: Sequence[Word]) -> Use | None:
    """What ``jq`` reads; None where its filter could look elsewhere."""
    operands: list[Word] = []
    waiting = list(reversed(words[1:]))
    while waiting:
        word = waiting.pop()
        text = word.text
        if text is None or word.globbed:
            return None
        if text in {"--arg", "--argjson"}:
            named = [waiting.pop() for _ in "ab" if waiting]
            if len(named) < 2 or any(one.text is None or one.globbed for one in named):
                return None
        elif not text.startswith("-") or text == "-":
            operands.append(word)
        elif not JQ_FLAGS.fullmatch(text):
            return None
    wanted = operands[0].text if operands else "."
    return None if JQ_ELSEWHERE.search(wanted or "") else Use(tuple(operands[1:]))


def read_awk(words: Sequence[Word]) -> Use | None:
    """What ``awk`` reads; None where its program does more than to print fields of lines."""
    rest = list(words[1:])
    if any(word.text is None or word.globbed for word in rest):
        return None
    if rest and rest[0].text == "-F":
        rest = rest[2:]
    elif rest and AWK_FLAGS.fullmatch(rest[0].text or ""):
        rest = rest[1:]
    if not rest or not AWK_PRINTS.fullmatch(rest[0].text or ""):
        return None
    paths = rest[1:]
    return None if any((word.text or "").startswith("-") for word in paths) else Use(tuple(paths))
