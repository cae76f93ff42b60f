"""Quote removal: raw text of a shell word to its parts. Both parsers share it."""

from __future__ import annotations

import re

from crow.extensions.permissions.shell.script import Part, Text, Unknown

BREAKS = frozenset(" \t\n\r'\"`;&|<>()")
EXPANDS = re.compile(r"\$[A-Za-z0-9_{(\[@*#?$!'\"-]")
STRING_EXPANDS = re.compile(r"`|\$[A-Za-z0-9_{(\[@*#?$!-]")
ANSI = {
    "n": "\n",
    "t": "\t",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
    "e": "\x1b",
    "E": "\x1b",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "r": "\r",
    "v": "\v",
}
ANSI_ESCAPE = re.compile(
    r"\\(?:([ntaebEfrv\\'\"?])|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|u([0-9A-Fa-f]{1,4})"
    r"|U([0-9A-Fa-f]{1,8})|(.))",
    re.DOTALL,
)
ARITHMETIC = re.compile(r"\$\(\([\d\s+*/%()-]+\)\)")


def unquoted(raw: str) -> list[Part]:
    """Parts of text outside of quotes."""
    parts: list[Part] = []
    if "\\" not in raw:
        parts.append(Text(raw))
    else:
        parts.extend(_with_escapes(raw))
    bare = "".join(p.value for p in parts if isinstance(p, Text) and not p.quoted)
    if BREAKS.intersection(bare) or EXPANDS.search(bare):
        parts.append(Unknown("odd word"))
    return parts


def _with_escapes(raw: str) -> list[Text]:
    parts: list[Text] = []
    position = 0
    for match in re.finditer(r"\\(.?)", raw, re.DOTALL):
        parts.append(Text(raw[position : match.start()]))
        if match[1] != "\n":
            parts.append(Text(match[1] or "\\", quoted=True))
        position = match.end()
    parts.append(Text(raw[position:]))
    return [part for part in parts if part.value]


def double_quoted(raw: str) -> list[Part]:
    """Parts of text inside of double quotes, expansions already taken out."""
    if "\\" not in raw:
        text = bare = raw
    else:
        text = re.sub(r"\\([$`\"\\\n])", lambda m: "" if m[1] == "\n" else m[1], raw)
        bare = re.sub(r"\\.", "", raw, flags=re.DOTALL)
    parts: list[Part] = [Text(text, quoted=True)]
    if STRING_EXPANDS.search(bare):
        parts.append(Unknown("odd string"))
    return parts


def ansi_quoted(raw: str) -> list[Part]:
    """Parts of ``$'...'``, its escapes replaced; an escape that is not common is unknown."""
    odd = False

    def replaced(match: re.Match[str]) -> str:
        nonlocal odd
        if match[1]:
            return ANSI[match[1]]
        digits = match[2] or match[4] or match[5]
        code = int(digits, 16) if digits else int(match[3], 8) if match[3] else -1
        if 1 < code < 0x80 or ((match[4] or match[5]) and 0x9F < code < 0xD800):
            return chr(code)
        odd = True
        return ""

    text = ANSI_ESCAPE.sub(replaced, raw)
    parts: list[Part] = [Text(text, quoted=True)]
    if odd:
        parts.append(Unknown("odd escape"))
    return parts


def heredoc_parts(op: str, mark: str, raw: str) -> list[Part]:
    """The parts of a here-document's body. Its mark says whether anything in it is expanded."""
    if op == "<<-":
        raw = re.sub(r"^\t+", "", raw, flags=re.MULTILINE)
    if mark[:1] in {"'", '"'} and mark[-1:] == mark[:1] and mark[1:-1].isidentifier():
        return [Text(raw, quoted=True)]
    if mark.isidentifier() and not re.search(r"[$`\\]", raw):
        return [Text(raw, quoted=True)]
    return [Unknown("here-document")]
