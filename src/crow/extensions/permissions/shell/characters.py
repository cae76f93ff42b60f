"""Characters that a person cannot see, or that shells and parsers read differently."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 10_000
ODD_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc"
)
EMOJI_STYLE = "\ufe0f"
SPECIAL = frozenset(";&|<>$`()\n\"'\\ ")
CONTINUED = re.compile(r"\\\n")


def odd_character(text: str) -> str | None:
    """The first character that no command may have, by its code point; None where all are fine."""
    if text.isascii():
        found = re.search(r"[^\t\n\x20-\x7e]", text)
        return _name(found[0]) if found else None
    for index, one in enumerate(text):
        if one.isascii() and (one >= " " or one in "\t\n") and one != "\x7f":
            continue
        if is_odd(one, text[index - 1] if index else ""):
            return _name(one)
    return None


def is_odd(one: str, before: str) -> bool:
    """Whether a character is invisible, a control character, or a space that is none."""
    if one == EMOJI_STYLE:
        return unicodedata.category(before or "a") not in {"So", "Sm"}
    if "\ufe00" <= one <= "\ufe0f" or "\U000e0100" <= one <= "\U000e01ef":
        return True
    return one in INVISIBLE or unicodedata.category(one) in ODD_CATEGORIES


def looks_special(text: str) -> bool:
    """Whether unquoted text has characters that only look like the shell's own."""
    if text.isascii():
        return False
    return any(
        SPECIAL.intersection(unicodedata.normalize("NFKC", one)) for one in text if ord(one) > 127
    )


def odd_continuation(text: str) -> bool:
    """Whether a backslash at a line's end stands anywhere but between two words."""
    if "\\\n" not in text:
        return False
    usual = {
        match.end() - 1 for match in re.finditer(r"(?<=[^\s\\])[ \t]+\\\n(?=[ \t]*[^\s\\#])", text)
    }
    return any(match.end() - 1 not in usual for match in CONTINUED.finditer(text))


def fault(text: str) -> str | None:
    """Why a command's text cannot be judged; None where it can."""
    if len(text) > LONGEST:
        return f"the command is longer than {LONGEST} characters"
    if odd := odd_character(text):
        return f"the command has the character {odd}"
    if odd_continuation(text):
        return "the command continues a line in an unusual place"
    return None


def visible(text: str) -> str:
    """The text without its odd characters, as a person sees it."""
    return "".join(
        one
        for index, one in enumerate(text)
        if one in "\t\n" or not is_odd(one, text[index - 1] if index else "")
    )


def _name(one: str) -> str:
    return f"U+{ord(one):04X}"
