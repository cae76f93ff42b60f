"""A key that Crow knows, looked for in all that it leaves behind: requests, stores, hooks, outputs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, calls

from crow.testing.endpoint import Endpoint, answer, respond

KEY = "canary-5d1f8c3a7b"
SERVER_KEY = "canary-of-a-server-77aa"
SAID = answer("done")


@pytest.fixture
def settled(home: Path, project: Path) -> Path:
    """Keys in the user's settings, commands that print them, and a hook that keeps what it hears."""
    heard = project / "heard"
    hook = {"hooks": [{"type": "command", "command": f"cat >> {heard}; env >> {heard}"}]}
    table: dict[str, Any] = {
        "permissions": {"defaultMode": "bypassPermissions"},
        "hooks": {name: [hook] for name in ("PreToolUse", "PostToolUse", "PostToolUseFailure")},
        "mcpServers": {"it": {"command": "false", "env": {"SERVICE_TOKEN": SERVER_KEY}}},
    }
    path = home / ".crow/settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(table))
    (project / "plain.txt").write_text(f"key={KEY} and {SERVER_KEY}\n")
    return heard


def leaks(home: Path) -> list[str]:
    """The files below a home, the user's own settings aside, that have a key in them."""
    found: list[str] = []
    for path in home.rglob("*"):
        if path.is_file() and path.name != "settings.json":
            data = path.read_bytes()
            if KEY.encode() in data or SERVER_KEY.encode() in data:
                found.append(str(path))
    return found


@pytest.mark.slow
async def test_no_sink_gets_a_key_that_a_tool_has_come_across(
    crow: Crow, endpoint: Endpoint, settled: Path, home: Path
) -> None:
    endpoint.play(
        calls(
            ("Bash", {"command": "env; cat plain.txt ~/.crow/settings.json; echo err >&2; exit 3"}),
            ("Bash", {"command": "for i in 1 2 3; do cat plain.txt; sleep 0.1; done"}),
            ("Read", {"file_path": "plain.txt"}),
            ("Grep", {"pattern": "key", "output_mode": "content"}),
            ("Read", {"file_path": f"missing-{KEY}"}),
        ),
        SAID,
    )
    ended = await crow("run", "--json", "Look", CROW_API_KEY=KEY)
    assert ended.status == 0, ended.err
    tried = json.dumps(endpoint.requests[1].body)
    assert "(hidden)" in tried
    results = [m["content"] for m in endpoint.requests[1].body["messages"] if m["role"] == "tool"]
    assert len(results) == 5
    assert not [each for each in results if KEY in str(each) or SERVER_KEY in str(each)]
    ends = [each for each in ended.events if "result" in json.dumps(each)]
    assert ends
    for each in ended.events:  # what the model itself has sent is told as it was
        if f"missing-{KEY}" not in json.dumps(each):
            assert KEY not in json.dumps(each)
            assert SERVER_KEY not in json.dumps(each)
    heard = settled.read_text()
    assert "PostToolUse" in heard
    assert KEY not in heard.replace(f"missing-{KEY}", "")
    assert SERVER_KEY not in heard


@pytest.mark.slow
async def test_neither_stores_nor_exports_nor_errors_have_it(
    crow: Crow, endpoint: Endpoint, settled: Path, home: Path
) -> None:
    del settled
    endpoint.play(calls(("Bash", {"command": "cat plain.txt"})), SAID)
    await crow("run", "Look", CROW_API_KEY=KEY)
    assert leaks(home) == []
    shown = await crow("sessions", "show", "--json", CROW_API_KEY=KEY)
    assert KEY not in shown.out + shown.err
    endpoint.play(respond(401, {"error": {"message": f"bad key {KEY}"}}))
    refused = await crow("run", "Look", CROW_API_KEY=KEY)
    assert refused.status != 0
    assert "bad key" in refused.err
    assert KEY not in refused.out + refused.err
    assert leaks(home) == []
    for argv in (
        ["config"],
        ["config", "--json"],
        ["hooks", "explain"],
        ["models"],
        ["ext", "list"],
    ):
        told = await crow(*argv, CROW_API_KEY=KEY)
        assert KEY not in told.out + told.err
        assert SERVER_KEY not in told.out + told.err


@pytest.mark.slow
async def test_an_export_has_no_key_though_the_model_itself_has_written_it(
    crow: Crow, endpoint: Endpoint, settled: Path
) -> None:
    del settled
    endpoint.play(calls(("Bash", {"command": f"echo {KEY} > plain2.txt"})), SAID)
    await crow("run", "Look", CROW_API_KEY=KEY)
    listed = await crow("sessions", "--json", CROW_API_KEY=KEY)
    session = json.loads(listed.out.splitlines()[0])["id"]
    for form in ("lines", "atif", "claude"):
        told = await crow("sessions", "export", session, "--format", form, CROW_API_KEY=KEY)
        assert "(hidden)" in told.out
        assert KEY not in told.out


@pytest.mark.slow
async def test_a_key_that_a_command_prints_or_that_was_stored_is_known_as_well(
    crow: Crow, endpoint: Endpoint, settled: Path, home: Path
) -> None:
    table = json.loads((home / ".crow/settings.json").read_text())
    helper = {"apiKeyHelper": f"printf {KEY}"}
    (home / ".crow/settings.json").write_text(json.dumps({**table, **helper}))
    stored = await crow("login", "openai", stdin=f"{SERVER_KEY}2\n")
    assert stored.status == 0, stored.err
    kept = [path for path in leaks(home) if "credentials" in path]
    assert kept
    look = "cat plain.txt; cat $(find ~ -name credentials.json)"
    endpoint.play(
        calls(("Bash", {"command": look}), ("Grep", {"pattern": "k", "path": str(home)})), SAID
    )
    ended = await crow("run", "--json", "Look", CROW_API_KEY="")
    assert ended.status == 0, ended.err
    assert endpoint.requests[1].headers["authorization"] == f"Bearer {KEY}"
    told = json.dumps(endpoint.requests[1].body)
    assert "(hidden)2" not in told
    for text in (told, ended.out, ended.err, settled.read_text()):
        assert KEY not in text
        assert SERVER_KEY not in text
    assert leaks(home) == kept


@pytest.mark.slow
async def test_a_key_in_pieces_is_shown_in_no_piece_and_kept_in_no_file(
    crow: Crow, endpoint: Endpoint, settled: Path, home: Path
) -> None:
    del settled
    halves = f"printf {KEY[:7]}; sleep 0.4; printf {KEY[7:]}; sleep 0.4; echo"
    long = f"for i in $(seq 9000); do echo {KEY[:5]}''{KEY[5:]}; done"
    endpoint.play(
        calls(
            ("Bash", {"command": halves}),
            ("Bash", {"command": long}),
            ("Bash", {"command": f"{halves}; sleep 30", "run_in_background": True}),
        ),
        calls(("BashOutput", {"bash_id": "bash_1", "wait": 200})),
        calls(("BashOutput", {"bash_id": "bash_1", "wait": 1500})),
        SAID,
    )
    ended = await crow("run", "--json", "Look", CROW_API_KEY=KEY)
    assert ended.status == 0, ended.err
    told = "".join(each["text"] for each in ended.events if each["type"] == "tool_progress")
    assert "(hidden)" in told
    assert KEY[:7] not in told
    assert KEY[7:] not in told
    results = [m["content"] for m in endpoint.requests[3].body["messages"] if m["role"] == "tool"]
    assert not [each for each in results if KEY[:7] in each or KEY[7:] in each]
    assert [path for path in home.rglob("outputs/*/*") if b"(hidden)" in path.read_bytes()]
    assert leaks(home) == []


@pytest.mark.slow
async def test_a_key_is_known_as_programs_print_it(
    crow: Crow, endpoint: Endpoint, settled: Path, home: Path
) -> None:
    """In Base64, of ``user:key`` too and in lines, in hexadecimal digits, in addresses, in JSON."""
    del settled, home
    key = 'sk-q/7+Zo="x' + "aB3" * 25
    command = """
        python3 - <<'EOF'
import base64, json, pathlib, urllib.parse
key = "sk-q/7+Zo=" + chr(34) + "x" + "aB3" * 25
for who in ("", "x:", "me:", "user:", "longer-name:"):
    for code in (base64.b64encode, base64.urlsafe_b64encode):
        print("basic", code((who + key).encode()).decode(), code((who + key + "@h").encode()).decode())
print(base64.encodebytes(key.encode()).decode(), "hex", key.encode().hex(), key.encode().hex().upper())
print("url", urllib.parse.quote(key), urllib.parse.quote(key, safe=""), urllib.parse.urlencode({"k": key}))
print("json", json.dumps(key))
EOF
    """
    endpoint.play(calls(("Bash", {"command": command})), SAID)
    ended = await crow("run", "--json", "Look", CROW_API_KEY=key)
    assert ended.status == 0, ended.err
    [told] = [m["content"] for m in endpoint.requests[1].body["messages"] if m["role"] == "tool"]
    lines = told.splitlines()
    assert told.count("(hidden)") >= 27, told
    assert max(map(len, lines)) < 80, told
    pieces = ("aB3aB3", base64.b64encode(b"aB3aB3").decode(), b"aB3aB3".hex())
    assert not [each for each in pieces if each.lower() in told.lower()], told
