"""Names of hosts, and the rules that allow and deny them."""

from __future__ import annotations

from collections.abc import Iterable


class Domains:
    """Rules: ``pypi.org``, ``*.pypi.org``, ``pypi.org:443`` or ``*``; what is denied wins."""

    def __init__(self, allowed: Iterable[str], denied: Iterable[str] = ()) -> None:
        self._allowed = [_rule(each) for each in allowed]
        self._denied = [_rule(each) for each in denied]

    def allow(self, host: str, port: int) -> bool:
        """True for a host and a port that are allowed, and not denied."""
        name = plain(host)
        if name is None or _names(self._denied, name, port):
            return False
        return _names(self._allowed, name, port)


def plain(host: str) -> str | None:
    """A name as it is compared: ASCII, lower case, without a dot at its end; None for none."""
    text = host.strip("[]").rstrip(".").lower()
    try:
        text = text if text.isascii() else text.encode("idna").decode("ascii")
    except UnicodeError:
        return None
    is_name = text and all(part or ":" in text for part in text.split("."))
    return text if is_name and not set(text) & set("/@\\%\0 \t\r\n*") else None


def _rule(text: str) -> tuple[str, int | None]:
    """The pattern and the port of a rule."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdecimal() or (":" in host and not host.endswith("]")):
        host, port = text.strip(), ""
    wild = host.startswith("*.")
    name = "*" if host == "*" else plain(host.removeprefix("*."))
    return ("" if name is None else f"*.{name}" if wild else name), int(port) if port else None


def _names(rules: Iterable[tuple[str, int | None]], name: str, port: int) -> bool:
    return any(
        wanted in (None, port)
        and (pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:])))
        for pattern, wanted in rules
    )
