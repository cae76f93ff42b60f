"""Prices of tokens: by the settings, by what is known of the model, or by ``genai-prices``."""

from __future__ import annotations

import ipaddress
import sys
from functools import cache
from typing import Annotated, Any, NotRequired, TypedDict
from urllib.parse import urlsplit

from crow import Arg, Usage

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


def price_of(llm: object) -> Price | None:
    """The price that a model knows of itself, which `crow models` shows; None where it has none."""
    known: Any = getattr(getattr(getattr(llm, "first", llm), "info", None), "prices", None)
    if known is None:
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
