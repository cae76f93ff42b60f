"""``crow plugin``: what others wrote is shown before it is used, and pinned."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, Here, calls

from crow.testing.endpoint import Endpoint, answer

HOOKS = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}}
GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")


def write(folder: Path, files: dict[str, Any]) -> None:
    """Lay files: texts as they are, anything else as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def commit(folder: Path) -> str:
    """Have git keep a folder as it is; the commit."""
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x", "--allow-empty"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)
    found = subprocess.run([*GIT, "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True)
    return found.stdout.decode().strip()


@pytest.fixture
def market(tmp_path: Path) -> Path:
    """A repository that is a marketplace with three plugins, one of them broken."""
    folder = tmp_path / "market"
    entries = [
        {"name": "guard", "source": "./plugins/guard", "description": "Refuses all"},
        {"name": "odd", "source": {"source": "npm", "package": "odd"}},
        {"name": "out", "source": "../elsewhere"},
        {"no": "name"},
    ]
    files = {
        ".claude-plugin/marketplace.json": {"name": "shop", "plugins": entries},
        "plugins/guard/.claude-plugin/plugin.json": {"name": "guard", "version": "1"},
        "plugins/guard/hooks/hooks.json": HOOKS,
        "plugins/guard/commands/hello.md": "Say hello",
    }
    write(folder, files)
    commit(folder)
    return folder


async def added(here: Here, market: Path) -> None:
    """Have the marketplace and its guard."""
    ended = await here("plugin", "market", "add", f"file://{market}")
    assert ended.out.startswith("shop has 3 plugins")
    ended = await here("plugin", "add", "--yes", "guard@shop")
    assert ended.status == 0, ended.err


async def test_a_plugin_of_a_marketplace_is_shown_pinned_and_used(
    crow: Crow, here: Here, endpoint: Endpoint, market: Path
) -> None:
    pin = commit(market)
    await added(here, market)
    listed = await here("plugin")
    assert "guard@shop" in listed.out
    assert f"at {pin[:12]}" in listed.out
    assert "1 hook, 1 command" in listed.out
    assert "guard@shop  Refuses all" in (await here("plugin", "market", "shop")).out
    endpoint.play(calls(("LS", {"path": "."})), answer("Refused."))
    await crow("-p", "go")
    assert "blocked without a reason" in str(endpoint.requests[1].body["messages"][-1])


async def test_nothing_is_used_that_nobody_said_yes_to(here: Here, market: Path) -> None:
    await here("plugin", "market", "add", str(market))
    ended = await here("plugin", "add", "guard@shop")
    assert (ended.status, "there is nobody to ask" in ended.err) == (2, True)
    assert "hook   PreToolUse: exit 2" in ended.out
    assert (await here("plugin")).out.startswith("no plugins")


async def test_it_is_disabled_enabled_and_removed(here: Here, market: Path) -> None:
    await added(here, market)
    await here("plugin", "disable", "guard")
    assert (await here("plugin")).out == "guard@shop  disabled\n"
    await here("plugin", "enable", "guard")
    assert "1 hook" in (await here("plugin")).out
    await here("plugin", "remove", "guard@shop")
    assert (await here("plugin")).out.startswith("no plugins")
    gone = await here("plugin", "remove", "guard")
    assert (gone.status, "there is no plugin 'guard'" in gone.err) == (2, True)


async def test_an_update_says_what_is_different(here: Here, market: Path) -> None:
    await added(here, market)
    assert "guard@shop is as it is there" in (await here("plugin", "update")).out
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make"}]}]}}
    write(market, {"plugins/guard/hooks/hooks.json": hooks})
    pin = commit(market)
    ended = await here("plugin", "update", "--yes")
    assert "+ hook   Stop: make" in ended.out
    assert "- hook   PreToolUse: exit 2" in ended.out
    (told,) = [json.loads(line) for line in (await here("plugin", "--json")).out.splitlines()]
    assert (told["hooks"], told["origin"]["commit"], told["changed"]) == (
        ["Stop: make"],
        pin,
        False,
    )
    (Path.home() / ".crow/plugins/guard/commands/hello.md").write_text("Say goodbye")
    assert "changed here" in (await here("plugin")).out


async def test_a_server_is_shown_by_where_the_plugin_lies_and_an_update_leaves_it_as_it_was(
    here: Here, market: Path
) -> None:
    server = {"command": "python", "args": ["${CLAUDE_PLUGIN_ROOT}/notes.py"]}
    manifest = {"name": "guard", "mcpServers": {"notes": server}}
    write(market, {"plugins/guard/.claude-plugin/plugin.json": manifest})
    commit(market)
    await here("plugin", "market", "add", f"file://{market}")
    ended = await here("plugin", "add", "--yes", "guard@shop")
    assert "server notes: python ${CLAUDE_PLUGIN_ROOT}/notes.py" in ended.out
    write(market, {"plugins/guard/commands/hello.md": "Say goodbye"})
    commit(market)
    told = (await here("plugin", "update", "--yes")).out
    assert "  server notes: python ${CLAUDE_PLUGIN_ROOT}/notes.py" in told
    assert not [line for line in told.splitlines() if line.startswith(("+", "-"))]


async def test_a_session_goes_on_without_what_a_removed_plugin_brought(
    crow: Crow, here: Here, endpoint: Endpoint, market: Path
) -> None:
    await added(here, market)
    endpoint.play(calls(("LS", {"path": "."})), answer("Refused."))
    await crow("-p", "go")
    await here("plugin", "remove", "guard")
    endpoint.play(calls(("LS", {"path": "."})), answer("Listed."))
    ended = await crow("-p", "--continue", "again")
    assert "guard" not in ended.err
    assert "README.md" in str(endpoint.requests[3].body["messages"][-1])
    assert "no command /guard:hello" in (await crow("-p", "--continue", "/guard:hello")).err


@pytest.mark.parametrize("is_off", [False, True])
async def test_one_that_is_gone_without_having_been_removed_is_missed_aloud(
    crow: Crow, here: Here, endpoint: Endpoint, market: Path, is_off: bool
) -> None:
    await added(here, market)
    if is_off:
        await here("plugin", "disable", "guard")
    shutil.rmtree(Path.home() / ".crow/plugins/guard")
    endpoint.play(answer("Well."))
    line = "the plugin guard@shop is gone from"
    assert (line in (await crow("-p", "go")).err) != is_off
    assert (line in (await here("plugin")).err) != is_off
    assert (await here("plugin", "remove", "guard")).status == 0
    assert line not in (await here("plugin")).err


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("odd@shop", "a source of the kind 'npm' cannot be had here"),
        ("out@shop", "'../elsewhere' leads out of the marketplace"),
        ("none@shop", "the marketplace 'shop' has no plugin 'none'"),
        ("--upload-pack=x", "there is no option"),
        ("ext::sh -c id", "is no folder, no URL of a repository"),
        ("file:///nowhere/at/all", "git: "),
    ],
)
async def test_what_cannot_be_had_is_named(here: Here, market: Path, source: str, why: str) -> None:
    await here("plugin", "market", "add", str(market))
    ended = await here("plugin", "add", "--yes", source)
    assert ended.status in (1, 2)
    assert why in ended.err
    assert len(ended.err.splitlines()) == 1


async def test_a_folder_is_taken_by_itself_and_one_that_is_none_is_not(
    here: Here, market: Path, tmp_path: Path
) -> None:
    ended = await here("plugin", "add", "--yes", str(market / "plugins/guard"))
    assert "guard@inline is in use" in ended.out
    await here("plugin", "market", "add", str(market))
    twice = await here("plugin", "add", "--yes", "guard@shop")
    assert "there is a plugin 'guard@inline' already" in twice.err
    (tmp_path / "empty").mkdir()
    none = await here("plugin", "add", "--yes", str(tmp_path / "empty"))
    assert "it is no plugin" in none.err
    market_of_none = await here("plugin", "market", "add", str(tmp_path / "empty"))
    assert "it is no marketplace" in market_of_none.err


async def test_one_that_settings_enable_and_nobody_has_installed_is_listed_as_such(
    here: Here,
) -> None:
    path = Path.home() / ".claude/settings.json"
    write(path.parent, {path.name: {"enabledPlugins": {"guard@shop": True, "other@shop": False}}})
    listed = (await here("plugin")).out
    assert "guard@shop  not installed, though enabled by " in listed
    assert str(path.name) in listed
    assert "other@shop" not in listed


def shop(folder: Path, *entries: dict[str, Any], **metadata: str) -> None:
    """Make a folder a marketplace."""
    table = {"name": "shop", "plugins": [*entries], "metadata": metadata}
    write(folder, {".claude-plugin/marketplace.json": table})


async def test_what_only_a_marketplace_says_of_a_plugin_is_its_manifest(
    crow: Crow, here: Here, endpoint: Endpoint, tmp_path: Path
) -> None:
    skills = {f"skills/{name}/SKILL.md": f"It is about {name}." for name in ("tea", "rum")}
    write(tmp_path, skills)
    entry = {"name": "pots", "source": "./", "strict": False, "skills": ["./skills/tea"], **HOOKS}
    shop(tmp_path, entry)
    await here("plugin", "market", "add", str(tmp_path))
    ended = await here("plugin", "add", "--yes", "pots@shop")
    assert "hook   PreToolUse: exit 2" in ended.out
    assert "skills: 1" in ended.out
    endpoint.play(calls(("LS", {"path": "."})), answer("Refused."))
    await crow("-p", "go")
    assert "pots:tea" in str(endpoint.requests[0].body)
    assert "pots:rum" not in str(endpoint.requests[0].body)
    assert "blocked without a reason" in str(endpoint.requests[1].body["messages"][-1])
    assert "pots@shop is as it is there" in (await here("plugin", "update")).out


async def test_a_plugins_own_manifest_is_stronger_unless_the_marketplace_says_that_it_is_none(
    here: Here, market: Path
) -> None:
    server = {"command": "python", "args": ["theirs.py"]}
    manifest = {"name": "guard", "mcpServers": {"notes": {"command": "python", "args": ["own.py"]}}}
    write(market, {"plugins/guard/.claude-plugin/plugin.json": manifest})
    for strict, wanted in ((True, "own.py"), (False, "theirs.py")):
        entry = {"name": "guard", "source": "./plugins/guard", "mcpServers": {"notes": server}}
        shop(market, {**entry, "strict": strict})
        await here("plugin", "market", "add", str(market))
        assert f"server notes: python {wanted}" in (await here("plugin", "add", "guard@shop")).out


async def test_servers_of_languages_are_named_where_a_plugin_is_had(
    here: Here, market: Path
) -> None:
    servers = {"lspServers": {"clangd": {"command": "clangd"}}}
    write(market, {"plugins/lsp/README.md": "Install clangd."})
    shop(
        market,
        {"name": "guard", "source": "./plugins/guard", **servers},
        {"name": "lsp", "source": "./plugins/lsp", "strict": False, **servers},
    )
    await here("plugin", "market", "add", str(market))
    ended = await here("plugin", "add", "--yes", "guard@shop")
    assert "language server clangd: Crow starts none" in ended.out
    alone = await here("plugin", "add", "--yes", "lsp@shop")
    assert (alone.status, "it brings language servers alone (clangd)" in alone.err) == (1, True)
    assert "lsp" not in (await here("plugin")).out


async def test_a_marketplace_may_say_where_its_plugins_lie(here: Here, market: Path) -> None:
    bare = {"name": "guard", "source": "guard"}
    shop(
        market, bare, {**bare, "name": "same", "source": "./plugins/guard"}, pluginRoot="./plugins"
    )
    await here("plugin", "market", "add", str(market))
    for name in ("guard", "same"):
        assert "hook   PreToolUse: exit 2" in (await here("plugin", "add", f"{name}@shop")).out


async def test_nothing_is_written_through_a_link_of_a_plugins(
    here: Here, market: Path, tmp_path: Path
) -> None:
    index = market / ".claude-plugin/marketplace.json"
    entry = {"name": "out", "source": "./plugins/link", "skills": ["./s"]}
    index.write_text(json.dumps({**json.loads(index.read_text()), "plugins": [entry]}))
    write(market, {"plugins/link/commands/a.md": "A"})
    (outside := tmp_path / "outside").mkdir()
    (market / "plugins/link/.claude-plugin").symlink_to(outside)
    commit(market)
    await here("plugin", "market", "add", str(market))
    ended = await here("plugin", "add", "--yes", "out@shop")
    assert "its folder .claude-plugin is a link" in ended.err
    assert not [*outside.iterdir()]


@pytest.mark.parametrize("kind", ["directory", "git"])
async def test_the_marketplaces_of_claude_code_are_known(
    here: Here, market: Path, kind: str
) -> None:
    where = {"path": str(market)} if kind == "directory" else {"url": f"file://{market}"}
    known = {
        "shop": {"source": {"source": kind, **where}, "installLocation": str(market)},
        "far": {"source": {"source": "npm", "package": "far"}},
        "odd": "odd",
    }
    write(Path.home(), {".claude/plugins/known_marketplaces.json": known})
    listed = (await here("plugin", "market")).out
    assert listed == f"shop  {'file://' if kind == 'git' else ''}{market}  of Claude Code's\n"
    ended = await here("plugin", "add", "--yes", "guard@shop")
    assert ended.out.endswith("guard@shop is in use\n"), ended.err
    assert "of Claude Code's" not in (await here("plugin", "market")).out
