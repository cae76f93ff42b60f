"""Fingerprints of the last request, kept with the session for another process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from crow import __version__
from crow.extensions.prompt_cache.cause import Break, changed_names, differences, repaid
from crow.messages import text_of

if TYPE_CHECKING:
    from crow import Message, TurnContext
    from crow.extensions.prompt_cache.sent_request import Memory, Sent

LONG = 100_000


def remembered(memory: Memory, model: str, sent: Sent) -> dict[str, Any]:
    """What to keep of a request; only what is new in it is looked at."""
    spoken = _spoken(sent)
    first, count, digest = memory.hashed or (None, 0, None)
    if digest is None or first is not sent.segment or count > len(spoken):
        count, digest = 0, blake2b(digest_size=8)
    _take(digest, spoken[count:])
    memory.hashed = (sent.segment, len(spoken), digest)
    return {
        "model": model,
        "version": __version__,
        "tools": {each["function"]["name"]: fingerprint(each) for each in sent.tools},
        "parts": _parts(sent),
        "system": fingerprint(sent.system),
        "params": dict(sent.params),
        "messages": [len(spoken), digest.hexdigest()],
        "segment": sent.segment,
    }


def since_stored(ctx: TurnContext, memory: Memory, model: str, now: Sent) -> Break | None:
    """What is another one than when the session was stored; None where that was not, or nothing."""
    known = memory.counts.get("sent")
    if not known or known["model"] != model or known["segment"] != now.segment:
        return None
    what = list(_others(known, now))
    if not what:
        return None
    if known["version"] != __version__:
        what.append(f"Crow ({known['version']} to {__version__})")
    message = 0 if what[0].startswith("the tools") else 1
    tokens = repaid(ctx, memory, now, now, 0)
    return Break("process", "another process", " and ".join(what), message, tokens)


def _others(known: dict[str, Any], now: Sent) -> Iterator[str]:
    tools = {each["function"]["name"]: fingerprint(each) for each in now.tools}
    if tools != known["tools"]:
        yield f"the tools ({differences(known['tools'], tools)})"
    if now.params != known["params"]:
        yield "the parameters"
    if _parts(now) != known["parts"]:
        yield f"the system prompt ({', '.join(changed_names(known['parts'], _parts(now)))})"
    elif fingerprint(now.system) != known["system"]:
        yield "what hooks make of the system message"
    if not _is_same(known["messages"], now):
        yield "the history"


def fingerprint(value: object) -> str:
    """A few letters that are others for another value."""
    return blake2b(json.dumps(value).encode(), digest_size=6).hexdigest()


def _parts(sent: Sent) -> dict[str, str]:
    return {name: fingerprint(text) for name, text in sent.parts.items()}


def _spoken(sent: Sent) -> Sequence[Message]:
    """The messages behind the system message."""
    return sent.messages[0 if sent.system is None else 1 :]


def _is_same(known: list[Any], now: Sent) -> bool:
    count, expected = known
    digest = blake2b(digest_size=8)
    _take(digest, _spoken(now)[:count])
    return digest.hexdigest() == expected


def _take(digest: Any, messages: Sequence[Message]) -> None:
    for message in messages:
        said = [message["role"], text_of(message.get("content")), message.get("tool_call_id", "")]
        for called in message.get("tool_calls", ()):
            said += [called["id"], called["function"]["name"], called["function"]["arguments"]]
        digest.update("\0".join(map(_shortened, said)).encode("utf-8", "surrogatepass"))


def _shortened(text: str) -> str:
    """A text, or of a very long one its length and its ends: nobody changes just its middle."""
    return text if len(text) <= LONG else f"{text[:LONG]}{len(text)}{text[-LONG:]}"
