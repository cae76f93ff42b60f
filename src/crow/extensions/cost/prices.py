"""What tokens cost: by the settings, or by the price list of the package ``genai-prices``."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from crow import ExtensionError, Usage, frozen

LIBRARY = "genai_prices.data"
MILLION = 1_000_000
NAMES = ("input", "output", "cached")


@frozen
class Price:
    """US dollars for a million tokens; ``cached`` is for input that was read from a cache."""

    input: float
    output: float
    cached: float

    def of(self, usage: Usage) -> float:
        """What a request cost."""
        cached = min(usage.get("cached_tokens", 0), usage.get("input_tokens", 0))
        fresh = usage.get("input_tokens", 0) - cached
        written = usage.get("output_tokens", 0)
        return (fresh * self.input + cached * self.cached + written * self.output) / MILLION


def prices_of(table: Mapping[str, Any]) -> dict[str, Price]:
    """The prices of the settings by model. Raises `ExtensionError` for what is no price."""
    return {model: _price(model, given) for model, given in table.items()}


def _price(model: str, given: Any) -> Price:
    if not isinstance(given, Mapping):
        raise ExtensionError(f"cost: the price of {model!r} is no table with input and output")
    numbers: dict[str, Any] = {str(name): number for name, number in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for name, number in numbers.items():
        if name not in NAMES:
            raise ExtensionError(f"cost: the price of {model!r} has no {name!r}; {NAMES}")
        if isinstance(number, bool) or not isinstance(number, int | float) or number < 0:
            raise ExtensionError(f"cost: {name!r} of {model!r} is no number of dollars: {number!r}")
    for name in ("input", "output"):
        if name not in numbers:
            raise ExtensionError(f"cost: the price of {model!r} needs {name!r}")
    return Price(numbers["input"], numbers["output"], numbers.get("cached", numbers["input"]))


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


def is_at_home(url: str) -> bool:
    """True for an address of this machine or its network, where no list has prices."""
    host = (urlsplit(url).hostname or "").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    return address.is_private or address.is_loopback or address.is_link_local
