"""An agent that does what its prompts say, word for word; it knows nothing of Crow.

A prompt is lines: ``ask COMMAND``, ``edit PATH`` (permission questions), ``write PATH TEXT``,
``read PATH``, ``terminal COMMAND`` (requests), ``lost ...`` (one of them without its session), ``told PATH
TEXT`` (a file that is written by a notification), ``run COMMAND`` (a call that is not asked about),
``say TEXT``, ``say-big COUNT``, ``wait`` (until it is cancelled), ``die``.
What comes in is written to the file that the first argument names.
"""

import json
import sys
from pathlib import Path

LOG = Path(sys.argv[1])
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
count = 0


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    with LOG.open("a", encoding="utf-8") as log:
        log.write(line)
    return json.loads(line)


def update(session, **fields):
    send(method="session/update", params={"sessionId": session, "update": fields})


def say(session, text):
    content = {"type": "text", "text": text}
    update(session, sessionUpdate="agent_message_chunk", content=content)


def ask(method, **params):
    """Whatever the client answers; None where the turn was cancelled first."""
    global count
    count += 1
    send(id=f"agent-{count}", method=method, params=params)
    while True:
        message = receive()
        if message.get("id") == f"agent-{count}" and "method" not in message:
            return message["error"] if "error" in message else message["result"] or {}


def call(session, word, rest):
    kind, raw = ("edit", {"file_path": rest}) if word == "edit" else ("execute", {"command": rest})
    fields = {"toolCallId": f"call-{rest}", "title": rest, "kind": kind, "rawInput": raw}
    update(session, sessionUpdate="tool_call", status="pending", **fields)
    said = {"outcome": {"optionId": "yes"}}
    if word != "run":
        named = {"toolCallId": f"call-{rest}"}
        params = {"sessionId": session, "toolCall": named, "options": OPTIONS}
        said = ask("session/request_permission", **params)
    is_allowed = said.get("outcome", {}).get("optionId") in ("yes", "always")
    done = {"toolCallId": f"call-{rest}", "status": "completed" if is_allowed else "failed"}
    raw = f"ran {rest}" if word == "run" else {"output": f"ran {rest}"}
    update(session, sessionUpdate="tool_call_update", rawOutput=raw, **done)
    say(session, f"[{word} {rest}: {json.dumps(said)}]")


def request(session, word, rest, *, is_lost=False):
    path, _, text = rest.partition(" ")
    method, params = {
        "read": ("fs/read_text_file", {"path": path}),
        "write": ("fs/write_text_file", {"path": path, "content": text}),
        "terminal": ("terminal/create", {"command": rest}),
    }[word]
    named = {} if is_lost else {"sessionId": session}
    say(session, f"[{word}: {json.dumps(ask(method, **named, **params))}]")


def wait_for_cancel(session):
    say(session, "waiting")
    while receive().get("method") != "session/cancel":
        pass
    return "cancelled"


def obey(session, line):
    word, _, rest = line.partition(" ")
    match word:
        case "ask" | "edit" | "run":
            call(session, word, rest)
        case "write" | "read" | "terminal":
            request(session, word, rest)
        case "lost":
            request(session, *rest.split(" ", 1), is_lost=True)
        case "told":
            path, _, text = rest.partition(" ")
            params = {"sessionId": session, "path": path, "content": text}
            send(method="fs/write_text_file", params=params)
        case "say-big":
            say(session, "x" * int(rest))
        case "wait":
            return wait_for_cancel(session)
        case "die":
            sys.exit(7)
        case _:
            say(session, rest or line)
    return "end_turn"


while True:
    message = receive()
    params = message.get("params", {})
    match message.get("method"):
        case "initialize":
            result = {"protocolVersion": params["protocolVersion"], "agentCapabilities": {}}
        case "session/new":
            result = {"sessionId": "s-" + Path(params["cwd"]).name}
        case "session/prompt":
            reason = "end_turn"
            for block in params["prompt"]:
                for line in block.get("text", "").splitlines():
                    reason = obey(params["sessionId"], line)
            result = {"stopReason": reason}
        case _:
            result = {"echo": params}
    if "id" in message and "method" in message:
        send(id=message["id"], result=result)
