"""One extension in detail: where it is from, what it added, its options, and how it did lately."""

from __future__ import annotations

import argparse
import inspect
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from crow.annotations.options import options_of
from crow.cli.explain import table
from crow.cli.ext_packages import packages, same
from crow.cli.hook_sources import where
from crow.cli.interrupt import run_async
from crow.cli.line_client import counted
from crow.cli.output import Output
from crow.cli.parser import UsageError, no_such
from crow.cli.session_lookup import store_of, store_with
from crow.cli.setting_rows import Row, refused_by, rows
from crow.core.agent import Agent
from crow.core.errors import SessionError
from crow.core.extensions import Found
from crow.core.hooks.hook import Hook, Owner
from crow.core.support.frozen import frozen
from crow.ports.stores import ExportStore
from crow.settings import Settings
from crow.text import one_line

LATELY = 20
"""Sessions that are looked through."""


@frozen
class Spent:
    """The time of hooks in stored sessions: ``seconds`` in all, the ``slowest``, the ``errors``."""

    runs: int = 0
    seconds: float = 0.0
    slowest: tuple[float, str] = (0.0, "")
    errors: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        if not self.runs:
            return "no hook of it ran"
        most, event = self.slowest
        took = f"{self.seconds * 1000:,.1f} ms, at most {most * 1000:,.1f} ms at {event}"
        return f"{counted(self.runs, 'run')} of hooks, {took}"


def info(agent: Agent, settings: Settings, options: argparse.Namespace, out: Output) -> int:
    """Run ``crow ext info``; 1 where the extension is broken."""
    found = find_extension(options.name, agent)
    told = described(found, agent, settings)
    spent = run_async(lately(agent, found.names))
    if options.json:
        lately_told = {
            "runs": spent.runs,
            "ms": round(spent.seconds * 1000, 3),
            "slowest_ms": round(spent.slowest[0] * 1000, 3),
            "errors": dict(spent.errors),
        }
        out.verbatim(json.dumps({**told, "lately": lately_told}, ensure_ascii=False))
    else:
        show(told, spent, out)
    return 1 if found.error else 0


def find_extension(name: str, agent: Agent) -> Found:
    """The extension of a name, or of a package's. Raises `UsageError` with the nearest one."""
    by_use = sorted(agent.found, key=lambda found: found.error is None)  # what is in use counts
    known = {each: found for found in by_use for each in (found.name, *found.names)}
    if name in known:
        return known[name]
    offered = packages()
    for found in agent.found:
        package = offered.get(found.name)
        if same(name, found.name) or (package is not None and same(name, package.name)):
            return found
    raise UsageError(f"{no_such('extension', name, known)} (crow ext list)")


def described(found: Found, agent: Agent, settings: Settings) -> dict[str, Any]:
    """All that is known of an extension, as a JSON object."""
    owners = [owner for owner in agent.hooks.owners if owner.name in found.names]
    package = packages().get(found.name)
    return {
        "name": found.name,
        "source": found.source,
        "package": f"{package.name} {package.version}" if package else "",
        "about": first(about(owner) for owner in owners),
        "file": first(file_of(owner) for owner in owners),
        "error": found.error or "",
        "problems": list(found.problems),
        "hooks": [hook_told(hook, agent) for owner in owners for hook in agent.hooks.of(owner)],
        **{f"{each.noun}s": sorted(added(each.owned, owners)) for each in agent.catalogs},
        "options": [option_told(row) for row in options(found, owners, settings, agent)],
    }


def first(lines: Iterable[str]) -> str:
    """The first that is not empty."""
    return next(filter(None, lines), "")


def about(owner: Owner) -> str:
    """The first line of what it says of itself."""
    return (inspect.getdoc(owner.thing) or "").partition("\n")[0]


def file_of(owner: Owner) -> str:
    """File and line of a class, a module or a function."""
    thing = owner.thing
    its_own = inspect.isroutine(thing) or inspect.isclass(thing) or inspect.ismodule(thing)
    told: Any = thing if its_own else thing.__class__
    try:
        return f"{inspect.getsourcefile(told)}:{inspect.getsourcelines(told)[1] or 1}"
    except (OSError, TypeError):
        return ""


def hook_told(hook: Hook, agent: Agent) -> dict[str, Any]:
    """A hook as a JSON object."""
    told = {"event": hook.event or hook.asked, "name": hook.name, "at": where(hook)}
    if not hook.tools:
        return told
    known = {name.lower(): name for name in agent.tools}
    return {**told, "tools": sorted(known.get(name, name) for name in hook.tools)}


def added(owned: dict[str, tuple[Any, object]], owners: Iterable[Owner]) -> Iterator[str]:
    """What of a catalog an extension has put there."""
    theirs = [*owners]
    return (name for name, (_, owner) in owned.items() if owner in theirs)


def options(
    found: Found, owners: Iterable[Owner], settings: Settings, agent: Agent
) -> Iterator[Row]:
    """Its options, as they are set or by default."""
    start = f"extensions.{found.name}."
    refused = refused_by(agent, settings)
    every = rows(settings, refused=refused)
    named = {row.name: row for row in every if row.name.startswith(start)}
    for owner in owners:
        if not inspect.isroutine(owner.thing) and not inspect.ismodule(owner.thing):
            for row in defaults(start, options_of(owner.thing.__class__).node):
                known = named.setdefault(row.name, row)
                if known.state == "left out":
                    yield row
    yield from named.values()


def defaults(start: str, node: Mapping[str, Any]) -> Iterator[Row]:
    """What the options of a schema are where nobody sets them, those in a table one by one."""
    for name, each in node["properties"].items():
        if "properties" in each:
            yield from defaults(f"{start}{name}.", each)
        else:
            yield Row(start + name, each.get("default"), "", "default")


def option_told(row: Row) -> dict[str, Any]:
    """An option as a JSON object."""
    name = row.name.split(".", 2)[2]
    told = {"name": name, "value": row.value, "state": row.state, "source": row.source}
    return {**told, "reason": row.reason} if row.reason else told


async def lately(agent: Agent, names: Iterable[str]) -> Spent:
    """What its hooks did in the last sessions, as far as that is stored."""
    theirs, runs, total, slowest = {*names}, 0, 0.0, (0.0, "")
    errors: Counter[str] = Counter()
    async with agent:
        try:
            store = store_of(agent)
            export = store_with(store, ExportStore).export
        except SessionError:
            return Spent()
        page, _ = await store.sessions(limit=LATELY)
        for record in [each for one in page for each in records(await export(one.id))]:
            if record.get("owner") in theirs:
                runs += 1
                seconds = float(record.get("ms", 0.0)) / 1000
                total, slowest = total + seconds, max(slowest, (seconds, str(record["event"])))
                if error := record.get("error"):
                    errors[f"{record['event']}: {error}"] += 1
    return Spent(runs, total, slowest, tuple(errors.most_common()))


def records(lines: str) -> Iterator[dict[str, Any]]:
    """What hooks did in an exported session."""
    for row in map(json.loads, lines.splitlines()[1:]):
        if row["kind"] == "hooks":
            yield from table(row.get("data")).get("records", ())


def show(told: dict[str, Any], spent: Spent, out: Output) -> None:
    """Say it in lines."""
    package = f"  {told['package']}" if told["package"] else ""
    out.raw(f"{out.styled(one_line(told['name']), 'bold')}{out.styled(package, 'dim')}")
    facts: list[tuple[str, Iterable[str]]] = [
        ("", [told["about"]]),
        ("broken", [told["error"]]),
        ("problem", told["problems"]),
        ("source", dict.fromkeys([told["source"], told["file"]])),
        ("hooks", [hook_line(each) for each in told["hooks"]]),
        *(
            (key, [", ".join(told[key])])
            for key in told
            if key != "problems" and is_names(told[key])
        ),
        ("options", [option_line(each) for each in told["options"]]),
        (f"last {LATELY} sessions", [str(spent)]),
        ("failed", [f"{counted(count, 'time')}  {error}" for error, count in spent.errors]),
    ]
    for name, lines in facts:
        for number, line in enumerate(filter(None, lines)):
            head = "" if number else name
            colour = "red" if name in ("broken", "problem", "failed") else "dim"
            out.raw(f"  {out.styled(f'{head:17}', colour)}{out.fit(one_line(line), 19)}".rstrip())


def is_names(value: object) -> bool:
    """True for what is a list of names."""
    return isinstance(value, list) and {type(each) for each in cast("list[object]", value)} == {str}


def hook_line(hook: dict[str, Any]) -> str:
    """A hook in a line."""
    tools = f"  for {', '.join(hook['tools'])}" if "tools" in hook else ""
    return f"{hook['event']}  {hook['at']}{tools}"


def option_line(option: dict[str, Any]) -> str:
    """An option in a line."""
    source = option["source"] or option["state"]
    why = f": {option['reason']}" if "reason" in option else ""
    return f"{option['name']} = {json.dumps(option['value'], ensure_ascii=False)}  {source}{why}"
