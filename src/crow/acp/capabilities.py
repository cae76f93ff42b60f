"""The capabilities of a client, as it announced them; it is asked for nothing else."""

from __future__ import annotations

from typing import Any

from crow.acp.jsonrpc import as_object
from crow.core.support.frozen import frozen


@frozen
class ClientCapabilities:
    """The client's capabilities. ``files`` needs both reading and writing.

    ``forms`` are shown as a whole, and ``pages`` to visit. ``terminal_output``: it shows commands
    that the agent runs itself as terminals (``_meta`` of the tool calls). ``patience`` is how many
    seconds it may take to answer for a file or a terminal, where it said so
    (``_meta.crow.requestTimeoutMs``), and ``question_patience`` how many its user may take to
    answer a question (``_meta.crow.questionTimeoutMs``); 0 where it did not.
    """

    name: str = ""
    files: bool = False
    terminals: bool = False
    forms: bool = False
    pages: bool = False
    notices: bool = False
    compaction: bool = False
    plans: bool = False
    subagents: bool = False
    boolean_options: bool = False
    terminal_output: bool = False
    patience: float = 0.0
    question_patience: float = 0.0

    @classmethod
    def of(cls, hello: dict[str, Any]) -> ClientCapabilities:
        """What the parameters of ``initialize`` say; what is malformed counts as absent.

        A client that would rather speak a newer version says it under that version's names.
        """
        client = _object(hello, "clientCapabilities") or _object(hello, "capabilities")
        info = _object(hello, "clientInfo") or _object(hello, "info")
        files = _object(client, "fs")
        session = _object(client, "session")
        elicitation = _object(client, "elicitation")
        own = _object(_object(client, "_meta"), "crow")
        return cls(
            name=str(info.get("name") or ""),
            files=files.get("readTextFile") is True and files.get("writeTextFile") is True,
            terminals=client.get("terminal") is True,
            forms=_has(elicitation, "form"),
            pages=_has(elicitation, "url"),
            notices=_has(session, "notices"),
            compaction=_has(session, "compaction"),
            plans=_has(client, "plan"),
            subagents=_has(client, "subagents"),
            boolean_options=_has(_object(session, "configOptions"), "boolean"),
            terminal_output=_object(client, "_meta").get("terminal_output") is True,
            patience=_patience(own.get("requestTimeoutMs")),
            question_patience=_patience(own.get("questionTimeoutMs")),
        )


def _object(parent: dict[str, Any], key: str) -> dict[str, Any]:
    return as_object(parent.get(key))


def _patience(milliseconds: Any) -> float:
    is_number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
    return milliseconds / 1000 if is_number and milliseconds > 0 else 0.0


def _has(parent: dict[str, Any], key: str) -> bool:
    """True for a capability that is an object, or plainly true."""
    return isinstance(parent.get(key), dict) or parent.get(key) is True


def name_of(hello: dict[str, Any]) -> str:
    """How a client calls itself, for people."""
    info = as_object(hello.get("clientInfo") or hello.get("info"))
    told = (info.get("title"), info.get("name"))
    return next((name for name in told if isinstance(name, str) and name), "another client")
