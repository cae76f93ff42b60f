"""opencode's configuration: model and rules are taken over, the rest is read live, or left out."""

from __future__ import annotations

from collections.abc import Iterator

from crow.cli.migration.row import Row, live, model_row
from crow.project.other_agents import AgentFolders
from crow.project.other_agents.files import pairs, table
from crow.project.other_agents.item import ItemFactory
from crow.project.other_agents.opencode import NAMES, things

TOOLS = {"edit": "Edit", "bash": "Bash", "webfetch": "WebFetch", "read": "Read", "skill": "Skill"}


def rows(place: AgentFolders) -> Iterator[Row]:
    """What becomes of it."""
    found = things(place)
    yield from live((each for each in found if each.name != "permission"), place)
    base = place.own("XDG_CONFIG_HOME", ".config") / "opencode"
    files = [(base / name, False) for name in ("config.json", *NAMES)]
    if place.project is not None:
        folders = (place.project, place.project / ".opencode")
        files += [(folder / name, True) for folder in folders for name in NAMES]
    for path, is_project in files:
        told, _ = ItemFactory("opencode", is_project).table(path)
        file = place.shown(path)
        if isinstance(model := told.get("model"), str):
            provider, _, rest = model.partition("/")
            yield model_row(provider, rest, file, is_project=is_project)
        yield from _permissions(told.get("permission"), file, is_project=is_project)


def _permissions(told: object, file: str, *, is_project: bool) -> Iterator[Row]:
    """What is denied or asked about; what is allowed only where a pattern says what."""
    if isinstance(told, str):
        yield Row("permission", "left out", f"{told!r} for everything: a mode does this", file)
    for name, each in table(told).items():
        patterns = {"*": each} if isinstance(each, str) else pairs(each)
        for pattern, verdict in patterns.items():
            yield _rule(name, pattern, verdict, file, is_project=is_project)


def _rule(name: str, pattern: str, verdict: str, file: str, *, is_project: bool) -> Row:
    tool, shown = TOOLS.get(name), f"permission {name} {pattern}"
    is_whole = pattern == "*"
    if tool is None or verdict not in ("allow", "ask", "deny"):
        return Row(shown, "left out", "Crow has no such rule", file)
    if not is_whole and tool != "Bash":
        return Row(shown, "left out", "write it in Crow's rules: crow permissions", file)
    if is_whole and (verdict == "allow" or tool == "Bash"):
        return Row(shown, "left out", f"{verdict} for every call: a mode does this", file)
    rule = tool if is_whole else f"Bash({pattern})"
    to = ("permissions", verdict)
    return Row(shown, "changed", f"{verdict} {rule}", file, to, [rule], is_project)
