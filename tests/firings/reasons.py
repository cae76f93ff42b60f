"""Why an event is silent on a path, in words that a user understands."""

from __future__ import annotations

from collections.abc import Mapping

EVERYWHERE = "*"
"""Stands for every path that a reason does not name."""
RUNS = (
    "around_run before_llm_request around_llm_request on_llm_request after_llm_response"
    " before_tool on_permission around_tool after_tool on_message after_turn on_stop"
    " on_task_created on_task_completed on_front_matter on_elicitation on_elicitation_result"
    " on_instructions_loaded PreToolUse PermissionRequest PermissionDenied PostToolUse"
    " PostToolUseFailure PostToolBatch Stop"
    " TaskCreated TaskCompleted Elicitation ElicitationResult InstructionsLoaded MessageDisplay"
)
SURROUNDINGS = (
    "before_command on_config_change on_file_changed on_directory_added on_elicitation"
    " on_elicitation_result UserPromptSubmit UserPromptExpansion ConfigChange PreModelSwitch"
    " PostModelSwitch FileChanged on_cwd_changed CwdChanged DirectoryAdded Elicitation ElicitationResult"
)
BEGINNING = "on_setup Setup on_session_start"
ENDS = "on_session_end SessionEnd"
TREES = "on_worktree_create on_worktree_remove WorktreeCreate WorktreeRemove"
ADDED = f"on_cwd_changed CwdChanged on_directory_added DirectoryAdded {TREES}"

REASONS: Mapping[str, Mapping[str, str]] = {
    "The session begins before that, or ends after it.": {
        "compact": BEGINNING,
        "command": BEGINNING + " on_session_end",
        "cancel": f"{BEGINNING} {ENDS}",
        "fail": f"{BEGINNING} {ENDS}",
    },
    "The command answers in the model's place: there is no run of the loop, no message, no call.": {
        "command": RUNS,
    },
    "It is the affair of the session that a person talks to: its prompts, its settings, its files, "
    "the questions of its servers.": {"sub": f"on_setup Setup {SURROUNDINGS} {TREES}"},
    "A sub-agent is no session of its own: `SubagentStart` and `SubagentStop` tell of it, and a "
    "failure is the result of the call that began it.": {
        "sub": "SessionStart SessionEnd Stop StopFailure"
    },
    "Only in a sub-agent's session (column sub).": {
        "sub": "",
        EVERYWHERE: "SubagentStart SubagentStop",
    },
    "A run that is cancelled or fails does not end by itself, and cancelling is no failure.": {
        "cancel": "on_stop Stop StopFailure",
        "fail": "on_stop Stop",
    },
    "Only a command does that, and it asks no model: nothing can fail or be cancelled.": {
        "cancel": ADDED,
        "fail": ADDED,
    },
    "Its moment does not exist in Crow.": {EVERYWHERE: "TeammateIdle"},
    "A working tree is removed where somebody says yes, and nobody is there to be asked.": {
        "run": "on_worktree_remove WorktreeRemove",
        "resume": "on_worktree_remove WorktreeRemove",
    },
}
"""Where an event cannot fire, by column, and why."""
