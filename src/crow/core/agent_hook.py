"""All events as methods, for completion in editors."""

from __future__ import annotations

from typing import Any


class AgentHook:
    """All events by name, for completion in editors. Optional: any object's methods are hooks.

    A method that is not overridden is not registered. A hook names the arguments it wants, or
    takes the context: ``async def after_turn(self, session, usage)``, ``def before_tool(self,
    ctx)``. The table in ``docs/hooks.md`` says what each event offers.
    """

    def on_session_start(self, *args: Any, **kwargs: Any) -> Any:
        """A session begins (``session, source``). Text becomes context."""

    def on_session_end(self, *args: Any, **kwargs: Any) -> Any:
        """A session ends (``session, reason``)."""

    def before_run(self, *args: Any, **kwargs: Any) -> Any:
        """A prompt arrived (``session, prompt`` or ``user_input``). Text becomes context."""

    def before_command(self, *args: Any, **kwargs: Any) -> Any:
        """A slash command was recognised (``command, args``)."""

    def before_llm_request(self, *args: Any, **kwargs: Any) -> Any:
        """Before each request (``session, messages, tools, model, params``); the messages."""

    def around_llm_request(self, *args: Any, **kwargs: Any) -> Any:
        """Around each request (``messages, call_next``); returns the reply."""

    def after_llm_response(self, *args: Any, **kwargs: Any) -> Any:
        """The reply is complete, no tool has run (``reply, usage``)."""

    def before_tool(self, *args: Any, **kwargs: Any) -> Any:
        """Before each call (``call, tool, args``). Text denies it, a verdict decides."""

    def on_permission(self, *args: Any, **kwargs: Any) -> Any:
        """The user is about to be asked (``call, args, options``)."""

    def around_tool(self, *args: Any, **kwargs: Any) -> Any:
        """Around each execution (``call, args, call_next``); returns the result."""

    def after_tool(self, *args: Any, **kwargs: Any) -> Any:
        """Once per call (``call, args, result, outcome, error, duration``)."""

    def on_message(self, *args: Any, **kwargs: Any) -> Any:
        """A message was appended to the history (``session, message``)."""

    def after_turn(self, *args: Any, **kwargs: Any) -> Any:
        """Reply and results are in the history (``session, usage, results``)."""

    def on_stop(self, *args: Any, **kwargs: Any) -> Any:
        """The loop is about to end (``reply, count, cap``). Text or `Continue` goes on."""

    def around_run(self, *args: Any, **kwargs: Any) -> Any:
        """Around the loop (``call_next``)."""

    def after_loop(self, *args: Any, **kwargs: Any) -> Any:
        """The loop ended (``reply, stop_reason``); the answer is not returned yet."""

    def after_run(self, *args: Any, **kwargs: Any) -> Any:
        """The answer was returned (``reply, stop_reason``)."""

    def before_compact(self, *args: Any, **kwargs: Any) -> Any:
        """The history is about to be replaced (``messages, summary, trigger``)."""

    def after_compact(self, *args: Any, **kwargs: Any) -> Any:
        """The history was replaced (``session, summary``)."""

    def on_config_change(self, *args: Any, **kwargs: Any) -> Any:
        """Model, mode or an option is about to change (``changes``). Text denies it."""

    def on_update(self, *args: Any, **kwargs: Any) -> Any:
        """An event is on its way to the client (``update``)."""

    def on_error(self, *args: Any, **kwargs: Any) -> Any:
        """Something failed (``error, where``)."""

    def on_notification(self, *args: Any, **kwargs: Any) -> Any:
        """The user's attention is wanted (``kind, message``)."""
