"""The models that can be asked, and what one of them can do.

  crow models                    those of every provider that has a key or is on this machine
  crow models --provider openai  all that is known of one provider's
  crow models check NAME         try one: a short answer, a tool call, an image, thinking

Windows and prices come from the table that Crow brings, from settings, and from the server itself;
prices are dollars for a million tokens of input and output.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from crow.app.models import said_model, table_of
from crow.cli.interrupt import run_async
from crow.cli.options import declare_place, settings_of
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.llm.credentials import load
from crow.llm.listing import look, sources
from crow.llm.model_names import info_named, known_providers, resolve
from crow.llm.models import ModelInfo, known_models, model_info
from crow.llm.presets import OTHER_NAMES
from crow.text import one_line

CLOUDS = {"bedrock": "bedrock/anthropic.claude-opus-5", "vertex": "vertex/gemini-3.8-flash"}


def declare(parser: Parser) -> None:
    """The options of ``crow models``."""
    parser.add_argument("action", metavar="ACTION", nargs="?", default="list", help="list or check")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the model to try")
    parser.add_argument("--provider", metavar="NAME", help="all that is known of this one's models")
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    declare_place(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow models``."""
    match options.action:
        case "list":
            return show(options, out)
        case "check":
            from crow.cli.model_check import check

            settings = settings_of(options)
            name = options.name or said_model(settings)
            return check(resolve(name, table_of(settings), os.environ, load), out, options.json)
        case action:
            raise UsageError(f"{no_such('action', action, ['list', 'check'])} (list, check)")


def show(options: argparse.Namespace, out: Output) -> int:
    """List models, a line for each."""
    table = table_of(settings_of(options))
    if options.provider:
        named = [*known_to(provider_of(options.provider, known_providers(table)), table).items()]
    else:
        at_url = bool(os.environ.get("CROW_BASE_URL") or table.get("base_url"))
        known: Callable[[str], ModelInfo] = partial(model_info, "") if at_url else info_named
        named = [
            (each.model, with_window(known(each.model), each.window))
            for each in run_async(look(sources(table, os.environ, load)))
        ]
    if options.json:
        for name, info in named:
            out.verbatim(json.dumps(described(name, info)))
        return 0
    width = max((len(name) for name, _ in named), default=0)
    for name, info in named:
        out.raw(f"{one_line(name):{width}}  {out.styled(one_line(line(info)), 'dim')}".rstrip())
    if not named:
        out.note(without(options.provider))
    return 0


def known_to(provider: str, table: Mapping[str, Any]) -> dict[str, ModelInfo]:
    """The models of a provider that the table of Crow's knows, and those that settings name."""
    said = table.get("providers", {}).get(provider, {}).get("models", {})
    found = [*known_models(provider), *(model_info(provider, name) for name in said)]
    windows = {name: own.get("context_window") for name, own in said.items()}
    return {
        f"{provider}/{info.model}": with_window(info, windows.get(info.model)) for info in found
    }


def without(provider: str | None) -> str:
    """What is said where no model is listed."""
    if provider and (cloud := OTHER_NAMES.get(provider.lower(), provider.lower())) in CLOUDS:
        return f"{cloud} has models of many makers; name one as its console does: {CLOUDS[cloud]}"
    return "no model was found: crow login, or start a server; --provider lists what is known"


def provider_of(name: str, known: Iterable[str]) -> str:
    """The provider that is meant. Raises `UsageError` where there is none of this name."""
    provider = OTHER_NAMES.get(name.lower(), name.lower())
    if provider not in known:
        names = ", ".join(sorted(known))
        raise UsageError(f"{no_such('provider', name, known)} ({names})")
    return provider


def with_window(info: ModelInfo, window: int | None) -> ModelInfo:
    """What is known of a model, with the window that its server says."""
    return replace(info, context_window=window) if window else info


def line(info: ModelInfo) -> str:
    """What is known of a model, shortly."""
    window = f"{info.context_window:,} tokens" if info.context_window else ""
    prices = f"${info.prices.input:g} / ${info.prices.output:g}" if info.prices else ""
    inputs = ", ".join(sorted(info.inputs)) if info.name else ""
    thinks = f"thinks: {' '.join(info.levels)}" if info.levels else ""
    return " · ".join(filter(None, (info.wire, window, prices, inputs, thinks)))


def described(name: str, info: ModelInfo) -> dict[str, Any]:
    """A model as a JSON object."""
    prices = info.prices
    return {
        "name": name,
        "wire": info.wire,
        "context_window": info.context_window,
        "max_output": info.max_output,
        "prices": prices and {
            "input": prices.input,
            "output": prices.output,
            "cache_read": prices.cache_read,
            "cache_write": prices.cache_write,
        },
        "inputs": sorted(info.inputs),
        "thought_levels": [*info.levels],
        "refuses": sorted(info.refuses),
    }  # fmt: skip
