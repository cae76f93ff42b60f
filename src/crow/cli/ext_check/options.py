"""The options of an extension: defaults that are not what their annotations say."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from crow.cli.ext_check.finding import Finding
from crow.cli.ext_check.source_lines import NOWHERE, Place, line_of_field
from crow.settings.schema import Sieve


def options(thing: Any, name: str) -> Iterator[Finding]:
    """Defaults of a class that are not what their annotations say, at the line of the option."""
    if not inspect.isclass(thing):
        return
    from crow.annotations.options import options_of

    try:
        node = options_of(thing).node
    except (TypeError, ValueError) as error:
        do = "annotate its options with types of JSON"
        yield Finding(f"{thing.__name__}: {error}", do, *place_of(thing, ""))
        return
    defaults = {
        key: each["default"]
        for key, each in node.get("properties", {}).items()
        if each.get("default") is not None
    }
    said: list[tuple[str, str]] = []
    Sieve(lambda path, value, text: said.append((path, text)), node).sift(defaults, name)
    for path, text in said:
        option = path.removeprefix(f"{name}.").partition(".")[0].partition("[")[0]
        do = "let the default be what its type says"
        yield Finding(text, do, *place_of(thing, option))


def place_of(cls: type[Any], option: str) -> Place:
    """The line of an option of a class, else the class's own."""
    for each in (cls, getattr(cls, "options", None), *cls.__mro__[1:-1]):
        if inspect.isclass(each) and (found := line_of_field(each, option)) != NOWHERE:
            return found
    try:
        return inspect.getsourcefile(cls) or "", inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return NOWHERE
