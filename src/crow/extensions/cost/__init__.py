"""Cost: what the tokens of a run and of a session cost, in US dollars."""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import KW_ONLY, field, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, NotRequired, TypedDict, cast
from urllib.parse import urlsplit

from crow import (
    LLM,
    Answer,
    Arg,
    Command,
    CommandContext,
    CompactContext,
    Completion,
    Context,
    Session,
    SessionContext,
    TurnContext,
    Usage,
    hook,
)
from crow.dataclasses import entity
from crow.errors import ModelError
from crow.hooks import LAST
from crow.keys import PROMPT_CACHE, Key
from crow.messages import add_usage
from crow.ports import facts_of, model_named, url_of

if TYPE_CHECKING:
    from crow import Agent

SETTLED: Key[Usage] = Key("cost")
LOADING: Key[bool] = Key("cost.loading")
LIBRARY = "genai_prices.data"
MILLION = 1_000_000
Dollars = Annotated[float, Arg("US dollars for a million tokens.", minimum=0)]


class Price(TypedDict):
    """US dollars for a million tokens.

    ``cached`` is for input that was read from a cache, ``cache_write`` for what was written to it.
    """

    input: Dollars
    output: Dollars
    cached: NotRequired[Dollars]
    cache_write: NotRequired[Dollars]


@entity
class CostHook:
    """Fills ``usage["cost"]`` (US dollars) of every reply, and so of the run and the session.

    Models that ``prices`` does not name cost what is known of them (``info.prices`` of the LLM,
    which ``crow models`` shows); others are looked up in the price list of the package
    ``genai-prices``, by name and by the LLM's ``base_url``, where models on this machine or its
    network have no price. What the provider itself says that a request cost stays. Adds the
    command ``/cost``.
    """

    name = "cost"
    order = 90
    is_its_options = True

    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """Prices by model: dollars for a million tokens, ``cached`` where that is not ``input``."""
    _: KW_ONLY
    catalogue: bool = True
    """Look prices up in the lists that come along."""

    def init_agent(self, agent: Agent) -> None:
        """Add the command."""
        agent.add_command(Command("cost", "Show what the session has cost so far", self.show))

    def on_session_start(self, ctx: SessionContext) -> None:
        """Take what a loaded session has cost for settled."""
        SETTLED.set(ctx, {**ctx.session.usage})

    @hook("around_llm_request", order=LAST)
    async def around_llm_request(
        self, ctx: TurnContext, call_next: Callable[[], Awaitable[Completion]]
    ) -> Completion:
        """Price a reply."""
        await self._settle(ctx)
        llm = _llm_of(ctx, ctx.model)
        names = [name for name in (ctx.model, llm.model if llm else "") if name]
        self._load_meanwhile(ctx, names, llm)
        reply = await call_next()
        if reply.usage is None:
            return reply
        if "cost" not in reply.usage:
            cost = await self._cost([*names, reply.model], llm, reply.usage)
            if cost is not None:
                reply = replace(reply, usage={**reply.usage, "cost": cost})
        SETTLED.set(ctx, add_usage(ctx.session.usage, reply.usage))
        return reply

    async def after_compact(self, ctx: CompactContext) -> None:
        """Price the summary."""
        await self._settle(ctx)

    async def show(self, ctx: CommandContext) -> Answer:
        """The command ``/cost``."""
        await self._settle(ctx)
        return Answer("\n".join(_lines(ctx.agent, ctx.session)))

    async def _settle(self, ctx: Context) -> None:
        """Price what was asked beside the conversation since the last look."""
        seen = SETTLED.setdefault(ctx, {**ctx.session.usage})
        beside = _difference(ctx.session.usage, seen)
        if beside.get("total_tokens", 0) <= 0 or beside.get("cost"):
            return
        llm = _llm_of(ctx, ctx.session.model)
        names = [name for name in (ctx.session.model, llm.model if llm else "") if name]
        cost = await self._cost(names, llm, beside)
        if cost is not None:
            more: Usage = {"cost": cost}
            ctx.session.usage = add_usage(ctx.session.usage, more)
            if ctx.run is not None:
                ctx.run.reply.usage = add_usage(ctx.run.reply.usage, more)
        SETTLED.set(ctx, {**ctx.session.usage})

    def _load_meanwhile(self, ctx: TurnContext, names: list[str], llm: LLM | None) -> None:
        """Read the price list while the model works, where a request may need it."""
        known = any(name in self.prices for name in names) or price_of(llm)
        if not known and self._looks_up(_url_of(llm)) and not is_loaded() and not LOADING.get(ctx):
            LOADING.set(ctx, True)
            ctx.session.spawn(asyncio.to_thread(load))

    async def _cost(self, names: list[str], llm: LLM | None, usage: Usage) -> float | None:
        """What tokens cost; None where nobody knows."""
        for name in names:
            if name in self.prices:
                return cost_of(usage, self.prices[name])
        if self.catalogue and (price := price_of(llm)):
            return cost_of(usage, price)
        url = _url_of(llm)
        if url is None or not self._looks_up(url):
            return None
        if not is_loaded():
            await asyncio.to_thread(load)
        found = (listed(name, url, usage) for name in dict.fromkeys(names) if name)
        return next((cost for cost in found if cost is not None), None)

    def _looks_up(self, url: str | None) -> bool:
        return self.catalogue and url is not None and not is_at_home(url)


def _llm_of(ctx: Context, model: str | None) -> LLM | None:
    """The LLM that answers; None where there is none."""
    try:
        llm = ctx.agent.llm
        return model_named(llm, model or llm.model)
    except ModelError:
        return None


def _url_of(llm: LLM | None) -> str | None:
    return url_of(llm) or None if llm is not None else None


def _difference(usage: Usage, seen: Usage) -> Usage:
    both = {key: usage.get(key, 0) - seen.get(key, 0) for key in usage}
    return cast(Usage, {key: number for key, number in both.items() if number > 0})


def _lines(agent: Agent, session: Session) -> Iterator[str]:
    usage = session.usage
    if "cost" in usage:
        yield f"This session has cost ${usage['cost']:.4f} so far."
    elif usage.get("total_tokens"):
        yield (
            f"The price of {session.model or agent.llm.model} is not known; set it in the settings:"
            ' extensions.cost.prices = {"MODEL": {"input": 1.0, "output": 2.0}}, in dollars for a '
            "million tokens."
        )
    else:
        yield "This session has used no tokens yet, or the provider does not report them."
    if usage.get("total_tokens"):
        cached = usage.get("cached_tokens", 0)
        yield f"- input: {usage.get('input_tokens', 0):,} tokens, {cached:,} of them from a cache"
        yield f"- output: {usage.get('output_tokens', 0):,} tokens"
    known = PROMPT_CACHE.get(session)
    for line in known.lines if known is not None else ():
        yield f"- {line}" if line == line.strip() else line


def price_of(llm: LLM | None) -> Price | None:
    """The price that a model knows of itself, which `crow models` shows; None where it has none."""
    facts = None if llm is None else facts_of(llm)
    if facts is None or (known := facts.prices) is None:
        return None
    price: Price = {"input": known.input, "output": known.output}
    if known.cache_read:
        price["cached"] = known.cache_read
    if known.cache_write:
        price["cache_write"] = known.cache_write
    return price


def cost_of(usage: Usage, price: Price) -> float:
    """What a request cost."""
    given = usage.get("input_tokens", 0)
    cached = min(usage.get("cached_tokens", 0), given)
    written = min(usage.get("cache_write_tokens", 0), given - cached)
    asked = (given - cached - written) * price["input"]
    asked += cached * price.get("cached", price["input"])
    asked += written * price.get("cache_write", price["input"])
    return (asked + usage.get("output_tokens", 0) * price["output"]) / MILLION


def listed(model: str, url: str, usage: Usage) -> float | None:
    """What a request cost by the price list; None where the model or its provider is not in it.

    The list is part of an installed package; nothing is fetched.
    """
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    tokens = Tokens(
        input_tokens=usage.get("input_tokens", 0),
        cache_read_tokens=min(usage.get("cached_tokens", 0), usage.get("input_tokens", 0)),
        output_tokens=usage.get("output_tokens", 0),
    )
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        try:
            found = calc_price(tokens, name, provider_api_url=_provider(url))
        except (LookupError, ValueError):
            continue
        return float(found.total_price)
    return None


def _provider(url: str) -> str | None:
    """The URL where the list knows it; for any other one the model's name has to do."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        get_snapshot().find_provider(None, None, url)
    except LookupError:
        return None
    return url


def is_loaded() -> bool:
    """True once the price list is in memory."""
    return LIBRARY in sys.modules


def load() -> None:
    """Read the price list: some hundred milliseconds, so in a thread."""
    listed("gpt-4o", "https://api.openai.com", {})


@cache
def is_at_home(url: str) -> bool:
    """True for an address of this machine or its network, where no list has prices."""
    host = (urlsplit(url).hostname or "").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    return address.is_private or address.is_loopback or address.is_link_local
