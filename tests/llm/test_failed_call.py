"""C12: an endpoint that refuses the call that its model wrote, in place of the reply."""

from __future__ import annotations

from typing import Any

from crow import Agent, tool
from crow.testing.endpoint import Endpoint, answer, respond


@tool
def look(path: str) -> str:
    """Look at something."""
    return path


def refused(written: str) -> Any:
    error = {
        "message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": written,
    }
    return respond(400, {"error": error})


async def test_the_model_is_told_and_the_run_goes_on(endpoint: Endpoint, model: Any):
    endpoint.play(refused('<function=look{"path" "a"}</function>'), answer("I will not look."))
    reply = await Agent(model, tools=[look]).run("Look")
    assert (reply.stop_reason, reply.text) == ("end_turn", "I will not look.")
    call, result = endpoint.requests[1].body["messages"][-2:]
    assert call["tool_calls"][0]["function"]["name"] == "look"
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert "Failed to call a function" in result["content"]
    assert '<function=look{"path" "a"}' in result["content"]


async def test_a_model_that_does_not_learn_ends_the_run(endpoint: Endpoint, model: Any):
    endpoint.play(*[refused('{"name": "look", "parameters": ')] * 4)
    agent = Agent(model, tools=[look])
    reply = await agent.prompt(await agent.new_session(), "Look")
    assert reply.stop_reason == "error"
    assert "Failed to call a function" in reply.detail
    assert len(endpoint.requests) == 4
