"""Store an API key, in the system's keyring where there is one, else in a file of yours alone.

  crow login                ask for a provider and its key
  crow login openai         ask for the key; where standard input is no terminal, read it there
  crow login --list         which providers have a key, and where it comes from

A key in the environment goes before a stored one. `crow logout` removes it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from crow.app.models import table_of as models_table
from crow.cli.options import declare_place, settings_of
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.cli.stdin import somebody_is_there
from crow.core.errors import CrowError
from crow.llm.credentials import load, providers, store
from crow.llm.model_names import LOGIN, Keys, known_providers
from crow.llm.presets import OTHER_NAMES, PRESETS, Preset

USUAL = "openai"


def declare(parser: Parser) -> None:
    """The options of ``crow login``."""
    parser.add_argument("provider", metavar="PROVIDER", nargs="?", help="such as openai or mistral")
    parser.add_argument("--list", action="store_true", help="say which providers have a key")
    declare_place(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow login``."""
    if options.list:
        return show(table_of(options), out)
    return ask_and_store(options.provider, options, out)


def ask_and_store(name: str | None, options: argparse.Namespace, out: Output) -> int:
    """Ask for what is not said yet, and store the key."""
    table = table_of(options)
    provider = provider_of(name, table, out)
    where = store_key(provider, key_of(provider, out))
    out.line(f"the key for {provider} is stored in {where}")
    first = Keys(table, os.environ, load).of(provider, PRESETS.get(provider, Preset(""))).origin
    if first != LOGIN:
        out.note(f"{first} goes before it")
    out.note(f"choose a model: crow run --model {provider}/NAME, or /model, or in your editor")
    return 0


def store_key(provider: str, key: str) -> str:
    """Store a key; where it is."""
    try:
        return store(provider, key)
    except OSError as error:
        raise CrowError(f"the key cannot be stored: {error}") from error


def table_of(options: argparse.Namespace) -> Mapping[str, Any]:
    """The part of the settings that knows of providers and keys."""
    return models_table(settings_of(options))


def show(table: Mapping[str, Any], out: Output) -> int:
    """One line for every provider that has a key."""
    found = dict(origins(table))
    width = max(map(len, found), default=0)
    for provider, origin in found.items():
        out.line(f"{provider:{width}}  {origin}")
    if not found:
        out.note("no provider has a key: crow login, or set its variable (OPENAI_API_KEY, ...)")
    return 0


def origins(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every provider that has a key, and where that comes from; never the key."""
    own = {**table, "api_key": None, "apiKeyHelper": None}
    keys = Keys(own, {**os.environ, "CROW_API_KEY": ""}, load)
    for provider in sorted({*known_providers(table), *providers()}):
        key = keys.of(provider, PRESETS.get(provider, Preset("")))
        if key:
            yield provider, key.origin


def provider_of(name: str | None, table: Mapping[str, Any], out: Output) -> str:
    """The provider that is meant; asked for where a person is there."""
    meant = name or asked(out)
    known = known_providers(table)
    lower = meant.lower()
    provider = OTHER_NAMES.get(lower, lower if lower in known else meant)
    if provider not in known:
        raise UsageError(f"{no_such('provider', meant, known)} ({', '.join(sorted(known))})")
    return provider


def asked(out: Output) -> str:
    """The provider that a person types; the usual one for an empty line."""
    if not somebody_is_there():
        raise UsageError("whose key is it? crow login PROVIDER, such as crow login openai")
    out.write(f"provider ({USUAL}): ")
    typed = sys.stdin.readline().strip()
    out.at_start = True
    return typed or USUAL


def key_of(provider: str, out: Output) -> str:
    """The key, typed without being shown, or from standard input."""
    if sys.stdin.isatty():
        from getpass import getpass

        key = getpass(f"key for {provider} (not shown): ")
        out.at_start = True
    else:
        key = sys.stdin.readline()
    key = key.strip()
    if not key:
        raise CrowError("no key was given: nothing is stored")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise CrowError("that is no key: it holds characters that cannot be sent; copy it again")
    return key
