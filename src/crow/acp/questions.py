"""Questions to the user: whether a call may run, and what hooks want to know."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

from crow.acp.connection import Connection
from crow.acp.errors import ClientError
from crow.acp.jsonrpc import Message, Sent
from crow.core.ports.client import Option, OptionKind, Question

if TYPE_CHECKING:
    from crow.core.ports.client import Filled, Form

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"
COMPLETE = "elicitation/complete"
ANSWER = "answer"
SILENT = "nobody answered in time: what needs permission is denied until you say something"
MUTE = "this client cannot ask for permission: calls that need it are denied"


class Cancelled(Exception):  # noqa: N818 - no error: the user wants the whole turn to end
    """The user ended the turn instead of answering."""


async def choose(connection: Connection, params: Sent, patience: float = 0.0) -> str | None:
    """Ask for permission; the id of the chosen option, None where the answer makes no sense.

    Raises `Cancelled`, and ``OSError`` where the client cannot ask, or does not answer within
    ``patience`` seconds (0: however long it takes).
    """
    result = await connection.request(PERMISSION, params, patience or None)
    match result.get("outcome"):
        case {"outcome": "selected", "optionId": str(chosen)}:
            return chosen
        case {"outcome": "cancelled"}:
            raise Cancelled
        case _:
            return None


async def fill_in(connection: Connection, asked: Sent, patience: float = 0.0) -> Filled:
    """Show a form, or a page. Raises ``OSError``."""
    from crow.acp.forms import filled

    return filled(await connection.request(ELICITATION, asked, patience or None))


def form_of(question: Question) -> Form:
    """A question as a form of one field."""
    from crow.core.ports.client import Form

    text = "\n\n".join(filter(None, (question.text, question.detail)))
    fields = {ANSWER: _field(question)}
    schema = {"type": "object", "properties": fields, "required": [ANSWER]}
    return Form(text, schema, call_id=question.call_id)


def answer_in(question: Question, said: Filled) -> Any:
    """What was filled into a question's form; the default where the user declines."""
    answer = said.content.get(ANSWER)
    return answer if said.action == "accept" and _fits(question, answer) else question.default


def _field(question: Question) -> Message:
    match question.kind:
        case "confirm":
            field: Message = {"type": "boolean", "title": question.text}
        case "select":
            field = {"type": "string", "title": question.text, "enum": list(question.choices)}
        case "text":
            field = {"type": "string", "title": question.text}
    if _fits(question, question.default):
        field["default"] = question.default
    return field


def _fits(question: Question, answer: object) -> bool:
    match question.kind:
        case "confirm":
            return isinstance(answer, bool)
        case "select":
            return answer in question.choices
        case "text":
            return isinstance(answer, str)


def options_of(question: Question) -> list[Option]:
    """A question's answers as options of a request for permission; none where it wants a text."""
    match question.kind:
        case "confirm":
            return [Option("yes", "Yes", "allow_once"), Option("no", "No", "reject_once")]
        case "select":
            named = zip_longest(question.choices, question.kinds, fillvalue="allow_once")
            return [
                Option(f"choice-{index}", name, cast("OptionKind", kind))
                for index, (name, kind) in enumerate(named)
            ]
        case "text":
            return []


def value_of(question: Question, chosen: str | None) -> Any:
    """What an option of `options_of` stands for."""
    if question.kind == "confirm":
        return {"yes": True, "no": False}.get(chosen or "", question.default)
    for offered, choice in zip(options_of(question), question.choices, strict=False):
        if offered.id == chosen:
            return choice
    return question.default


def cannot_ask(error: OSError) -> bool:
    """True where asking once more is of no use: the client does not know how."""
    return isinstance(error, ClientError) and error.is_unknown_method


def denial(error: OSError) -> str:
    """Why a call is denied that nobody was heard about; empty where nobody is there to be told."""
    if isinstance(error, TimeoutError):
        return SILENT
    if cannot_ask(error):
        return MUTE
    if isinstance(error, ClientError):
        return f"this client failed to ask for permission ({error}): the call was denied"
    return ""
