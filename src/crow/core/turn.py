"""A turn, from the request to the stored reply."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from crow.core.cache import CARRIER
from crow.core.errors import ModelError
from crow.core.events import CallDelta, StopReason, TextDelta, UsageReported
from crow.core.history import flaw, flaw_before, repaired, sendable
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import TurnContext, open_call
from crow.core.hooks.run_context import RunContext
from crow.core.hooks.wraps.stream import Anew, Sink
from crow.core.messages import Message, add_usage, is_prompt
from crow.core.ports.llm import Completion, Delta, Request, deltas_of
from crow.core.session import Session
from crow.core.support.frozen import kept
from crow.core.support.validation import fits

if TYPE_CHECKING:
    from crow.core.host import Agent

logger = logging.getLogger("crow.hooks")

FINISHED: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}


def next_request(agent: Agent, session: Session) -> Request:
    """The next request of a session, as it is before any hook has seen it."""
    messages, tools = sendable(session.history), agent.tool_specs(session)
    points = agent.hooks.before_llm_request, agent.hooks.around_llm_request
    if any(point.line(session) for point in points):
        messages, tools = list(messages), list(tools)
    params = {**session.options.get("params", {})}
    return Request(messages, tools, session.model, params, session.id, session.next_message_id)


async def ask(ctx: RunContext) -> TurnContext | None:
    """Ask the model; its reply is in the history afterwards. None where a hook stopped before."""
    hooks = ctx.agent.hooks
    await deliver(ctx)
    ctx.session.trace.trim()
    ctx.session.history.call_ids.begin()
    now = TurnContext(ctx, ctx.agent.request_of(ctx.session))
    await hooks.before_llm_request.fire(now)
    if ctx.stopping:
        return None
    paid: list[Completion] = []
    reply = await hooks.around_llm_request.fire(
        TurnContext(ctx, now.request), partial(stream, now, paid), partial(show, now)
    )
    now.reply = as_said(reply)
    ctx.check()
    count(now, paid)
    await hooks.after_llm_response.fire(now)
    await store(now)
    return now


def as_said(reply: Completion) -> Completion:
    """A reply of whose calls nobody changes the arguments in place: they are in the history too."""
    if not reply.calls:
        return reply
    return replace(reply, calls=tuple(replace(each, args=kept(each.args)) for each in reply.calls))


async def deliver(ctx: Context) -> None:
    """Put injected context at the end of the history; only where that is whole.

    What is injected meanwhile waits: a hook that says something to each message has no end. Of the
    same that several of them say to one another each says it once.
    """
    await ctx.heal()
    pending = ctx.session.pending
    for _ in range(len(pending)):
        if not pending:
            break
        message = pending[0]
        pending.put(pending[1:])
        if fits(Message)(message) and flaw([message]) is None:
            await ctx.append(message)
        else:
            logger.warning("left out what is no message for the model: %.60r", message)
    if len(pending) > 1:
        pending.put([each for n, each in enumerate(pending) if not _is_echo(each, pending[:n])])


def _is_echo(message: Message, before: Sequence[Message]) -> bool:
    """True for injected context that waits already."""
    return fits(Message)(message) and not is_prompt(message) and message in before


async def stream(
    now: TurnContext, paid: list[Completion], asked: TurnContext, sink: Sink
) -> Completion:
    """Ask, and pass the reply on while it comes; the innermost of ``around_llm_request``."""
    now.request = asked.request
    request = whole(asked)
    if (carrier := CARRIER.get(asked)) is not None:
        request.trace_context = carrier(asked)
    point = now.agent.hooks.on_llm_request
    if point.line(now.session):
        await point.fire(point.context(now.run, request))
    silent = True
    async with aclosing(deltas_of(now.agent.llm, request)) as deltas:
        async for delta in deltas:
            if isinstance(delta, Completion):
                paid.append(distinct(now, delta))
                if silent and delta.text:  # it came in one piece
                    await sink(TextDelta(delta.text, request.message_id))
                return paid[-1]
            silent = silent and type(delta) is not TextDelta
            await sink(known(now, delta))
    raise ModelError(
        "the model ended without an answer: the last that it yields is a Completion",
        kind="protocol",
    )


def distinct(now: TurnContext, reply: Completion) -> Completion:
    """A reply each of whose calls has an id of its own."""
    calls = now.session.history.call_ids.distinct(reply.calls)
    return reply if calls == reply.calls else replace(reply, calls=calls)


def known(now: TurnContext, delta: Delta) -> Delta:
    """A piece of a reply; of a call by the id that the call is to have."""
    if type(delta) is not CallDelta:
        return delta
    call_id = now.session.history.call_ids.known(delta.call_id)
    return delta if call_id == delta.call_id else replace(delta, call_id=call_id)


def whole(now: TurnContext) -> Request:
    """The request, whatever hooks have made of it; a history that nobody touched is whole."""
    request, history = now.request, now.session.history
    touched = request.messages is not history or history.before is not None
    if touched and (wrong := flaw_before(request.messages, history)) is not None:
        logger.warning("a message was changed in place, and the request repaired: %s", wrong)
        request.messages = repaired(request.messages)
    return request


async def show(now: TurnContext, delta: Delta) -> None:
    """Tell the client what the model is saying."""
    now.run.check()
    if type(delta) is TextDelta:
        now.run.partial.add(delta.text)
    elif type(delta) is Anew:
        now.run.partial.take()
        delta = TextDelta(delta.text, delta.message_id)
    await now.emit(known(now, delta))


def count(now: TurnContext, paid: list[Completion]) -> None:
    """Count the reply's tokens, as if it stood in the history already.

    Those of replies that a hook has thrown away were paid as well, and so was a reply without its
    usage that was given just now.
    """
    total, reply, session = now.run.reply, now.reply, now.session
    said = [each for each in paid if (each.text, each.calls) == (reply.text, reply.calls)]
    if said and reply.usage is None:
        now.reply = reply = replace(reply, usage=said[-1].usage)
    own = (said or paid or [None])[-1] if reply.usage is not None else None
    for each in paid:
        if each is not own:
            session.usage = add_usage(session.usage, each.usage)
            total.usage = add_usage(total.usage, each.usage)
    session.report(reply.usage, ahead=reply.message() is not None)
    total.usage = add_usage(total.usage, reply.usage)


async def store(now: TurnContext) -> None:
    """Put the model's answer into the history and tell of its tokens."""
    run, session = now.run, now.session
    now.reply = reply = distinct(now, now.reply)
    session.history.call_ids.use(call.id for call in reply.calls)
    run.partial.take()
    message = reply.message()
    now.results = [open_call(run, call) for call in reply.calls]
    if message is not None:
        await now.append(message)
    run.reply.text = reply.text
    run.reply.stop_reason = FINISHED.get(reply.finish, "end_turn")
    if reply.usage is not None:
        window = now.agent.context_window(session)
        tokens = session.tokens(window)["total_tokens"]
        await now.emit(UsageReported(reply.usage, session.usage, tokens, window))
