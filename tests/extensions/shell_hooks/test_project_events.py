"""What happens around a conversation: setting up, files that change, directories that are added."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.extensions.shell_hooks.conftest import Stage, given, runs_of, specific

from crow.extensions import CommandsHook, FileWatcherHook, SetupHook, WorktreesHook
from crow.extensions.file_watcher import FILES
from crow.testing import ScriptedUser, call


def put(path: Path, text: str) -> None:
    """Write a file at one stroke: nobody sees it half made."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)


async def test_a_file_that_a_matcher_names_is_watched_from_the_beginning_of_the_session(
    stage: Stage,
):
    seen = stage.on("FileChanged", matcher=".envrc|.env")
    env = stage.cwd / ".env"
    async with stage.agent(hooks=[FileWatcherHook()]) as agent:
        await agent.new_session(stage.cwd)
        put(stage.cwd / "other", "not watched")
        put(env, "one")
        await runs_of(seen, 1)
        put(env, "another")
        await runs_of(seen, 2)
        env.unlink()
        events = await runs_of(seen, 3)
    assert [event["event"] for event in events] == ["add", "change", "unlink"]
    assert {event["file_path"] for event in events} == {str(env)}
    assert "permission_mode" not in events[0]


async def test_a_hook_names_further_files_to_watch_and_exports_variables(stage: Stage):
    first, second = stage.cwd / "first", stage.scripts / "second"
    stage.on("SessionStart", says=specific("SessionStart", watchPaths=[str(first), "relative"]))
    seen = stage.on(
        "FileChanged",
        'echo "export HEARD=yes" >> "$CLAUDE_ENV_FILE"',
        says=specific("FileChanged", watchPaths=[str(second)]),
    )
    script = (call("Bash", command="echo heard: $HEARD"), "Ok.")
    async with stage.agent(*script, hooks=[FileWatcherHook()]) as agent:
        session = await agent.new_session(stage.cwd)
        put(first, "")
        await runs_of(seen, 1)
        async with asyncio.timeout(30):
            while getattr(FILES.get(session), "files", {}).keys() != {str(second)}:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        put(first, "no more watched")
        put(second, "")
        await runs_of(seen, 2)
        await agent.run("Go", session=session)
    assert [event["file_path"] for event in given(seen)] == [str(first), str(second)]
    assert stage.told().endswith("heard: yes")


async def test_setup_runs_before_the_session_begins_and_its_exports_stay(stage: Stage):
    path = stage.scripts / "order"
    export = 'echo "export MADE=$(cat > /dev/null; echo up)" >> "$CLAUDE_ENV_FILE"'
    stage.handle("Setup", {"type": "command", "command": f"tee -a {path} | {export}"}, "init")
    stage.handle("SessionStart", {"type": "command", "command": f"cat >> {path}"})
    never = stage.on("Setup", matcher="maintenance")
    await stage.run(call("Bash", command="echo set $MADE"), "Ok.", hooks=[SetupHook()])
    assert [event["hook_event_name"] for event in given(path)] == ["Setup", "SessionStart"]
    assert given(path)[0]["trigger"] == "init"
    assert given(never) == []
    assert stage.told().endswith("set up")


async def test_an_added_directory_is_told_to_hooks_and_their_message_to_the_model(stage: Stage):
    more = stage.scripts / "more"
    more.mkdir()
    seen = stage.on("DirectoryAdded", says={"systemMessage": "It has its own rules."})
    async with stage.agent("Ok.", hooks=[CommandsHook()]) as agent:
        reply = await agent.run(f"/add-dir {more}", cwd=stage.cwd, client=stage.person)
        session = reply.session
        assert session.directories == (str(more),)
        await runs_of(seen, 1)
        async with asyncio.timeout(30):
            while len(session.pending) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await agent.run("Go", session=session)
    [event] = given(seen)
    assert (event["directory"], event["source"]) == (str(more), "slash_command")
    assert str(more) in stage.told(0)
    assert "It has its own rules." in stage.told(0)
    assert stage.person.notices == ""


async def test_only_a_directory_that_is_there_and_is_new_can_be_added(stage: Stage):
    seen = stage.on("DirectoryAdded")
    (stage.cwd / "inside").mkdir()
    async with stage.agent(hooks=[CommandsHook()]) as agent:
        reply = await agent.run("/add-dir nowhere", cwd=stage.cwd)
        assert "There is no directory" in reply.text
        reply = await agent.run("/add-dir inside", session=reply.session)
        assert "worked in already" in reply.text
        reply = await agent.run("/add-dir", session=reply.session)
        assert str(stage.cwd) in reply.text
    assert given(seen) == []


EXPORT = 'echo "export {0}=yes" >> "$CLAUDE_ENV_FILE"'


async def test_a_changed_directory_is_told_to_hooks_with_both_and_what_to_watch(stage: Stage):
    there = stage.cwd / "there"
    there.mkdir()
    seen = stage.on("CwdChanged", says=specific("CwdChanged", watchPaths=[str(there / "a")]))
    named = stage.on("FileChanged", matcher=".env")
    async with stage.agent(hooks=[CommandsHook(), FileWatcherHook()]) as agent:
        reply = await agent.run("/cd there", cwd=stage.cwd, client=stage.person)
        assert reply.text == f"This session works in {there} now."
        assert reply.session.cache["watched"] == {str(there / "a"), str(there / ".env")}
        await agent.run("/cd .", session=reply.session)  # begins to watch; nothing changes
        put(there / ".env", "")
        await runs_of(named, 1)
    [event] = given(seen)
    assert (event["old_cwd"], event["new_cwd"]) == (str(stage.cwd), str(there))
    assert event["cwd"] == str(there)
    assert "permission_mode" not in event
    assert stage.person.notices == ""


async def test_what_is_exported_in_a_directory_goes_with_it_and_what_came_before_stays(
    stage: Stage,
):
    (stage.cwd / "there").mkdir()
    stage.on("SessionStart", EXPORT.format("BEGUN"))
    stage.on("CwdChanged", f'[ "$(basename "$PWD")" != there ] || {EXPORT.format("THERE")}')
    show = call("Bash", command="echo begun: $BEGUN there: $THERE")
    async with stage.agent(show, "Ok.", show, "Ok.", hooks=[CommandsHook()]) as agent:
        reply = await agent.run("/cd there", cwd=stage.cwd)
        await agent.run("Go", session=reply.session)
        await agent.run("/cd ..", session=reply.session)
        await agent.run("Go", session=reply.session)
    assert stage.told(1).endswith("begun: yes there: yes")
    assert stage.told(3).endswith("begun: yes there:")


async def test_the_words_of_a_hook_that_refuses_a_directory_are_the_users_and_it_is_changed(
    stage: Stage,
):
    (stage.cwd / "there").mkdir()
    stage.on("CwdChanged", stderr="mind the gap", code=2)
    async with stage.agent(hooks=[CommandsHook()]) as agent:
        reply = await agent.run("/cd there", cwd=stage.cwd, client=stage.person)
        assert reply.session.cwd == str(stage.cwd / "there")
    assert stage.person.notices == "CwdChanged hook: mind the gap"


async def test_a_hook_prints_where_it_made_a_worktree_and_hears_that_it_is_to_go(stage: Stage):
    tree = stage.scripts / "tree"
    git = f"git -C {stage.cwd}"
    who = "-c user.name=Ada -c user.email=ada@example.org"
    made = f"{git} init -q && {git} {who} commit -q --allow-empty -m First"
    made += f" && {git} worktree add -q {tree} && echo made && echo {tree}"
    seen = stage.on("WorktreeCreate", made)
    left = stage.on("WorktreeRemove", f"{git} worktree remove {tree}")
    async with stage.agent(hooks=[WorktreesHook()]) as agent:
        with ScriptedUser("Remove it") as user:
            session = await agent.new_session(stage.cwd, client=user)
            assert "Work is in" in (await agent.run("/worktree feat", session=session)).text
            assert session.cwd == str(tree)
            assert "is gone" in (await agent.run("/worktree remove", session=session)).text
    assert [(each["hook_event_name"], each["name"]) for each in given(seen)] == [
        ("WorktreeCreate", "feat")
    ]
    assert [each["worktree_path"] for each in given(left)] == [str(tree)]
    assert not tree.exists()


async def test_a_hook_that_fails_says_that_there_is_to_be_no_worktree(stage: Stage):
    stage.on("WorktreeCreate", stderr="not on Fridays", code=1)
    async with stage.agent(hooks=[WorktreesHook()]) as agent:
        reply = await agent.run("/worktree feat", cwd=stage.cwd)
    assert "not on Fridays" in reply.text
    assert reply.session.cwd == str(stage.cwd)
