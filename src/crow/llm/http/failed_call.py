"""A call that an endpoint refused because its model wrote it wrong: the model is told of it.

Some endpoints check calls themselves, and answer with an error in place of the reply (Groq's
``tool_use_failed``). The reply is then a call that cannot run, which says why.
"""

from __future__ import annotations

import json
import re

from crow.core.messages import Message
from crow.core.ports.llm import Completion, Request
from crow.core.tools import Call
from crow.llm.http.faults import RefusedError
from crow.llm.http.text import is_object

CODE = "tool_use_failed"
NAME = r"<function=([\w.-]+)|\"name\"\s*:\s*\"([\w.-]+)\""
FAULT = "the endpoint refused this call: "
ATTEMPTS = 3
SHOWN = 2000


def failed_call(error: RefusedError, request: Request) -> Completion | None:
    """The reply that stands for a refused call; None for other errors, and after three in a row."""
    if CODE not in error.body or _failures(request.messages) >= ATTEMPTS:
        return None
    written = _written(error.body)
    found = re.search(NAME, written)
    known = [tool["function"]["name"] for tool in request.tools]
    name = (found[1] or found[2]) if found else next(iter(known), "")
    if not name:
        return None
    fault = f"{FAULT}{error}. You wrote: {written[:SHOWN]}"
    count = sum(len(message.get("tool_calls") or ()) for message in request.messages)
    call = Call(f"call_refused_{count}", name, fault=fault)
    return Completion("", (call,), finish="tool_calls")


def _failures(messages: list[Message]) -> int:
    """How many refused calls the history ends with."""
    count = 0
    for message in reversed(messages):
        if message["role"] == "tool":
            if FAULT not in str(message.get("content")):
                break
            count += 1
        elif message["role"] != "assistant":
            break
    return count


def _written(body: str) -> str:
    try:
        parsed = json.loads(body)
    except ValueError:
        return ""
    error = parsed.get("error") if is_object(parsed) else None
    written = error.get("failed_generation") if is_object(error) else None
    return written if isinstance(written, str) else ""
