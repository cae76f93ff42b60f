"""The protocol's compatibility kit, requirement by requirement, held by a ``crow acp`` process.

A test is named after the requirement (`ACP-<AREA>-<NNN>` in the kit) that it holds. The client
announces nothing, as the kit's does, and one process serves all tests that need none of their own.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.testing import FakeEditor, ScriptedModel, official_schema, schema

CROW = str(Path(sys.executable).with_name("crow"))
STOPS = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
HISTORY = {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"}
PATIENCE = 30
KEPT = ("PATH", "LANG", "LC_", "COVERAGE")
NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
KIT = """
TRANSPORT-001 TRANSPORT-002 JSONRPC-001 JSONRPC-002 JSONRPC-003 JSONRPC-004 JSONRPC-005
INIT-001 INIT-002 INIT-003 INIT-004 SCHEMA-001 SCHEMA-002 SESSION-001 SESSION-002
PROMPT-001 PROMPT-002 PROMPT-003 CANCEL-001 CANCEL-002 LOAD-001 LOAD-002 LOAD-003
RESUME-001 RESUME-002 LIST-001 LIST-002 DELETE-001 DELETE-002 CLOSE-001 CLOSE-002
ADDDIRS-001 MODES-001 MODES-002 CONFIG-001 CONFIG-002 CONFIG-003
PROMPTCAP-001 PROMPTCAP-002 PROMPTCAP-003 AUTH-001 AUTH-002 AUTH-003 AUTH-004 AUTH-005
CLIENTCAP-001 CLIENTCAP-002 CLIENTCAP-003 EXT-001 META-001 ERROR-001 SHUTDOWN-001
STDERR-001 INFO-PARSE-001 INFO-INVALIDREQ-001 INFO-UNKNOWNSESSION-001
""".split()

Message = dict[str, Any]


class Client:
    """A client without any capability that keeps every line; permissions are given once."""

    def __init__(self, cwd: Path, *options: str) -> None:
        own = {
            "HOME": str(cwd / "home"),
            "OLLAMA_HOST": "127.0.0.1:9",
            "CROW_SANDBOX": "off",
            **NO_KEYRING,
        }
        env = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        self.cwd = cwd
        self.lines: list[bytes] = []
        self.messages: list[Message] = []
        self.methods: dict[Any, str] = {}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [CROW, "acp", *options],
            cwd=cwd,
            env={**env, **own},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )
        self._arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._arrived.put(line)

    def write(self, data: bytes) -> None:
        """Send anything."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None, **fields: Any) -> None:
        """Send a notification, or with an ``id`` a request."""
        if "id" in fields:
            self.methods[fields["id"]] = method
        message = {"jsonrpc": "2.0", "method": method, **fields}
        message |= {} if params is None else {"params": params}
        self.write(json.dumps(message).encode() + b"\n")

    def request(self, method: str, params: Any = None) -> int:
        """Send a request; its id."""
        request_id = len(self.methods)
        self.send(method, params, id=request_id)
        return request_id

    def until(self, is_met: Callable[[Message], bool]) -> Message:
        """The first message that is there already, or comes, and meets a condition."""
        for message in self.messages:
            if is_met(message):
                return message
        while not is_met(message := self._next()):
            pass
        return message

    def _next(self) -> Message:
        line = self._arrived.get(timeout=PATIENCE)
        self.lines.append(line)
        message: Message = json.loads(line)
        self.messages.append(message)
        if message.get("method") == "session/request_permission":
            outcome = {"outcome": {"outcome": "selected", "optionId": allowed(message)}}
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": outcome}
            self.write(json.dumps(reply).encode() + b"\n")
        return message

    def response(self, request_id: Any) -> Message:
        """The response to a request."""
        return self.until(lambda m: "method" not in m and m.get("id") == request_id)

    def ask(self, method: str, params: Any = None) -> Message:
        """Send a request; its response."""
        return self.response(self.request(method, params))

    def result(self, method: str, params: Any = None) -> Message:
        """Send a request; its result."""
        return self.ask(method, params)["result"]

    def greet(self, **fields: Any) -> Message:
        """Initialize."""
        return self.result("initialize", {"protocolVersion": 1, "clientCapabilities": {}, **fields})

    def place(self, **fields: Any) -> Message:
        """The parameters that open a session."""
        return {"cwd": str(self.cwd), "mcpServers": [], **fields}

    def new_session(self) -> str:
        """Open a session."""
        return self.result("session/new", self.place())["sessionId"]

    def prompt(self, session: str, said: str, *blocks: Message, **fields: Any) -> Message:
        """Send a prompt and wait for its end; the response."""
        text = {"type": "text", "text": said}
        params = {"sessionId": session, "prompt": [text, *blocks], **fields}
        return self.ask("session/prompt", params)

    def begin(self, session: str) -> int:
        """Begin a turn that does not end by itself; the id of its request."""
        words = [{"type": "text", "text": "Run `sleep 600`"}]
        request_id = self.request("session/prompt", {"sessionId": session, "prompt": words})
        self.until(
            lambda m: (
                (m.get("id") == request_id and "result" in m)
                or (said_in(m) == session and update_of(m).get("status") == "in_progress")
            )
        )
        return request_id

    def since(self, response: Message) -> list[Message]:
        """What came behind a response, up to the answer to one more request that takes its time."""
        self.ask("session/list", {})
        return self.messages[self.messages.index(response) + 1 : -1]

    def close(self) -> tuple[int, bytes]:
        """Close the input; the exit status, and what was said on standard error."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        said = self.process.stderr.read()
        return self.process.wait(PATIENCE), said

    def end(self) -> None:
        """Leave nothing behind."""
        with self.process:
            self.process.kill()
        self._reader.join(PATIENCE)


def allowed(request: Message) -> str:
    """The option that permits something once."""
    options = request["params"]["options"]
    return next(option["optionId"] for option in options if option["kind"] == "allow_once")


def update_of(message: Message) -> Message:
    """What a notification tells of a session."""
    return message.get("params", {}).get("update", {})


def said_in(message: Message) -> str | None:
    """The session that a notification tells of."""
    return message["params"]["sessionId"] if message.get("method") == "session/update" else None


@contextmanager
def started(cwd: Path, *options: str) -> Iterator[Client]:
    """A process of its own."""
    client = Client(cwd, *options)
    try:
        yield client
    finally:
        client.end()


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One process for all."""
    with started(tmp_path_factory.mktemp("kit")) as client:
        yield client


@pytest.fixture
def client(process: Client) -> Client:
    """The client, initialized without any capability."""
    process.greet()
    return process


@pytest.mark.rule("conformance with others' clients")
def test_every_requirement_of_the_kit_has_a_test() -> None:
    tests = [name for name in globals() if name.startswith("test_")]
    names = {each: f"test_{each.lower().replace('-', '_')}_" for each in KIT}
    missing = [each for each, name in names.items() if not any(t.startswith(name) for t in tests)]
    assert missing == []


# transport, JSON-RPC, schema: of a whole exchange


@pytest.fixture(scope="module")
def exchange(process: Client) -> Client:
    """The same client after a bit of everything, errors included."""
    process.greet()
    session = process.new_session()
    process.prompt(session, "Create a file called test.txt")
    process.prompt(session, "Run `echo ä; exit 3`")
    process.ask("session/load", process.place(sessionId=session))
    process.ask("session/set_mode", {"sessionId": session, "modeId": "no such"})
    process.ask("session/new", {"cwd": 7})
    process.ask("no/such/method", {})
    process.ask("session/list", {})
    return process


def test_transport_001_every_line_is_one_message(exchange: Client) -> None:
    assert exchange.lines
    for line in exchange.lines:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        assert ("method" in message) != ("id" in message and "params" not in message)


def test_transport_002_every_line_is_utf_8(exchange: Client) -> None:
    assert "ä" in b"".join(exchange.lines).decode("utf-8")


@pytest.mark.parametrize("request_id", [4711, "4711", "seven", -1, ""])
def test_jsonrpc_001_the_id_comes_back_as_it_was(client: Client, request_id: Any) -> None:
    client.send("session/list", {}, id=request_id)
    answer = client.until(lambda m: type(m.get("id")) is type(request_id) and m["id"] == request_id)
    assert "sessions" in answer["result"]


def test_jsonrpc_002_a_response_has_a_result_or_an_error(exchange: Client) -> None:
    responses = [message for message in exchange.messages if "method" not in message]
    errors = [message["error"] for message in responses if "error" in message]
    assert len(errors) >= 3
    assert all(("result" in message) != ("error" in message) for message in responses)
    assert all(type(e["code"]) is int and type(e["message"]) is str for e in errors)


def test_jsonrpc_003_a_notification_gets_no_response(client: Client) -> None:
    before = len(client.messages)
    for method in ("no/such", "_no/such", "session/cancel", "session/new", "initialize"):
        client.send(method, {"sessionId": "no such"})
    fence = client.ask("no/such")
    assert [message for message in client.messages[before:] if "method" not in message] == [fence]


def test_jsonrpc_004_an_unknown_method_is_32601(client: Client) -> None:
    assert client.ask("no/such/method", {})["error"]["code"] == -32601


def test_jsonrpc_005_the_connection_works_after_an_error(client: Client) -> None:
    assert "error" in client.ask("session/new", {"cwd": 7})
    assert client.new_session()


def test_schema_001_every_message_fits_the_schema(exchange: Client) -> None:
    for message in exchange.messages:
        method = None if "method" in message else exchange.methods.get(message["id"])
        assert official_schema.fault(message, method) is None
        assert schema.fault(message, method) is None


def test_schema_002_no_message_has_a_root_key_of_our_own(exchange: Client) -> None:
    results = [message for message in exchange.messages if "result" in message]
    strange = {"result": {**results[0]["result"], "crow": 1}}
    assert schema.fault(strange, "initialize") is not None
    for message in results:
        assert schema.fault(message, exchange.methods[message["id"]]) is None


def test_error_001_an_errors_message_is_one_line(exchange: Client) -> None:
    errors = [message["error"] for message in exchange.messages if "error" in message]
    assert errors
    assert all(error["message"].strip() and "\n" not in error["message"] for error in errors)


# initialize


def test_init_001_initialize_succeeds(client: Client) -> None:
    assert type(client.greet()["protocolVersion"]) is int


def test_init_002_version_1_is_answered_with_1(client: Client) -> None:
    assert client.greet()["protocolVersion"] == 1


def test_init_003_a_version_of_the_future_is_not_echoed(client: Client) -> None:
    info = {"name": "future", "version": "1"}
    answered = client.greet(protocolVersion=65535, info=info, capabilities={})["protocolVersion"]
    assert type(answered) is int
    assert 1 <= answered < 65535


def test_init_004_the_agent_tells_its_name_and_version(client: Client) -> None:
    info = client.greet()["agentInfo"]
    assert info["name"]
    assert info["version"]


# sessions


def test_session_001_a_session_has_an_id(client: Client) -> None:
    assert client.new_session()


def test_session_002_two_sessions_have_two_ids(client: Client) -> None:
    assert client.new_session() != client.new_session()


def test_load_001_a_session_is_loaded(client: Client) -> None:
    session = client.new_session()
    assert isinstance(client.result("session/load", client.place(sessionId=session)), dict)


def test_load_002_the_replay_ends_before_the_answer(client: Client) -> None:
    session = client.new_session()
    client.prompt(session, "Read the file test.txt")
    before = len(client.messages)
    loaded = client.ask("session/load", client.place(sessionId=session))
    replayed = client.messages[before : client.messages.index(loaded)]
    assert {update_of(m).get("sessionUpdate") for m in replayed} >= {"user_message_chunk"}
    later = [update_of(m)["sessionUpdate"] for m in client.since(loaded) if said_in(m) == session]
    assert not set(later) & {*HISTORY, "tool_call", "tool_call_update", "plan"}


def test_load_003_the_answer_is_an_object(client: Client) -> None:
    session = client.new_session()
    assert isinstance(client.ask("session/load", client.place(sessionId=session))["result"], dict)


def test_resume_001_a_session_is_resumed_without_naming_servers(client: Client) -> None:
    session = client.new_session()
    params = {"sessionId": session, "cwd": str(client.cwd)}
    assert isinstance(client.result("session/resume", params), dict)


def test_resume_002_no_history_comes_before_the_answer(client: Client) -> None:
    session = client.new_session()
    client.prompt(session, "Read the file test.txt")
    before = len(client.messages)
    client.result("session/resume", client.place(sessionId=session))
    shown = {update_of(message).get("sessionUpdate") for message in client.messages[before:]}
    assert not shown & HISTORY


def test_list_001_sessions_are_listed(client: Client) -> None:
    session = client.new_session()
    assert session in [each["sessionId"] for each in client.result("session/list", {})["sessions"]]


def test_list_002_an_unknown_directory_has_an_empty_list(client: Client) -> None:
    assert client.result("session/list", {"cwd": "/no/such"})["sessions"] == []


def test_delete_001_a_session_is_deleted(client: Client) -> None:
    assert client.result("session/delete", {"sessionId": client.new_session()}) == {}


def test_delete_002_a_session_that_is_gone_is_deleted_again(client: Client) -> None:
    session = client.new_session()
    for gone in (session, session, "no such"):
        assert client.result("session/delete", {"sessionId": gone}) == {}


def test_close_001_an_idle_session_is_closed(client: Client) -> None:
    assert client.result("session/close", {"sessionId": client.new_session()}) == {}


def test_close_002_closing_cancels_what_runs(client: Client) -> None:
    session = client.new_session()
    turn = client.begin(session)
    assert client.result("session/close", {"sessionId": session}) == {}
    assert client.response(turn)["result"]["stopReason"] == "cancelled"


def test_adddirs_001_more_directories_are_accepted(client: Client) -> None:
    params = client.place(additionalDirectories=[str(client.cwd.parent)])
    assert client.result("session/new", params)["sessionId"]


# modes and options


def test_modes_001_the_current_mode_is_one_of_them(client: Client) -> None:
    modes = client.result("session/new", client.place())["modes"]
    assert modes["currentModeId"] in [mode["id"] for mode in modes["availableModes"]]


def test_modes_002_another_mode_is_set(client: Client) -> None:
    opened = client.result("session/new", client.place())
    modes, session = opened["modes"], opened["sessionId"]
    other = next(m["id"] for m in modes["availableModes"] if m["id"] != modes["currentModeId"])
    assert client.result("session/set_mode", {"sessionId": session, "modeId": other}) == {}
    told = client.until(lambda m: said_in(m) == session and "currentModeId" in update_of(m))
    assert update_of(told)["currentModeId"] == other


def test_config_001_every_value_is_one_of_its_options(client: Client) -> None:
    options = client.result("session/new", client.place())["configOptions"]
    assert options
    for option in options:
        assert option["currentValue"] in [value["value"] for value in option["options"]]


def test_config_002_a_change_is_answered_with_the_complete_list(client: Client) -> None:
    opened = client.result("session/new", client.place())
    change = {"sessionId": opened["sessionId"], "configId": "mode", "value": "plan"}
    listed = client.result("session/set_config_option", change)["configOptions"]
    assert [each["id"] for each in listed] == [each["id"] for each in opened["configOptions"]]
    assert {each["id"]: each["currentValue"] for each in listed}["mode"] == "plan"


def test_config_003_no_boolean_is_offered_to_a_client_that_shows_none(client: Client) -> None:
    options = client.result("session/new", client.place())["configOptions"]
    assert not [option for option in options if option["type"] == "boolean"]


# prompts


def test_prompt_001_a_prompt_ends_with_a_reason(client: Client) -> None:
    answered = client.prompt(client.new_session(), "Read the file test.txt")
    assert answered["result"]["stopReason"] in STOPS


def test_prompt_002_every_update_names_the_session(client: Client) -> None:
    session = client.new_session()
    client.until(lambda m: said_in(m) == session)
    before = len(client.messages)
    client.prompt(session, "Read the file test.txt")
    told = [m for m in client.messages[before:] if "sessionUpdate" in update_of(m)]
    later = "available_commands_update"  # of sessions that other tests have opened
    updates = [m for m in told if update_of(m)["sessionUpdate"] != later]
    assert updates
    assert {said_in(message) for message in updates} == {session}


def test_prompt_003_a_link_is_accepted(client: Client) -> None:
    link = {"type": "resource_link", "uri": "file:///no/such.txt", "name": "such.txt"}
    answered = client.prompt(client.new_session(), "Read the file test.txt", link)
    assert answered["result"]["stopReason"] == "end_turn"


CAPABLE = {
    "image": {"type": "image", "mimeType": "image/png", "data": "aGk="},
    "audio": {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
    "embeddedContext": {"type": "resource", "resource": {"uri": "file:///n.txt", "text": "note"}},
}


class Hearing(ScriptedModel):
    """A model that takes sounds."""

    inputs = frozenset({"audio"})


def accepted(client: Client, capability: str) -> None:
    assert client.greet()["agentCapabilities"]["promptCapabilities"][capability] is True
    answered = client.prompt(client.new_session(), "Read the file test.txt", CAPABLE[capability])
    assert answered["result"]["stopReason"] == "end_turn"


def test_promptcap_001_a_picture_is_accepted(client: Client) -> None:
    accepted(client, "image")


async def test_promptcap_002_sound_is_accepted_where_it_is_announced(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=Hearing("Birdsong."))):
        greeting = editor.wire.received[0]["result"]
        assert greeting["agentCapabilities"]["promptCapabilities"]["audio"] is True
        session = await editor.new_session(tmp_path)
        answered = await editor.prompt(session, "What is this?", CAPABLE["audio"])
    assert answered.stop_reason == "end_turn"


def test_promptcap_002_sound_is_left_out_where_it_is_not(client: Client) -> None:
    assert client.greet()["agentCapabilities"]["promptCapabilities"]["audio"] is False
    answered = client.prompt(client.new_session(), "Read the file test.txt", CAPABLE["audio"])
    assert answered["result"]["stopReason"] == "end_turn"


def test_promptcap_003_an_embedded_resource_is_accepted(client: Client) -> None:
    accepted(client, "embeddedContext")


def test_cancel_001_a_cancelled_prompt_says_so(client: Client) -> None:
    session = client.new_session()
    turn = client.begin(session)
    client.send("session/cancel", {"sessionId": session})
    assert client.response(turn)["result"]["stopReason"] == "cancelled"


def test_cancel_002_nothing_follows_the_answer(client: Client) -> None:
    session = client.new_session()
    turn = client.begin(session)
    client.send("session/cancel", {"sessionId": session})
    later = client.since(client.response(turn))
    assert [update_of(message) for message in later if said_in(message) == session] == []


# authentication


def test_auth_001_the_methods_have_ids_of_their_own(client: Client) -> None:
    ids = [method["id"] for method in client.greet(clientCapabilities=TERMINAL)["authMethods"]]
    assert len(ids) == len(set(ids)) == 2


TERMINAL = {"auth": {"terminal": True}}


def test_auth_002_no_terminal_is_offered_to_a_client_that_has_none(client: Client) -> None:
    kinds = [method.get("type") for method in client.greet()["authMethods"]]
    assert kinds == ["agent"]


def test_auth_003_sessions_open_after_authenticating(client: Client) -> None:
    for method in client.greet()["authMethods"]:
        assert client.result("authenticate", {"methodId": method["id"]}) == {}
    assert client.new_session()


def test_auth_004_logging_out_succeeds(client: Client) -> None:
    assert client.greet()["agentCapabilities"]["auth"]["logout"] == {}
    assert client.result("logout", {}) == {}


@pytest.mark.slow
def test_auth_005_a_session_needs_no_authentication(tmp_path: Path) -> None:
    """There is always a method, and a session opens all the same where no key is."""
    with started(tmp_path, "--model", "openai/gpt-5") as client:
        client.greet()
        assert client.new_session()


# what the client did not announce


@pytest.fixture(scope="module")
def asked(exchange: Client) -> list[str]:
    """Every method that the agent asked for while it wrote a file and ran a command."""
    return [message["method"] for message in exchange.messages if "id" in message and "method" in message]  # fmt: skip


def test_clientcap_001_no_file_is_asked_for(asked: list[str]) -> None:
    assert asked
    assert not [method for method in asked if method.startswith("fs/")]


def test_clientcap_002_no_terminal_is_asked_for(asked: list[str]) -> None:
    assert asked
    assert not [method for method in asked if method.startswith("terminal/")]


def test_clientcap_003_no_form_is_asked_for(asked: list[str]) -> None:
    assert set(asked) == {"session/request_permission"}


# extensions


def test_ext_001_an_unknown_request_of_somebodys_own_is_answered(client: Client) -> None:
    assert "error" in client.ask("_somebody/asks", {"x": 1})


def test_meta_001_a_prompt_with_meta_is_accepted(client: Client) -> None:
    meta = {"traceparent": "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01", "x": {}}
    answered = client.prompt(client.new_session(), "Read the file test.txt", _meta=meta)
    assert answered["result"]["stopReason"] == "end_turn"


# the end, and what the protocol leaves open


def test_shutdown_001_the_end_of_input_is_the_end(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        client.greet()
        client.new_session()
        status, _said = client.close()
    assert status == 0


@pytest.mark.slow
def test_stderr_001_nothing_is_said_beside_where_nothing_is_wrong(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        client.greet()
        client.prompt(client.new_session(), "Read the file test.txt")
        _status, said = client.close()
    assert said == b""


def test_info_parse_001_what_is_no_json_is_32700(client: Client) -> None:
    client.write(b"{broken\n")
    answer = client.until(lambda m: m.get("error", {}).get("code") == -32700)
    assert answer["id"] is None
    assert client.new_session()


def test_info_invalidreq_001_what_is_no_request_is_32600(client: Client) -> None:
    client.write(b'{"foo": "bar"}\n')
    answer = client.until(lambda m: m.get("error", {}).get("code") == -32600)
    assert answer["id"] is None
    assert client.new_session()


def test_info_unknownsession_001_a_session_that_there_is_not_is_32002(client: Client) -> None:
    assert client.prompt("no such", "Hello?")["error"]["code"] == -32002
